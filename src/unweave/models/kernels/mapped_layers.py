"""Convolutions of stride 2 under ``torch.vmap``: products over all models in place of PyTorch's grouped convolutions.

As in :mod:`unweave.models.kernels.convolutions` a layer joins a ``big`` image and a ``small`` one: a convolution goes
down, a transposed one up. Weights have PyTorch's shape, [small, big, row, column] for both. Between big images of a few
channels products are made of patches by PyTorch; wider ones go through GPU kernels.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import nn

from unweave.models.kernels.layout import layout_of
from unweave.models.layers import Convolution, Deconvolution, Dense
from unweave.models.networks.conv import ConvDecoder, ConvTrunk
from unweave.models.networks.gan import (
    SLOPE,
    Generator,
    LabelDiscriminator,
    NormalEncoder,
    PairDiscriminator,
    RankDiscriminator,
    SpectralTrunk,
)
from unweave.models.normalisation import BatchNorm, SpectralConvolution, SpectralDense, SpectralNorm
from unweave.shapes import Float, Tensor

Way = Literal["down", "up"]
Made = Callable[..., Any]
"""A tensor, or several, of stacked ones."""

Big = Float[Tensor, "model batch height2 width2 big"]
Small = Float[Tensor, "model batch height width small"]
Weights = Float[Tensor, "model small big row column"]

WITH_NORMS = (NormalEncoder, PairDiscriminator, RankDiscriminator, LabelDiscriminator)
"""Networks that use all of their spectral norms whenever they are called."""

LEAST_CHANNELS = 16
"""Of both images; products of fewer are not worth a kernel."""


def map_convolutions(network: nn.Module, product: str, precision: str, *, decoders: bool = True) -> None:
    """Let the convolutions of a network that will be mapped over models use these products.

    Trunks of convolutions, and ``decoders``, go through fused kernels with the given precision, as they do in fleets of
    VAEs; layers that normalise have kernels of their own.
    """
    from unweave.models.kernels.batch_norm import takes
    from unweave.models.kernels.encoder import covers

    for layer in network.modules():
        if isinstance(layer, Convolution | Deconvolution):
            layer.product = Mapped(product, "down" if isinstance(layer, Convolution) else "up")
        if isinstance(layer, SpectralNorm) and layer.product is None:
            layer.product = MappedSpectralNorm()
        if isinstance(layer, WITH_NORMS):
            MappedSpectralNorms(layer)
        if isinstance(layer, Dense):
            layer.apart = True
        if isinstance(layer, BatchNorm) and takes(len(layer.weight)):
            layer.product = MappedBatchNorm()
        if isinstance(layer, ConvTrunk) and not covers(*_channels(layer)):
            layer.product = MappedTrunk(layer.convolutions, product, precision)
        if decoders and isinstance(layer, ConvDecoder) and not covers(*_decoder_channels(layer)):
            layer.product = MappedDecoder(layer, precision)
        if isinstance(layer, SpectralTrunk) and precision == "bf16" and not covers(*_channels(layer), first_most=128):
            layer.product = MappedTrunk(layer.convolutions, product, precision, SLOPE)
        if isinstance(layer, Generator):
            layer.together = True
            if precision == "bf16" and _generates(layer):
                layer.product = MappedGenerator(layer, precision)


def _generates(generator: Generator) -> bool:
    """Whether kernels make all transposed convolutions of a generator but the last."""
    from unweave.models.kernels.batch_norm import takes

    shapes = [layer.weight.shape for layer in list(generator.deconvolutions)[:-1] if isinstance(layer, Deconvolution)]
    widths = [n for shape in shapes for n in shape[:2]]
    return bool(shapes) and all(n & (n - 1) == 0 and n <= 128 and takes(n) for n in widths)


def _channels(trunk: ConvTrunk | SpectralTrunk) -> tuple[list[int], int]:
    shapes = [layer.weight.shape for layer in trunk.convolutions if isinstance(layer, Convolution)]
    return [shape[0] for shape in shapes], shapes[0][1]


def _decoder_channels(decoder: ConvDecoder) -> tuple[list[int], int]:
    shapes = [layer.weight.shape for layer in decoder.deconvolutions if isinstance(layer, Deconvolution)]
    return [shape[0] for shape in reversed(shapes)], shapes[-1][1]


def try_kernels(product: str, device: str) -> None:
    """Every kernel once, on nothing: what does not compile is found here."""
    n = LEAST_CHANNELS
    big, weight = torch.zeros(2, 2, 8, 8, n, device=device), torch.zeros(2, n, n, 4, 4, device=device)
    correlate(big, down(big, weight, product), 4, product)
    up(big, weight, product)
    torch.cuda.synchronize()


class Mapped:
    """A layer's product with its weights; only to be called under ``torch.vmap``."""

    def __init__(self, product: str, way: Way) -> None:
        self.product, self.way = product, way

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        found: Tensor = _OfOne.apply(self.stacked, x, weight, bias)
        return found

    def stacked(self, x: Tensor, weight: Weights, bias: Tensor) -> Tensor:
        """The layer of all models."""
        made: Tensor = Join.apply(x, weight, bias, self.way, self.product)
        return made


