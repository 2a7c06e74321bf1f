"""The convolutional network of Higgins et al. (2017), as used by the study of Locatello et al. (2019)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.models.layers import Convolution, Deconvolution, Dense, Rectify, flatten, unflatten
from unweave.models.networks.network import Network
from unweave.shapes import Float, Tensor
from unweave.words import number_of


@dataclass(frozen=True)
class Conv(Network):
    """Strided convolutions and their mirror image. Images are padded to a size that halves evenly, and cropped back."""

    name: ClassVar[str] = "conv"
    channels: tuple[int, ...] = number(
        (32, 32, 64, 64), least=1, most=100_000, entries=(1, 16), help="of each convolution"
    )
    kernels: tuple[int, ...] = number((4, 4, 4, 4), least=2, most=4, entries=(1, 16), help="sizes, each 2 or 4")
    hidden: int = number(256, least=1, most=100_000, help="units of the dense layer")

    def trunk(self, shape: tuple[int, ...], joined: int = 0) -> tuple[nn.Module, int]:
        self.check(shape)
        return ConvTrunk(shape, self.channels, self.kernels, self.hidden, joined), self.hidden

    def decoder(self, latents: int, shape: tuple[int, ...]) -> nn.Module:
        self.check(shape)
        return ConvDecoder(latents, shape, self.channels, self.hidden)

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse examples that are no images, or too small ones."""
        if len(shape) != 3:
            raise ValueError(f"the conv network needs images (channel, height, width), given {shape}; try mlp")
        if len(self.kernels) != len(self.channels) or not set(self.kernels) <= {2, 4}:
            raise ValueError(
                f"network.kernels must be {number_of(len(self.channels), 'number')}, each 2 or 4, one for each of"
                f" network.channels, not {self.kernels}"
            )
        if 2 ** (len(self.channels) + 1) > 2 * min(shape[1:]):
            raise ValueError(
                f"images of {shape[1]}×{shape[2]} are too small for {len(self.channels)} convolutions, each of which"
                " halves them: take fewer channels and kernels, larger images, or the mlp"
            )


@dataclass(frozen=True)
class ConvStudy(Conv):
    """The same with 2×2 kernels in the two deeper layers: what disentanglement_lib and the thesis code really ran."""

    name: ClassVar[str] = "conv_2x2"
    kernels: tuple[int, ...] = number((4, 4, 2, 2), least=2, most=4, entries=(1, 16), help="sizes, each 2 or 4")


class ConvTrunk(nn.Module):
    """Convolutions, then a dense layer that sees what is joined too."""

    product: Callable[[Tensor, Mapping[str, Tensor]], Tensor] | None = None
    """All convolutions at once, for a stack of models that are mapped."""
    rectify: Rectify = staticmethod(torch.relu)

    def __init__(
        self, shape: tuple[int, ...], channels: tuple[int, ...], kernels: tuple[int, ...], hidden: int, joined: int = 0
    ) -> None:
        super().__init__()
        inputs = (shape[0], *channels[:-1])
        self.convolutions = nn.ModuleList(map(Convolution, inputs, channels, kernels))
        self.margin = margins(shape, len(channels))
        height, width = coarse_size(shape, len(channels))
        self.dense = Dense(channels[-1] * height * width + joined, hidden)

    def forward(
        self, x: Float[Tensor, "batch channel height width"], joined: Float[Tensor, "batch column"] | None = None
    ) -> Float[Tensor, "batch feature"]:
        x = functional.pad(x, self.margin) if any(self.margin) else x
        if self.product is not None:
            x = self.product(x, dict(self.convolutions.named_parameters()))
        else:
            for convolution in self.convolutions:
                x = self.rectify(convolution(x))
        x = flatten(x)
        return torch.relu(self.dense(x if joined is None else torch.cat([x, joined], dim=1)))


class ConvDecoder(nn.Module):
    product: Callable[[Tensor, Mapping[str, Tensor]], Tensor] | None = None
    """All transposed convolutions at once, for a stack of models that are mapped."""
    rectify: Rectify = staticmethod(torch.relu)

    def __init__(self, latents: int, shape: tuple[int, ...], channels: tuple[int, ...], hidden: int) -> None:
        super().__init__()
        self.coarse = (channels[-1], *coarse_size(shape, len(channels)))
        self.crop = margins(shape, len(channels))
        self.dense = Dense(latents, hidden)
        self.spread = Dense(hidden, self.coarse[0] * self.coarse[1] * self.coarse[2])
        outputs = (*reversed(channels[:-1]), shape[0])
        self.deconvolutions = nn.ModuleList(map(Deconvolution, reversed(channels), outputs))

    def forward(self, code: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch channel height width"]:
        x = unflatten(torch.relu(self.spread(torch.relu(self.dense(code)))), *self.coarse)
        if self.product is not None:
            return self._cropped(self.product(x, dict(self.deconvolutions.named_parameters())))
        for deconvolution in self.deconvolutions[:-1]:
            x = self.rectify(deconvolution(x))
        return self._cropped(self.deconvolutions[-1](x))

    def _cropped(self, x: Tensor) -> Tensor:
        left, right, top, bottom = self.crop
        return x[..., top : x.shape[-2] - bottom, left : x.shape[-1] - right] if any(self.crop) else x


def coarse_size(shape: tuple[int, ...], n_halvings: int) -> tuple[int, int]:
    """Height and width after all halvings, rounded up."""
    return -(-shape[1] // 2**n_halvings), -(-shape[2] // 2**n_halvings)


def margins(shape: tuple[int, ...], n_halvings: int) -> tuple[int, int, int, int]:
    """Left, right, top and bottom padding that makes a size halve evenly: 28 becomes 32."""
    spare = [size * 2**n_halvings - given for size, given in zip(coarse_size(shape, n_halvings), shape[1:])]
    return spare[1] // 2, spare[1] - spare[1] // 2, spare[0] // 2, spare[0] - spare[0] // 2
