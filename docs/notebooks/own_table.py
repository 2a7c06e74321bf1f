# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A table of your own
#
# 178 wines from three growers, thirteen chemical measurements each, in units that have nothing to do with one
# another. Any data frame, csv, parquet or array will do in its place.

# %%
import polars as pl
from sklearn.datasets import load_wine

import unweave as uw

wine = load_wine()
frame = pl.DataFrame(wine.data, schema=list(wine.feature_names)).with_columns(grower=pl.Series(wine.target))
frame.head(4)

# %% [markdown]
# The grower is a label: it is known, and nothing is learned from it. All other columns are brought to mean 0 and
# deviation 1 for the model, and back to their own units for you.

# %%
data = uw.world(frame, labels="grower", called="wines")
data

# %%
run = uw.train(data, objective=uw.BetaVAE(2), latents=6, steps=3000, optimiser=uw.Adam(1e-3), quiet=True)
run.plot_latents()

# %% [markdown]
# Which columns does each latent move? A panel a column, a line a latent.

# %%
run.plot_traversals()

# %% [markdown]
# What is left of a column after passing through the code? The nearer the diagonal, the more.

# %%
run.plot_reconstructions()

# %% [markdown]
# Rows go in as a frame, an array or a list, and come out in the units of the columns.

# %%
code = run.encode(frame)
code.mean.shape, run.decode(code.mean[:1]).numpy().round(2)

# %%
pl.DataFrame(run.sample(3).numpy(), schema=list(run.columns.names))

# %% [markdown]
# The model has never seen the grower. How much of it does the code know?

# %%
run.evaluate(metrics=["mig", "sap_score", "explicitness"], seeds=0).scores["mean"]

# %% [markdown]
# And how many numbers do these wines need? The intrinsic dimension of the rows, and of the codes:

# %%
{name: round(found.score, 1) for name, found in uw.intrinsic(run).items()}

# %% [markdown]
# `unweave explore` shows the same run with a slider for every latent, and the columns that follow.
# [More about data of your own](../own-data.md).
