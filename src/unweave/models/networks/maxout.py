"""The maxout network of permutation-contrastive learning (Hyvärinen & Morioka, 2017)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unweave.config import number
from unweave.models.layers import Dense
from unweave.models.networks.mlp import MLPDecoder
from unweave.models.networks.network import Network
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Maxout(Network):
    """Dense layers whose units are the larger of two outputs each; a decoder, where one is asked for, is its mirror."""

    name: ClassVar[str] = "maxout"
    widths: tuple[int, ...] = number((40, 40), least=1, most=100_000, entries=(0, 100), help="units of each layer")

    def trunk(self, shape: tuple[int, ...], joined: int = 0) -> tuple[nn.Module, int]:
        n_inputs = math.prod(shape) + joined
        return MaxoutLayers(n_inputs, self.widths), (n_inputs, *self.widths)[-1]

    def decoder(self, latents: int, shape: tuple[int, ...]) -> nn.Module:
        return MLPDecoder(latents, shape, self.widths[::-1], "relu")


class MaxoutLayers(nn.Module):
    def __init__(self, n_inputs: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        doubled = [2 * width for width in widths]
        self.layers = nn.ModuleList(map(Dense, (n_inputs, *widths[:-1]), doubled))

    def forward(
        self, x: Float[Tensor, "batch ..."], joined: Float[Tensor, "batch column"] | None = None
    ) -> Float[Tensor, "batch feature"]:
        x = x.flatten(1) if joined is None else torch.cat([x.flatten(1), joined], dim=1)
        for layer in self.layers:
            # unit k is the larger of outputs 2k and 2k + 1
            x = layer(x).unflatten(-1, (-1, 2)).amax(-1)
        return x
