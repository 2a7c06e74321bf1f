"""The linear β-VAE in NumPy of benchmarks/turning.py has the gradient of the loss that is written there."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

MADE = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "turning.py"))


@pytest.mark.parametrize("weight", [1.0, 1 / 3])
def test_the_slopes_are_those_of_autograd(weight: float) -> None:
    generator = np.random.default_rng(0)
    n, size, latents = 2, 7, 3
    given = {"encoder": (n, 4, 2 * latents), "decoder": (n, latents + 1, 3)}
    weights = {name: generator.normal(size=shape) for name, shape in given.items()}
    x, noise = generator.normal(size=(n, size, 3)), generator.normal(size=(n, size, latents))
    ours = MADE["_slopes"](weights, x, noise, np.ones((n, size, 1)), MADE["Setting"](size, weight, "glorot", latents))
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    points, drawn = torch.tensor(x), torch.tensor(noise)
    heads = points @ tensors["encoder"][:, :3] + tensors["encoder"][:, 3:]
    mean, log_variance = heads.split(latents, dim=2)
    posterior = torch.distributions.Normal(mean, (log_variance / 2).exp())
    rebuilt = (mean + posterior.stddev * drawn) @ tensors["decoder"][:, :latents] + tensors["decoder"][:, latents:]
    kl = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(2)
    loss = (weight * ((rebuilt - points) ** 2).sum(2) + MADE["BETA"] * kl).mean(1).sum()
    theirs = torch.autograd.grad(loss, list(tensors.values()))
    for name, slope in zip(tensors, theirs):
        assert ours[name] == pytest.approx(slope.numpy(), rel=1e-9, abs=1e-12)
