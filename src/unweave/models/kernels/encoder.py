"""The convolutions of stacked encoders on GPU kernels, from stored examples to the last image, and back."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from unweave.models.kernels.aside import Later, aside, in_turn
from unweave.models.kernels.convolutions import Precision, correlate, down, up
from unweave.models.kernels.correlation import correlate_first, correlate_into
from unweave.models.kernels.first import first_forward, ready
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.join import Join
from unweave.models.kernels.layout import Layout
from unweave.models.kernels.mapped_layers import spread
from unweave.models.kernels.pixels import FLOATS, Frame
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


def encoded_images(
    joins: Sequence[Join], precision: Precision, weights: Float[Tensor, "model size"], frame: Frame, examples: Tensor,
    leak: float = 0.0,
) -> list[Float[Tensor, "model batch height width small"]]:  # fmt: skip
    """What comes out of every convolution, with bias and rectified."""
    first, *rest = joins
    layers = [first_forward(first, frame, examples, weights, precision.stored, precision.product, leak)]
    for join in rest:
        layers.append(down(join, layers[-1], weights, precision.product, activate=True, leak=leak))
    return layers


def encoded_images_backward(
    joins: Sequence[Join], precision: Precision, weights: Tensor, frame: Frame, examples: Tensor, images: list[Tensor],
    slope: Tensor, gradients: Float[Tensor, "model size"], later: Later = in_turn,
    settled: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """The gradients of all weights and biases, from the slope by the last image where that is positive.

    ``settled`` is called once only those of the first two convolutions are missing, and only the second's weights are
    read any more.
    """
    top, product = joins[-1], precision.product
    later(add_up, slope.flatten(1, 3), bias_of(gradients, top, top.n_small))
    for place in range(len(images) - 1, 1, -1):
        join, below, image = joins[place], joins[place - 1], images[place - 1]
        later(correlate, join, image, slope, gradients, product)
        bias = bias_of(gradients, below, below.n_small)
        slope = up(join, slope, weights, product, like=image, bias_gradient=bias, later=later)
    if settled is not None:
        settled()
    first, second = joins[:2]
    first_two_backward(first, second, frame, examples, slope, images[0], weights, gradients, product, later)


def leaky_images_backward(
    joins: Sequence[Join], precision: Precision, weights: Tensor, seen: tuple[Frame, Tensor], images: list[Tensor],
    slope: Tensor, leak: float, gradients: Float[Tensor, "model size"] | None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """The slope by what the first convolution made, from that by the last image, both before they were rectified.

    ``seen`` are examples as the first convolution read them. Where ``gradients`` is given it takes those of all weights
    and biases.
    """
    top, product = joins[-1], precision.product
    if gradients is not None:
        later(_add_up_images, slope, bias_of(gradients, top, top.n_small))
    for place in range(len(images) - 1, 0, -1):
        join, below, image = joins[place], joins[place - 1], images[place - 1]
        bias = None if gradients is None else bias_of(gradients, below, below.n_small)
        if gradients is not None:
            later(correlate_into, join, image, slope, gradients, product)
        slope = up(join, slope, weights, product, like=image, leak=leak, bias_gradient=bias, later=later)
    if gradients is not None:
        # apart: both products in one kernel, with 64 channels, are what by elimination an H200 faulted at (Triton 3.6)
        later(correlate_first, joins[0], *seen, slope, gradients, product)
    return slope


def _add_up_images(slope: Float[Tensor, "model batch height width channel"], out: Tensor) -> None:
    """The sum of every channel, over every image first."""
    images = torch.empty(*slope.shape[:2], slope.shape[-1], device=slope.device)
    add_up(slope.flatten(0, 1).flatten(1, 2), images.flatten(0, 1))
    add_up(images, out)


def join_of(layout: Layout, name: str, size: tuple[int, int]) -> Join:
    """A layer's sizes and places, by the size of its small image."""
    small, big, kernel, _ = layout.shapes[layout.names.index(f"{name}.weight")]
    return Join(*size, big, small, kernel, layout.offsets[f"{name}.weight"], layout.offsets[f"{name}.bias"])


def bias_of(gradients: Tensor, join: Join, channels: int) -> Float[Tensor, "model channel"]:
    """The part of the rows that is a layer's bias."""
    return gradients[:, join.bias_at : join.bias_at + channels]


FIRST_MOST = 32
"""Channels of a first convolution whose gradients come from one kernel. On an H200 with 64 Triton 3.6 makes the
products there by other instructions, and a discriminator's step ended in an illegal access."""


def covers(channels: Sequence[int], image_channels: int, first_most: int = FIRST_MOST) -> str:
    """Why the kernels cannot make these convolutions; nothing where they can."""
    if len(channels) < 2:
        return "the kernels need at least two convolutions"
    if image_channels > 4 or any(n < 16 or n > 128 or n & (n - 1) for n in channels):
        return "the kernels need at most 4 image channels, and inner channels of 16, 32, 64 or 128"
    if channels[0] > first_most:
        return f"the kernels need a first convolution of at most {first_most} channels"
    return ""


class Encoded(torch.autograd.Function):
    """The last image of every model's convolutions; images come as numbers."""

    @staticmethod
    def forward(
        ctx: Any, examples: Tensor, layout: Layout, joins: Sequence[Join], precision: Precision, leak: float,
        *given: Tensor,
    ) -> Float[Tensor, "model batch channel height width"]:  # fmt: skip
        examples = examples.contiguous()
        channels, height, width = examples.shape[2:]
        frame = Frame(FLOATS, channels, height, width, 0, 0)
        weights = layout.rows(dict(zip(layout.names, given))).to(precision.stored)
        seen = ready(joins[0], frame, examples, precision.stored)
        images = encoded_images(joins, precision, weights, *seen, leak)
        ctx.kept = layout, joins, precision, leak, weights, seen, images
        return images[-1].float().movedim(-1, 2)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        layout, joins, precision, leak, weights, seen, images = ctx.kept
        slope = slope.movedim(2, -1)
        slope = torch.where(images[-1] > 0, slope, leak * slope).to(precision.stored).contiguous()
        learns = any(ctx.needs_input_grad[5:])
        gradients = torch.zeros(weights.shape, device=weights.device) if learns else None
        by_examples = None
        if leak:
            beside = aside(len(weights), weights.device)
            given = joins, precision, weights, seen, images
            slope = leaky_images_backward(*given, slope, leak, gradients, beside or in_turn)
            if beside is not None:
                beside.join()
            by_examples = _by_pixels(joins[0], slope, weights) if ctx.needs_input_grad[0] else None
        elif gradients is not None:
            frame, read = seen
            encoded_images_backward(joins, precision, weights, frame, read, images, slope, gradients)
        by_weights = [None] * len(layout.names) if gradients is None else layout.views(gradients).values()
        return by_examples, None, None, None, None, *by_weights


def _by_pixels(join: Join, slope: Tensor, weights: Tensor) -> Float[Tensor, "model batch channel height width"]:
    """The slope by the pixels that the first convolution saw."""
    n_weights = join.kernel**2 * join.n_big * join.n_small
    kernels = weights[:, join.weight_at : join.weight_at + n_weights].unflatten(1, (-1, join.n_small))
    if not slope.is_cuda:  # PyTorch's products of bf16 summed in fp32 are a GPU's
        slope, kernels = slope.float(), kernels.float()
    return spread(slope, kernels, join.kernel).movedim(-1, 2)
