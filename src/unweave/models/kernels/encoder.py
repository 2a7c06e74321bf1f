"""The convolutions of stacked encoders on GPU kernels, from stored examples to the last image, and back."""

from collections.abc import Sequence

import torch

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, Precision, correlate, down, up
from unweave.models.kernels.first import first_forward, ready
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.layout import Layout
from unweave.models.kernels.pixels import FLOATS, Frame
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


def encoded_images(
    joins: Sequence[Join], precision: Precision, weights: Float[Tensor, "model size"], frame: Frame, examples: Tensor
) -> list[Float[Tensor, "model batch height width small"]]:
    """What comes out of every convolution, with bias and rectified."""
    first, *rest = joins
    layers = [first_forward(first, frame, examples, weights, precision.stored, precision.product)]
    for join in rest:
        layers.append(down(join, layers[-1], weights, precision.product, activate=True))
    return layers


def encoded_images_backward(
    joins: Sequence[Join], precision: Precision, weights: Tensor, frame: Frame, examples: Tensor, images: list[Tensor],
    slope: Tensor, gradients: Float[Tensor, "model size"], later: Later = in_turn,
) -> None:  # fmt: skip
    """The gradients of all weights and biases, from the slope by the last image where that is positive."""
    top, product = joins[-1], precision.product
    later(add_up, slope.flatten(1, 3), bias_of(gradients, top, top.n_small))
    for place in range(len(images) - 1, 1, -1):
        join, below, image = joins[place], joins[place - 1], images[place - 1]
        later(correlate, join, image, slope, gradients, product)
        bias = bias_of(gradients, below, below.n_small)
        slope = up(join, slope, weights, product, like=image, bias_gradient=bias, later=later)
    first, second = joins[:2]
    first_two_backward(first, second, frame, examples, slope, images[0], weights, gradients, product, later)


def join_of(layout: Layout, name: str, size: tuple[int, int]) -> Join:
    """A layer's sizes and places, by the size of its small image."""
    small, big, kernel, _ = layout.shapes[layout.names.index(f"{name}.weight")]
    return Join(*size, big, small, kernel, layout.offsets[f"{name}.weight"], layout.offsets[f"{name}.bias"])


def bias_of(gradients: Tensor, join: Join, channels: int) -> Float[Tensor, "model channel"]:
    """The part of the rows that is a layer's bias."""
    return gradients[:, join.bias_at : join.bias_at + channels]


def covers(channels: Sequence[int], image_channels: int) -> str:
    """Why the kernels cannot make these convolutions; nothing where they can."""
    if len(channels) < 2:
        return "the kernels need at least two convolutions"
    if image_channels > 4 or any(n < 16 or n > 128 or n & (n - 1) for n in channels):
        return "the kernels need at most 4 image channels, and inner channels of 16, 32, 64 or 128"
    return ""


class Encoded(torch.autograd.Function):
    """The last image of every model's convolutions; images come as numbers, and no gradient goes back to them."""

    @staticmethod
    def forward(
        ctx: "Encoded", examples: Tensor, layout: Layout, joins: Sequence[Join], precision: Precision, *given: Tensor
    ) -> Float[Tensor, "model batch channel height width"]:
        examples = examples.contiguous()
        channels, height, width = examples.shape[2:]
        frame = Frame(FLOATS, channels, height, width, 0, 0)
        weights = layout.rows(dict(zip(layout.names, given))).to(precision.stored)
        seen = ready(joins[0], frame, examples, precision.stored)
        images = encoded_images(joins, precision, weights, *seen)
        ctx.kept = layout, joins, precision, weights, seen, images  # type: ignore[attr-defined]
        return images[-1].float().movedim(-1, 2)

    @staticmethod
    def backward(ctx: "Encoded", slope: Tensor) -> tuple[Tensor | None, ...]:
        layout, joins, precision, weights, seen, images = ctx.kept  # type: ignore[attr-defined]
        gradients = torch.zeros(weights.shape, device=weights.device)
        last = images[-1]
        inward = torch.where(last > 0, slope.movedim(2, -1), 0.0).to(precision.stored).contiguous()
        frame, examples = seen
        encoded_images_backward(joins, precision, weights, frame, examples, images, inward, gradients)
        return None, None, None, None, *layout.views(gradients).values()
