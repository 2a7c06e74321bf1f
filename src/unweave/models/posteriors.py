"""Approximate posteriors: from an encoder's heads and standard normal noise to a code."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.shapes import Float, Tensor

Heads = dict[str, Float[Tensor, "batch output"]]


@dataclass(frozen=True)
class Code:
    """What the encoder says of a batch. ``variance`` is the marginal one; ``kl`` sums over latents to the KL.

    The prior is the standard normal, or the one that the model learned for each example.
    """

    mean: Float[Tensor, "batch latent"]
    log_variance: Float[Tensor, "batch latent"]
    sampled: Float[Tensor, "batch latent"]
    kl: Float[Tensor, "batch latent"]
    prior_mean: Float[Tensor, "batch latent"] | None = None
    prior_log_variance: Float[Tensor, "batch latent"] | None = None

    def __repr__(self) -> str:
        held = [name for name, value in vars(self).items() if value is not None]
        return f"Code({' × '.join(map(str, self.mean.shape))}: {', '.join(['variance', *held])})"

    @property
    def variance(self) -> Float[Tensor, "batch latent"]:
        return self.log_variance.exp()

    @property
    def prior_variance(self) -> Float[Tensor, "batch latent"] | None:
        return None if self.prior_log_variance is None else self.prior_log_variance.exp()

    def standardised(self) -> "Code":
        """The code of (z − μ†)/σ†, whose prior is the standard normal; itself where the prior is that already."""
        if self.prior_mean is None or self.prior_log_variance is None:
            return self
        mean, sampled = (
            (codes - self.prior_mean) * torch.exp(-0.5 * self.prior_log_variance) for codes in (self.mean, self.sampled)
        )
        return Code(mean, self.log_variance - self.prior_log_variance, sampled, self.kl)

    def in_deviations(self, row: int, latent: int, values: Float[Tensor, " step"]) -> Float[Tensor, " step"]:
        """Values of a latent so many deviations of a row's prior from its mean; themselves for the standard normal."""
        if self.prior_mean is None or self.prior_log_variance is None:
            return values
        return self.prior_mean[row, latent] + torch.exp(0.5 * self.prior_log_variance[row, latent]) * values

    def detach(self) -> "Code":
        """The same numbers, without their history."""
        return self.map(torch.Tensor.detach)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Code":
        """The code with every one of its tensors changed."""
        held = {name: value for name, value in vars(self).items() if value is not None}
        return Code(**{name: change(value) for name, value in held.items()})


def under_prior(code: Code, mean: Float[Tensor, "batch latent"], log_variance: Float[Tensor, "batch latent"]) -> Code:
    """A code with independent latents under a learned prior N(μ†, diag σ†²), its KL to that."""
    # KL_j = ½ ((σ² + (μ − μ†)²) / σ†² + log σ†² − log σ² − 1)
    scaled = (code.variance + (code.mean - mean).square()) * torch.exp(-log_variance)
    kl = 0.5 * (scaled + log_variance - code.log_variance - 1.0)
    return Code(code.mean, code.log_variance, code.sampled, kl, mean, log_variance)


class Posterior(ABC):
    """A family of distributions over codes."""

    name: ClassVar[str]
    n_told: ClassVar[int] = 0
    """Columns after the noise, of what a method tells it."""

    @abstractmethod
    def heads(self, latents: int) -> dict[str, int]:
        """Names and sizes of the linear layers on top of the encoder's trunk."""

    @abstractmethod
    def code(self, heads: Heads, noise: Float[Tensor, "batch latent"]) -> Code:
        """The code for these head outputs and this noise."""


@dataclass(frozen=True)
class Diagonal(Posterior):
    """q(z|x) = N(μ, diag σ²), the usual one."""

    name: ClassVar[str] = "diagonal"

    def heads(self, latents: int) -> dict[str, int]:
        return {"mean": latents, "log_variance": latents}

    def code(self, heads: Heads, noise: Float[Tensor, "batch latent"]) -> Code:
        mean, log_variance = heads["mean"], heads["log_variance"]
        # z = μ + σ ε,  KL_j = ½ (μ² + σ² − log σ² − 1)
        sampled = mean + torch.exp(0.5 * log_variance) * noise
        kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1.0)
        return Code(mean, log_variance, sampled, kl)


@dataclass(frozen=True)
class FullCovariance(Posterior):
    """q(z|x) = N(μ, LLᵀ) with a lower-triangular L from the encoder, its diagonal through exp."""

    name: ClassVar[str] = "full"

    def heads(self, latents: int) -> dict[str, int]:
        return {"mean": latents, "log_diagonal": latents, "below": latents * (latents - 1) // 2}

    def code(self, heads: Heads, noise: Float[Tensor, "batch latent"]) -> Code:
        mean, log_diagonal = heads["mean"], heads["log_diagonal"]
        factor = self._factor(log_diagonal, heads["below"])
        sampled = mean + (factor @ noise.unsqueeze(-1)).squeeze(-1)
        variance = factor.square().sum(-1)
        # ½ (‖μ‖² + tr Σ − log det Σ − d), split over latents: log det Σ = 2 Σ_j log L_jj
        kl = 0.5 * (mean.square() + variance - 2.0 * log_diagonal - 1.0)
        return Code(mean, variance.log(), sampled, kl)

    def _factor(self, log_diagonal: Tensor, below: Tensor) -> Float[Tensor, "batch latent latent"]:
        latents = log_diagonal.shape[-1]
        rows, columns = torch.tril_indices(latents, latents, offset=-1, device=below.device)
        # scatter by a constant 0/1 map, which every transform of torch.func and every CUDA graph understands
        entries = torch.arange(latents * latents, device=below.device)
        places = ((rows * latents + columns).unsqueeze(-1) == entries).to(below.dtype)
        return (below @ places).unflatten(-1, (latents, latents)) + torch.diag_embed(log_diagonal.exp())


@dataclass(frozen=True)
class Deterministic(Posterior):
    """No noise: the code is the mean, its variance 0 and its KL 0. An autoencoder."""

    name: ClassVar[str] = "deterministic"

    def heads(self, latents: int) -> dict[str, int]:
        return {"mean": latents}

    def code(self, heads: Heads, noise: Float[Tensor, "batch latent"]) -> Code:
        mean = heads["mean"]
        return Code(mean, torch.full_like(mean, -math.inf), mean, torch.zeros_like(mean))


POSTERIORS: dict[str, type[Posterior]] = {
    "diagonal": Diagonal,
    "full": FullCovariance,
    "deterministic": Deterministic,
}
