# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A study
#
# A study is a grid of models, what to measure of each, and a table with a row for each. It may be killed at any
# moment and goes on where it was; nothing is trained twice.

# %%
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised

grid = tuple(
    uw.Experiment(
        Micro(),
        objective=uw.BetaVAE(beta),
        network=uw.MLP((64, 64), (64, 64), "relu", "relu"),
        optimiser=uw.Adam(2e-3),
        latents=6,
        steps=800,
        warmup=100,
        init="pytorch",
        seed=seed,
    )
    for beta in (1.0, 12.0, 100.0)
    for seed in range(3)
)
study = uw.Study("betas", grid, (Polarised(),), title="How many latents stay active?")
found = uw.run_study(study, "runs/betas")

# %% [markdown]
# Nine models, trained as one stack. Every setting and every measure is a column:

# %%
found.table.select("objective.beta", "seed", "polarised.n_active", "polarised.n_mixed", "polarised.n_passive")

# %%
import polars as pl

active = pl.col("polarised.n_active")
found.table.group_by("objective.beta", maintain_order=True).agg(
    active.mean().alias("mean"), active.min().alias("least"), active.max().alias("most")
)

# %% [markdown]
# The same call again trains nothing. From a terminal the same study is a file with a function `study(size)`,
# run by `unweave study run betas.py --workers 2`; on a cluster with `--executor slurm` or `ray`. `unweave
# explore runs/betas` draws any column against any other, and a click on a point opens its model. More in
# [studies](../studies.md).
