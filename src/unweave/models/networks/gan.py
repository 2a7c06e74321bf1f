"""The networks of the weakly supervised GAN (Shu et al., 2020): generator, encoder and the discriminator of pairs.

Its authors use 4×4 convolutions on 64×64 images; here as many as ``channels`` has entries, on any size, padded so that
it halves evenly. Leaky rectifiers have the slope 0.2.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional

from unweave.models.layers import Deconvolution, Dense, flatten, unflatten
from unweave.models.networks.conv import coarse_size, margins
from unweave.models.normalisation import BatchNorm, SpectralConvolution, SpectralDense, UnitRows
from unweave.shapes import Float, Tensor

SLOPE = 0.2

Images = Float[Tensor, "batch channel height width"]


class Generator(nn.Module):
    """From latents to the logits of an image; activations are normalised over the batch. Latents left out are 0."""

    product: Callable[..., tuple[Tensor, ...]] | None = None
    """All convolutions but the last with their norms, for a stack of models that are mapped: images, then the next
    running mean and variance of each norm."""
    together: bool = False
    """Whether both images of a pair go through the layers as one batch."""

    def __init__(self, latents: int, shape: tuple[int, ...], channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.coarse = (channels[-1], *coarse_size(shape, len(channels)))
        self.crop, self.latents = margins(shape, len(channels)), latents
        self.dense = Dense(latents, hidden)
        self.spread = Dense(hidden, self.coarse[0] * self.coarse[1] * self.coarse[2])
        outputs = (*reversed(channels[:-1]), shape[0])
        self.deconvolutions = nn.ModuleList(map(Deconvolution, reversed(channels), outputs))
        widths = (hidden, self.spread.weight.shape[0], *outputs[:-1])
        self.norms = nn.ModuleList(map(BatchNorm, widths))

    def forward(self, latents: Float[Tensor, "batch latent"], groups: int = 1) -> Images:
        """Images of latents; every group of a batch is normalised by itself."""
        first, second, *others = self.norms
        latents = functional.pad(latents, (0, self.latents - latents.shape[-1]))
        x = first(self.dense(latents), leak=0.0, groups=groups)
        x = second(self.spread(x), leak=0.0, groups=groups)
        x = unflatten(x, *self.coarse)
        if self.product is not None and self.training:
            x = self._produced(x, groups)
        else:
            for deconvolution, norm in zip(self.deconvolutions, others):
                x = norm(deconvolution(x), leak=SLOPE, groups=groups)
        left, right, top, bottom = self.crop
        x = self.deconvolutions[-1](x)
        return x[..., top : x.shape[-2] - bottom, left : x.shape[-1] - right] if any(self.crop) else x

    def _produced(self, x: Images, groups: int) -> Images:
        norms = list(self.norms)[2:]
        inner = [one for layer in list(self.deconvolutions)[:-1] for one in (layer.weight, layer.bias)]
        held = [one for norm in norms for one in (norm.weight, norm.bias, norm.running_mean, norm.running_variance)]
        assert self.product is not None
        x, *moved = self.product(x, *inner, *held, groups=groups)
        for norm, mean, variance in zip(norms, moved[::2], moved[1::2]):
            assert isinstance(norm, BatchNorm)
            norm.fresh = {"running_mean": mean, "running_variance": variance}
        return x


def generated_pair(
    generator: Callable[..., Images], first: Float[Tensor, "batch latent"], second: Float[Tensor, "batch latent"]
) -> tuple[Images, Images]:
    """Logits of the images of both, each normalised over its own batch."""
    if not getattr(generator, "together", False):
        return generator(first), generator(second)
    one, other = generator(torch.cat([first, second]), groups=2).chunk(2)
    return one, other


class SpectralTrunk(nn.Module):
    """Halving convolutions and a dense layer, all spectrally normalised; without ``hidden`` units no dense layer."""

    product: Callable[[Tensor, Mapping[str, Tensor]], Tensor] | None = None
    """All convolutions at once, for a stack of models that are mapped."""

    def __init__(self, shape: tuple[int, ...], channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.margin = margins(shape, len(channels))
        height, width = coarse_size(shape, len(channels))
        self.convolutions = nn.ModuleList(map(SpectralConvolution, (shape[0], *channels[:-1]), channels))
        self.features = hidden or channels[-1] * height * width
        self.dense = SpectralDense(channels[-1] * height * width, hidden) if hidden else None

    def forward(self, x: Images) -> Float[Tensor, "batch feature"]:
        x = functional.pad(x, self.margin) if any(self.margin) else x
        if self.product is not None:
            x = self.product(x, self._normalised())
        else:
            for convolution in self.convolutions:
                x = functional.leaky_relu(convolution(x), SLOPE)
        x = flatten(x)
        return x if self.dense is None else functional.leaky_relu(self.dense(x), SLOPE)

    def _normalised(self) -> dict[str, Tensor]:
        """What the convolutions multiply by and add, by their names."""
        named: dict[str, Tensor] = dict(self.convolutions.named_parameters())
        for place, convolution in enumerate(self.convolutions):
            assert isinstance(convolution, SpectralConvolution)
            named[f"{place}.weight"] = convolution.norm(convolution.weight)
        return named


class NormalEncoder(nn.Module):
    """Mean and standard deviation of the latents behind an image."""

    def __init__(self, shape: tuple[int, ...], latents: int, channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.trunk = SpectralTrunk(shape, channels, hidden)
        self.heads = nn.ModuleDict({"mean_and_deviation": SpectralDense(hidden, 2 * latents)})

    def forward(self, x: Images) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        mean, raw = self.heads["mean_and_deviation"](self.trunk(x)).chunk(2, dim=-1)
        return mean, deviation(raw)


class PairDiscriminator(nn.Module):
    """How real a pair of images looks, given the number of what the pair has in common.

    logit = ⟨h, k / σ(k)⟩ + ⟨h, w_y⟩ with features h of both images.
    """

    def __init__(self, shape: tuple[int, ...], n_groups: int, channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.trunk = SpectralTrunk(shape, channels, hidden)
        self.neck = nn.ModuleList([SpectralDense(2 * hidden, hidden), SpectralDense(hidden, hidden)])
        self.alone = SpectralDense(hidden, 1, biased=False)
        self.given = UnitRows(n_groups, hidden)

    def forward(self, first: Images, second: Images, group: Float[Tensor, "pair group"]) -> Float[Tensor, " pair"]:
        features = torch.cat(self.trunk(torch.cat([first, second])).chunk(2), dim=-1)
        for layer in self.neck:
            features = functional.leaky_relu(layer(features), SLOPE)
        return self.judge(features, group)

    def judge(
        self, features: Float[Tensor, "pair feature"], group: Float[Tensor, "pair group"]
    ) -> Float[Tensor, " pair"]:
        """The projection head on its own."""
        return self.alone(features)[:, 0] + (features * self.given(group)).sum(-1)


class RankDiscriminator(nn.Module):
    """How real a pair of images looks, given in which factors the first has more.

    logit = o(x₁) + o(x₂) + Σ_k ±(e_k(x₁) − e_k(x₂)), plus where the first's factor is the greater.
    """

    def __init__(self, shape: tuple[int, ...], n_factors: int, channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.trunk = SpectralTrunk(shape, channels, hidden)
        self.neck = nn.ModuleList([SpectralDense(hidden, hidden), SpectralDense(hidden, hidden)])
        self.output = SpectralDense(hidden, 1 + n_factors, biased=False)

    def forward(self, first: Images, second: Images, greater: Float[Tensor, "pair factor"]) -> Float[Tensor, " pair"]:
        features = self.trunk(torch.cat([first, second]))
        for layer in self.neck:
            features = functional.leaky_relu(layer(features), SLOPE)
        one, other = self.output(features).chunk(2)
        return one[:, 0] + other[:, 0] + ((one - other)[:, 1:] * (2.0 * greater - 1.0)).sum(-1)


class LabelDiscriminator(nn.Module):
    """How real an image looks, given labels: features of both, joined, through two dense layers."""

    def __init__(self, shape: tuple[int, ...], sizes: Sequence[int], channels: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.trunk = SpectralTrunk(shape, channels, 0)
        self.told = SpectralDense(len(sizes), hidden)
        self.neck = nn.ModuleList([SpectralDense(self.trunk.features + hidden, hidden), SpectralDense(hidden, hidden)])
        self.output = SpectralDense(hidden, 1, biased=False)

    def forward(self, images: Images, labels: Float[Tensor, "batch label"]) -> Float[Tensor, " batch"]:
        told = functional.leaky_relu(self.told(labels), SLOPE)
        features = torch.cat([self.trunk(images), told], dim=-1)
        for layer in self.neck:
            features = functional.leaky_relu(layer(features), SLOPE)
        return self.output(features)[:, 0]


def deviation(raw: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """A standard deviation from an output without bounds: softplus + 1e-8."""
    return functional.softplus(raw) + 1e-8
