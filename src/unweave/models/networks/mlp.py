"""Fully connected networks, and the linear one that the theory is about."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from unweave.config import number
from unweave.models.layers import Dense
from unweave.models.networks.network import Network
from unweave.shapes import Float, Tensor

Activation = Literal["relu", "tanh"]
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True)
class MLP(Network):
    """Hidden layers of given widths; the defaults are disentanglement_lib's."""

    name: ClassVar[str] = "mlp"
    encoder_widths: tuple[int, ...] = number(
        (1200, 1200), least=1, most=100_000, entries=(0, 100), help="units of each layer"
    )
    decoder_widths: tuple[int, ...] = number(
        (1200, 1200, 1200), least=1, most=100_000, entries=(0, 100), help="units of each layer"
    )
    encoder_activation: Activation = "relu"
    decoder_activation: Activation = "tanh"

    def trunk(self, shape: tuple[int, ...], joined: int = 0) -> tuple[nn.Module, int]:
        n_inputs = math.prod(shape) + joined
        return Layers(n_inputs, self.encoder_widths, self.encoder_activation), (n_inputs, *self.encoder_widths)[-1]

    def decoder(self, latents: int, shape: tuple[int, ...]) -> nn.Module:
        return MLPDecoder(latents, shape, self.decoder_widths, self.decoder_activation)


@dataclass(frozen=True)
class Linear(Network):
    """No hidden layer at all: mean, log-variance and reconstruction are affine maps, others for other labels."""

    name: ClassVar[str] = "linear"

    def trunk(self, shape: tuple[int, ...], joined: int = 0) -> tuple[nn.Module, int]:
        n_inputs = math.prod(shape)
        if joined:
            return Products(), n_inputs + joined + n_inputs * joined
        return Layers(n_inputs, (), "relu"), n_inputs

    def decoder(self, latents: int, shape: tuple[int, ...]) -> nn.Module:
        return MLPDecoder(latents, shape, (), "relu")


class Layers(nn.Module):
    def __init__(self, n_inputs: int, widths: tuple[int, ...], activation: Activation) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(Dense, (n_inputs, *widths[:-1]), widths))
        self.activation = ACTIVATIONS[activation]

    def forward(
        self, x: Float[Tensor, "batch ..."], joined: Float[Tensor, "batch column"] | None = None
    ) -> Float[Tensor, "batch feature"]:
        x = x.flatten(1) if joined is None else torch.cat([x.flatten(1), joined], dim=1)
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


class Products(nn.Module):
    """x, u and all products x_i u_j: a linear layer on them is affine in x, with another slope for every label."""

    def forward(
        self, x: Float[Tensor, "batch ..."], joined: Float[Tensor, "batch column"]
    ) -> Float[Tensor, "batch feature"]:
        flat = x.flatten(1)
        return torch.cat([flat, joined, (flat[:, :, None] * joined[:, None]).flatten(1)], dim=1)


class MLPDecoder(nn.Module):
    def __init__(self, latents: int, shape: tuple[int, ...], widths: tuple[int, ...], activation: Activation) -> None:
        super().__init__()
        self.hidden = Layers(latents, widths, activation)
        self.output = Dense((latents, *widths)[-1], math.prod(shape))
        self.shape = shape

    def forward(self, code: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        return self.output(self.hidden(code)).unflatten(1, self.shape)
