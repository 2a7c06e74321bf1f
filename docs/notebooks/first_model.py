# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A first model
#
# A world of 2,048 pictures of a disc: where it is (x, y) and how large it is. We train a β-VAE with six
# latents, three more than there are factors, look at what each latent does, and measure how well they match the
# factors.

# %%
import unweave as uw

data = uw.world("micro")
data

# %% [markdown]
# `data` is a sequence: `data[0]` is a picture, `data[:8]` are eight, `data.factors(rows)` are the true factors.
# Now the model. The same call again returns at once; an interrupted one goes on where it stopped.

# %%
run = uw.train(
    "micro",
    objective=uw.BetaVAE(8),
    network=uw.Conv((16, 32, 32), (4, 4, 4), 128),
    optimiser=uw.Adam(2e-3),
    latents=6,
    steps=1800,
    warmup=100,
    init="pytorch",
    quiet=True,
)
run

# %%
run.plot_history()
# %% [markdown]
# What does each latent do? Every row moves one of them from −2.5 to 2.5 and leaves the others alone.

# %%
run.plot_traversals()
# %% [markdown]
# Three rows move the disc or change its size. The other three do nothing: the model has switched them off. The
# same in numbers: an active latent says something precise about every picture (σ² near 0), a passive one
# answers with the prior (σ² near 1).

# %%
run.plot_latents()
# %%
code = run.encode(run.images(1000))
uw.variable_types(code.mean, code.variance)

# %% [markdown]
# How well do single latents match single factors? Scores of 1 are perfect, and what chance gives stands with
# every metric in its documentation. One model is an anecdote: [compare seeds](compare_seeds.ipynb) before you
# conclude anything.

# %%
factors = data.factors(run.rows(1000))
scores = uw.measure(code.mean, factors, metrics=["mig", "dci", "mcc"])
scores.to_pandas()