class MappedTrunk:
    """All convolutions of an encoder, each with bias and rectified; only to be called under ``torch.vmap``.

    ``leak`` is the rectifiers' slope below 0. Where it is 0, images that need a gradient go layer by layer, in fp32:
    manipulations are learned through encoders, and their numbers are small.
    """

    def __init__(self, layers: nn.ModuleList, product: str, precision: str, leak: float = 0.0) -> None:
        from unweave.models.kernels.convolutions import PRECISIONS

        self.layout, self.product, self.precision = layout_of(layers, kernels=True), product, PRECISIONS[precision]
        self.n_layers, self.leak = len(layers), leak

    def __call__(self, x: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        found: Tensor = _OfOne.apply(self.stacked, x, *(parameters[name] for name in self.layout.names))
        return found

    def stacked(self, x: Float[Tensor, "model batch channel height width"], *given: Tensor) -> Tensor:
        """The last images of all models."""
        from unweave.models.kernels.encoder import Encoded, join_of

        if self.leak or not x.requires_grad:
            sizes = [(x.shape[-2] >> n, x.shape[-1] >> n) for n in range(1, self.n_layers + 1)]
            joins = [join_of(self.layout, str(place), size) for place, size in enumerate(sizes)]
            made: Tensor = Encoded.apply(x, self.layout, joins, self.precision, self.leak, *given)
            return made
        parameters = dict(zip(self.layout.names, given))
        for place in range(self.n_layers):
            weight, bias = parameters[f"{place}.weight"], parameters[f"{place}.bias"]
            x = torch.relu(Join.apply(x, weight, bias, "down", self.product))
        return x


class MappedDecoder:
    """All transposed convolutions of a decoder, rectified between them; only to be called under ``torch.vmap``."""

    def __init__(self, decoder: ConvDecoder, precision: str) -> None:
        from unweave.models.kernels.convolutions import PRECISIONS
        from unweave.models.kernels.encoder import join_of

        self.layout, self.precision = layout_of(decoder.deconvolutions, kernels=True), PRECISIONS[precision]
        _, height, width = decoder.coarse
        places = range(len(decoder.deconvolutions))
        self.joins = [join_of(self.layout, str(place), (height << place, width << place)) for place in places]

    def __call__(self, x: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        found: Tensor = _OfOne.apply(self.stacked, x, *(parameters[name] for name in self.layout.names))
        return found

    def stacked(self, x: Float[Tensor, "model batch channel height width"], *given: Tensor) -> Tensor:
        """The outputs of all models."""
        from unweave.models.kernels.decoder import Decoded

        made: Tensor = Decoded.apply(x, self.layout, self.joins, self.precision, *given)
        return made


class MappedGenerator:
    """All transposed convolutions of a generator but the last, with rectifiers and norms; only under ``torch.vmap``."""

    def __init__(self, generator: Generator, precision: str) -> None:
        from unweave.models.kernels.convolutions import PRECISIONS
        from unweave.models.kernels.encoder import join_of

        inner = nn.ModuleList(list(generator.deconvolutions)[:-1])
        self.layout, self.precision = layout_of(inner, kernels=True), PRECISIONS[precision]
        _, height, width = generator.coarse
        self.joins = [
            join_of(self.layout, str(place), (height << place, width << place)) for place in range(len(inner))
        ]
        norm = generator.norms[-1]
        assert isinstance(norm, BatchNorm)
        self.momentum, self.epsilon = norm.momentum, norm.epsilon

    def __call__(self, *given: Tensor, groups: int) -> tuple[Tensor, ...]:
        from unweave.models.kernels.batch_norm import Setting
        from unweave.models.kernels.generator import Generated, Layers

        layers = Layers(self.layout, self.joins, self.precision, Setting(SLOPE, self.momentum, self.epsilon, groups))

        def stacked(x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
            made: tuple[Tensor, ...] = Generated.apply(x, layers, *others)
            return made

        found: tuple[Tensor, ...] = _OfOne.apply(stacked, *given)
        return found


class MappedSpectralNorm:
    """W / σ(W) with the next u and v; only to be called under ``torch.vmap``."""

    def __call__(self, weight: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from unweave.models.kernels.spectral import Normalised

        found: tuple[Tensor, Tensor, Tensor] = _OfOne.apply(Normalised.apply, weight, u, v)
        return found


class MappedSpectralNorms:
    """The same of all layers of a network at once, when the first is asked for; each is given away once."""

    def __init__(self, network: nn.Module) -> None:
        layers = [one for one in network.modules() if isinstance(one, SpectralDense | SpectralConvolution)]
        self.layers, self.ready = layers, list[tuple[Tensor, tuple[Tensor, Tensor, Tensor]]]()
        for layer in layers:
            layer.norm.product = self

    def __call__(self, weight: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not any(one is weight for one, _ in self.ready):
            self.ready = self._made()
        place = next(place for place, (one, _) in enumerate(self.ready) if one is weight)
        return self.ready.pop(place)[1]

    def _made(self) -> list[tuple[Tensor, tuple[Tensor, Tensor, Tensor]]]:
        from unweave.models.kernels.spectral_all import NormalisedAll

        n, weights = len(self.layers), [layer.weight for layer in self.layers]

        def stacked(*given: Tensor) -> tuple[Tensor, ...]:
            made: tuple[Tensor, ...] = NormalisedAll.apply(n, *given)
            return made

        found = _OfOne.apply(stacked, *weights, *(layer.norm.u for layer in self.layers))
        return list(zip(weights, zip(found[:n], found[n : 2 * n], found[2 * n :])))

    def __deepcopy__(self, memo: dict[int, Any]) -> "MappedSpectralNorms":
        raise NotImplementedError("a network is copied before its layers are mapped")


class MappedBatchNorm:
    """Rectifier and batch norm, with the next running statistics; only to be called under ``torch.vmap``."""

    def __call__(self, *given: Tensor, **setting: Any) -> tuple[Tensor, Tensor, Tensor]:
        from unweave.models.kernels.batch_norm import Norm, Setting

        def stacked(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            made: tuple[Tensor, Tensor, Tensor] = Norm.apply(*tensors, Setting(**setting))
            return made

        found: tuple[Tensor, Tensor, Tensor] = _OfOne.apply(stacked, *given)
        return found


def _along(info: Any, one: Tensor, dim: int | None) -> Float[Tensor, "model ..."]:
    return one.expand(info.batch_size, *one.shape) if dim is None else one.movedim(dim, 0)


class _OfOne(torch.autograd.Function):
    """Stands for what is made of one model's tensors until ``vmap`` asks for ``made`` of all models' together."""

    @staticmethod
    def forward(made: Made, *given: Tensor) -> Any:
        raise NotImplementedError("these layers are only made for many models")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None: ...

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], made: Made, *given: Tensor) -> tuple[Any, Any]:
        found = made(*(_along(info, one, dim) for one, dim in zip(given, in_dims[1:])))
        return found, 0 if isinstance(found, Tensor) else (0,) * len(found)


class Join(torch.autograd.Function):
    """x ∗ w + b for every model; x is [model, batch, channel, height, width], channels last in memory."""

    @staticmethod
    def forward(x: Tensor, weight: Weights, bias: Tensor, way: Way, product: str) -> Tensor:
        seen = _channels_last(x)
        made = down(seen, weight, product) if way == "down" else up(seen, weight, product)
        return made.add_(bias[:, None, None, None]).movedim(-1, 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.way, ctx.product = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        by_x = by_weight = by_bias = None
        slope, seen = _channels_last(slope), _channels_last(x)
        if ctx.needs_input_grad[0]:
            back = up if ctx.way == "down" else down
            by_x = back(slope, weight, ctx.product).movedim(-1, 2)
        if ctx.needs_input_grad[1]:
            big, small = (seen, slope) if ctx.way == "down" else (slope, seen)
            by_weight = correlate(big, small, weight.shape[-1], ctx.product)
        if ctx.needs_input_grad[2]:
            by_bias = slope.flatten(1, 3).sum(1)
        return by_x, by_weight, by_bias, None, None


def down(big: Big, weight: Weights, product: str) -> Small:
    """The convolution: small = patches of big · w."""
    if _by_kernels(weight, *weight.shape[1:3]):
        from unweave.models.kernels import convolutions

        return convolutions.down(_join(big, weight, 2), big, _rows(weight), product)
    batch, height, width = big.shape[1:4]
    small = _patches(big, weight.shape[-1]).flatten(1, 3) @ _rows(weight).unflatten(1, (-1, weight.shape[1]))
    return small.unflatten(1, (batch, height // 2, width // 2))


def up(small: Small, weight: Weights, product: str) -> Big:
    """The transposed convolution: every small pixel · w, added up where patches overlap."""
    if _by_kernels(weight, *weight.shape[1:3]):
        from unweave.models.kernels import convolutions

        return convolutions.up(_join(small, weight, 1), small, _rows(weight), product)
    n_small, _, kernel = weight.shape[1:4]
    return spread(small, _rows(weight).unflatten(1, (-1, n_small)), kernel)


def spread(small: Small, weights: Float[Tensor, "model place small"], kernel: int) -> Big:
    """The same by PyTorch, with weights in the order row, column, big, small."""
    rows, kernels = small.flatten(1, 3), weights.transpose(1, 2)
    made = torch.bmm(rows, kernels, out_dtype=torch.float32) if rows.dtype == torch.bfloat16 else rows @ kernels
    pieces = made.unflatten(1, small.shape[1:4])
    pieces = pieces.unflatten(-1, (kernel, kernel, -1))
    if pieces.is_cuda:
        from unweave.models.kernels.folding import folded

        return folded(pieces)
    return _folded(pieces)


def correlate(big: Big, small: Small, kernel: int, product: str) -> Weights:
    """The gradient of the weights: every patch of big times the small pixel that it belongs to."""
    n_models, n_big, n_small = len(big), big.shape[-1], small.shape[-1]
    if _by_kernels(big, n_big, n_small):
        from unweave.models.kernels.correlation import correlate_taps

        found = correlate_taps(big, small, kernel, product)
    else:
        found = correlate_images(big, small, kernel)
    return found.sum(1).view(n_models, kernel, kernel, n_big, n_small).permute(0, 4, 3, 1, 2)


def correlate_images(big: Big, small: Small, kernel: int) -> Float[Tensor, "model batch size"]:
    """The same sum image by image, by PyTorch: one long sum would keep most of a GPU waiting."""
    patches = _patches(big, kernel).flatten(2, 3).flatten(0, 1)
    each = patches.transpose(1, 2) @ small.flatten(2, 3).flatten(0, 1)
    return each.flatten(1).unflatten(0, big.shape[:2])


def _by_kernels(given: Tensor, *channels: int) -> bool:
    return given.is_cuda and all(n >= LEAST_CHANNELS and n & (n - 1) == 0 for n in channels)


def _join(image: Tensor, weight: Weights, halved: int) -> Any:
    from unweave.models.kernels.convolutions import Join as Sizes

    height, width = image.shape[2] // halved, image.shape[3] // halved
    return Sizes(height, width, weight.shape[2], weight.shape[1], weight.shape[-1], 0, 0)


def _rows(weight: Weights) -> Float[Tensor, "model size"]:
    """Weights in the order of the products: row, column, big, small."""
    return weight.permute(0, 3, 4, 2, 1).flatten(1)


def _channels_last(x: Float[Tensor, "model batch channel height width"]) -> Tensor:
    return x.movedim(2, -1).contiguous()


def _patches(big: Big, kernel: int) -> Float[Tensor, "model batch height width patch"]:
    """What every small pixel sees: row, column, channel."""
    if kernel == 4:
        big = nn.functional.pad(big, (0, 0, 1, 1, 1, 1))
    seen = big.unfold(2, kernel, 2).unfold(3, kernel, 2)  # model batch height width channel row column
    return seen.permute(0, 1, 2, 3, 5, 6, 4).flatten(4)


def _folded(pieces: Float[Tensor, "model batch height width row column channel"]) -> Big:
    """What small pixels say to the big ones under their kernels, added up where kernels overlap."""
    n_models, batch, height, width, kernel, _, channels = pieces.shape
    halves = kernel // 2
    size = (n_models, batch, height + halves - 1, 2, width + halves - 1, 2, channels)
    padded = pieces.new_zeros(size)
    for row in range(halves):
        for column in range(halves):
            tile = pieces[..., 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, :].permute(0, 1, 2, 4, 3, 5, 6)
            padded[:, :, row : row + height, :, column : column + width] += tile
    whole = padded.flatten(2, 3).flatten(3, 4)
    return whole[:, :, 1:-1, 1:-1].contiguous() if kernel == 4 else whole
