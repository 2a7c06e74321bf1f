# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Did two seeds learn the same?
#
# Two models that differ in nothing but their seed may use their latents differently. Before a claim about a
# method, look at several seeds; before trusting one model, ask whether another would agree.

# %%
import unweave as uw


def train(seed):
    return uw.train(
        "micro",
        objective=uw.BetaVAE(12),
        network=uw.MLP((128, 128), (128, 128), "relu", "relu"),
        optimiser=uw.Adam(2e-3),
        latents=6,
        steps=1000,
        warmup=100,
        init="pytorch",
        seed=seed,
        quiet=True,
    )


runs = [train(seed) for seed in range(4)]

# %% [markdown]
# Latents in use are matched one to one by the correlation of their mean codes: 1 means the same latents up to
# order, sign and scale.

# %%
alike = uw.compare(*runs, n=1000, n_permutations=19)
for pair in alike.matched:
    print(f"{pair.left} and {pair.right}: {pair.matching.score:.2f}")

# %% [markdown]
# High where two models found the same axes, lower where one of them mixes two factors. Layer by layer, the
# models may be alike nevertheless: CKA does not mind a rotation, and single latents do.

# %%
layers = alike.comparisons[0]
place = layers.rows.index("mean")
print(f"CKA of the mean codes over {layers.n_pairs} pairs of seeds: {float(layers.cka[place, place]):.2f}")

# %% [markdown]
# A score is then a distribution, not a number:

# %%
import pandas as pd

data = uw.world("micro")
table = []
for run in runs:
    code, factors = run.encode(run.images(1000)), data.factors(run.rows(1000))
    scores = uw.measure(code.mean, factors, metrics=["mig", "mcc"])
    table.append({"seed": run.experiment.seed, **{name: float(value) for name, value in scores.items()}})
pd.DataFrame(table).set_index("seed").describe().loc[["mean", "std", "min", "max"]]

# %% [markdown]
# Four seeds are few. [A study](a_study.ipynb) trains and measures many, survives being killed, and tests
# differences.
