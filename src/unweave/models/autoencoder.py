"""The model: an encoder, a decoder, and the distributions that their outputs stand for."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unweave.config import number
from unweave.models.initialise import Scheme, initialise
from unweave.models.layers import Dense
from unweave.models.likelihoods import Bernoulli, Likelihood
from unweave.models.networks import Conv, Network
from unweave.models.posteriors import Code, Diagonal, Heads, Posterior
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Architecture:
    """Everything that fixes a model's structure.

    ``labels`` says how many values each label of an example has, 0 for a continuous one, where the model reads labels.
    """

    shape: tuple[int, ...] = number(least=1, most=100_000, entries=(1, 4))
    latents: int = number(10, least=1, most=10_000)
    network: Network = Conv()
    posterior: Posterior = Diagonal()
    likelihood: Likelihood = Bernoulli()
    labels: tuple[int, ...] = number((), least=0, most=10**9, entries=(0, 10_000))


class Encoder(nn.Module):
    """A network's trunk with one linear head for every parameter of the posterior."""

    def __init__(self, architecture: Architecture, joined: int = 0) -> None:
        super().__init__()
        more = (joined,) if joined else ()
        self.trunk, n_features = architecture.network.trunk(architecture.shape, *more)
        sizes = architecture.posterior.heads(architecture.latents)
        self.heads = nn.ModuleDict({name: Dense(n_features, size) for name, size in sizes.items()})

    def forward(self, x: Float[Tensor, "batch ..."], *joined: Float[Tensor, "batch column"]) -> Heads:
        features = self.trunk(x, *joined)
        return {name: head(features) for name, head in self.heads.items()}


class Model(nn.Module, ABC):
    """What is opened again after training: an encoder and, but for methods that train none, a decoder."""

    architecture: Architecture
    encoder: Any
    decoder: Any
    log_noise: Tensor | None

    @abstractmethod
    def code(self, x: Float[Tensor, "batch ..."], noise: Float[Tensor, "batch latent"]) -> Code:
        """Mean, variance, sample and KL of every latent."""

    @abstractmethod
    def decode(self, code: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        """The expected example for a code: images in [0, 1]."""

    def encode(self, x: Float[Tensor, "batch ..."]) -> Code:
        """The code without noise: ``sampled`` is the mean."""
        noise = torch.zeros(len(x), self.architecture.latents, dtype=x.dtype, device=x.device)
        return self.code(x, noise)


class Autoencoder(Model):
    """A variational autoencoder; deterministic autoencoders are its noiseless case."""

    encoder: Encoder
    decoder: nn.Module

    def __init__(self, architecture: Architecture, init: Scheme | None = "glorot", seed: int = 0) -> None:
        super().__init__()
        if architecture.latents < 1:
            raise ValueError(f"a model needs at least one latent, given {architecture.latents}")
        self.architecture = architecture
        self.encoder = Encoder(architecture)
        self.decoder = architecture.network.decoder(architecture.latents, architecture.shape)
        self.log_noise = nn.Parameter(torch.zeros(())) if architecture.likelihood.learns_noise else None
        if init is not None:  # without one, the weights are to be filled by who asked
            initialise(self, init, seed)

    def forward(self, x: Float[Tensor, "batch ..."], noise: Float[Tensor, "batch latent"]) -> tuple[Code, Tensor]:
        """The code of a batch, and the loss of reconstructing each example from it."""
        code = self.code(x, noise)
        return code, self.architecture.likelihood.loss(x, self.decoder(code.sampled), self.log_noise)

    def code(self, x: Float[Tensor, "batch ..."], noise: Float[Tensor, "batch latent"]) -> Code:
        """Mean, variance, sample and KL of every latent."""
        return self.architecture.posterior.code(self.encoder(x), noise)

    def decode(self, code: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        """The expected example for a code: images in [0, 1]."""
        return self.architecture.likelihood.mean(self.decoder(code))
