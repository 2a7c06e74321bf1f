# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Is my VAE collapsed?
#
# A collapsed VAE ignores its latents: the decoder draws the average picture and the code is noise. It happens
# when the regulariser is too strong for what the latents could tell. We make it happen, and ask what is wrong.

# %%
import unweave as uw


def train(beta):
    return uw.train(
        "micro",
        objective=uw.BetaVAE(beta),
        network=uw.MLP((128, 128), (128, 128), "relu", "relu"),
        optimiser=uw.Adam(2e-3),
        latents=6,
        steps=1000,
        warmup=100,
        init="pytorch",
        quiet=True,
    )


healthy, pressed = train(12), train(300)

# %% [markdown]
# The loss curve alone does not tell: both go down and flatten. The diagnosis does.

# %%
for finding in uw.diagnose(pressed).findings:
    print(f"{finding.name}: {finding.text}")
    print(f"    {finding.advice}")

# %%
[(name, run.diagnose().diagnosis.types) for name, run in {"β = 12": healthy, "β = 300": pressed}.items()]

# %% [markdown]
# And in pictures: originals above, reconstructions below. The collapsed model draws the same grey everywhere.

# %%
healthy.plot_reconstructions()
# %%
pressed.plot_reconstructions()
# %% [markdown]
# Nothing here needs unweave's own training. Means and variances from any framework will do:

# %%
code = pressed.encode(pressed.images(2000))
found = uw.diagnose(code.mean.numpy(), code.variance.numpy(), n_factors=3)
[finding.name for finding in found.findings]

# %% [markdown]
# What to do: lower β, fade the regulariser in (`warmup`), or give the decoder less to work with. The advice
# above says which of these fits, and [the page on diagnosis](../diagnose.md) lists every finding with its rule.
