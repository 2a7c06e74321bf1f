# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # How many latents?
#
# Too few and the model cannot say what it sees; too many and the spare ones are switched off or, worse, half
# used. FONDUE trains a few models briefly and looks for the largest number of latents before spare ones appear.

# %%
import unweave as uw

found = uw.dimension("micro", "runs/search", start=5, quiet=True)
found.answer

# %% [markdown]
# Three, and the world has three factors. Every model that was tried, in order: the trace difference counts
# passive latents, and a number passes while it is at most 1.

# %%
import pandas as pd

pd.DataFrame(list(found.rows))[["latents", "difference", "passes", "active", "mixed", "passive"]]

# %% [markdown]
# The models are ordinary runs in `runs/search`: the same call again trains nothing, and `unweave explore
# runs/search` shows the path. What the search says of its own answer:

# %%
for words in found.findings:
    print("-", words)

# %% [markdown]
# The search began at 5 because we said so. Left alone it begins at the intrinsic dimension of the data, which
# needs no model: how many numbers say where a picture lies among its neighbours. It is a starting point and no
# answer. Here the pictures are few and their neighbours far away, and it comes out much too high:

# %%
own = uw.intrinsic("micro", n_samples=2000)
print(f"maximum likelihood: {own.score:.2f}, TwoNN: {own.two_nn:.2f}")
