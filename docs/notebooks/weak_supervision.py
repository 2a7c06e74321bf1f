# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # What pairs of pictures are worth
#
# Without any supervision, which axes a model finds is a matter of luck and bias. Pairs of pictures that share
# most of their factors (two frames of a film, two photographs of one object) change that. Ada-GVAE uses such
# pairs without being told what they share.

# %%
import unweave as uw


def train(objective, seed, **options):
    return uw.train(
        "micro",
        objective=objective,
        network=uw.MLP((128,), (128,)),
        optimiser=uw.Adam(1e-3),
        latents=3,
        steps=1200,
        seed=seed,
        quiet=True,
        **options,
    )


# %% [markdown]
# Three models each: a β-VAE, Ada-GVAE with pairs in which one or two factors change, and its control: Ada-GVAE
# with pairs of random pictures. A method whose control gains as much has gained nothing from the pairs.

# %%
methods = {"β-VAE": uw.BetaVAE(1), "Ada-GVAE": uw.AdaGVAE(), "Ada-GVAE, random pairs": uw.AdaGVAE(pairs="random")}
data = uw.world("micro")
table = []
for name, objective in methods.items():
    for seed in range(3):
        run = train(objective, seed)
        code, factors = run.encode(run.images(1000)), data.factors(run.rows(1000))
        found = uw.measure(code.mean, factors, metrics=["mcc"])
        table.append({"method": name, "seed": seed, "MCC": float(found["mcc"])})

# %%
import pandas as pd

pd.DataFrame(table).groupby("method", sort=False)["MCC"].agg(["mean", "std", "min", "max"]).round(2)

# %% [markdown]
# Three seeds and 1,200 steps show how it works. The same with ten seeds, intervals and verdicts is `unweave
# reproduce u-supervision`, and [which method for which supervision](../methods/README.md) lists what else there
# is: films, labels for all or for a few, segments.
