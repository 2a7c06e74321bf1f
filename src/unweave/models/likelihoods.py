"""Likelihoods of the data given the decoder's outputs, as losses summed over an example."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn import functional

from unweave.config import number
from unweave.shapes import Float, Tensor

SMALL = 1e-6
Squash = Literal["identity", "sigmoid", "tanh"]


class Likelihood(ABC):
    """p(x|z). ``log_noise`` is a learned log-variance where the likelihood asks for one."""

    name: ClassVar[str]
    learns_noise: ClassVar[bool] = False

    @abstractmethod
    def loss(
        self, x: Float[Tensor, "batch ..."], outputs: Float[Tensor, "batch ..."], log_noise: Tensor | None = None
    ) -> Float[Tensor, " batch"]:
        """−log p(x|z) of every example."""

    @abstractmethod
    def mean(self, outputs: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        """The expected example: an image in [0, 1] for images."""


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Every pixel a coin; used on real-valued pixels too, as the studies did.

    ``squash="tanh"`` reads the outputs as tanh activations; ``subtract_entropy`` takes off the images' own entropy.
    """

    name: ClassVar[str] = "bernoulli"
    squash: Literal["sigmoid", "tanh"] = "sigmoid"
    subtract_entropy: bool = False

    def loss(self, x: Tensor, outputs: Tensor, log_noise: Tensor | None = None) -> Tensor:
        if self.squash == "sigmoid":
            # −x log p − (1 − x) log(1 − p) with p = sigmoid(l)
            losses = functional.binary_cross_entropy_with_logits(outputs, x, reduction="none")
        else:
            losses = _cross_entropy(x, self.mean(outputs).clamp(SMALL, 1.0 - SMALL))
        if self.subtract_entropy:
            clipped = x.clamp(SMALL, 1.0 - SMALL)
            losses = losses - _cross_entropy(clipped, clipped)
        return losses.flatten(1).sum(1)

    def mean(self, outputs: Tensor) -> Tensor:
        return _squash(outputs, self.squash)


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Every value normal around the output, with one fixed variance."""

    name: ClassVar[str] = "gaussian"
    variance: float = number(1.0, above=0, help="of every pixel's noise")
    squash: Squash = "identity"

    def loss(self, x: Tensor, outputs: Tensor, log_noise: Tensor | None = None) -> Tensor:
        # (x − x̂)² / 2v + ½ log 2πv
        losses = (x - self.mean(outputs)).square() / (2.0 * self.variance)
        return (losses + 0.5 * math.log(2.0 * math.pi * self.variance)).flatten(1).sum(1)

    def mean(self, outputs: Tensor) -> Tensor:
        return _squash(outputs, self.squash)


@dataclass(frozen=True)
class LearnedGaussian(Likelihood):
    """Every value normal around the output, with one variance for all that is learned with the weights."""

    name: ClassVar[str] = "gaussian_learned"
    learns_noise: ClassVar[bool] = True
    squash: Squash = "identity"

    def loss(self, x: Tensor, outputs: Tensor, log_noise: Tensor | None = None) -> Tensor:
        assert log_noise is not None
        # (x − x̂)² / 2v + ½ log 2πv with v = exp(log_noise)
        losses = 0.5 * ((x - self.mean(outputs)).square() * torch.exp(-log_noise) + log_noise + math.log(2.0 * math.pi))
        return losses.flatten(1).sum(1)

    def mean(self, outputs: Tensor) -> Tensor:
        return _squash(outputs, self.squash)


@dataclass(frozen=True)
class SquaredError(Likelihood):
    """Plain summed squared error: a Gaussian of variance ½ without its constant. disentanglement_lib's l2 loss."""

    name: ClassVar[str] = "squared_error"
    squash: Squash = "sigmoid"

    def loss(self, x: Tensor, outputs: Tensor, log_noise: Tensor | None = None) -> Tensor:
        return (x - self.mean(outputs)).square().flatten(1).sum(1)

    def mean(self, outputs: Tensor) -> Tensor:
        return _squash(outputs, self.squash)


LIKELIHOODS: dict[str, type[Likelihood]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "gaussian_learned": LearnedGaussian,
    "squared_error": SquaredError,
}


def _squash(outputs: Tensor, how: Squash) -> Tensor:
    if how == "sigmoid":
        return torch.sigmoid(outputs)
    return torch.tanh(outputs) / 2.0 + 0.5 if how == "tanh" else outputs


def _cross_entropy(x: Tensor, p: Tensor) -> Tensor:
    return -x * torch.log(p) - (1.0 - x) * torch.log(1.0 - p)
