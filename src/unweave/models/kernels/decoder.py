"""The transposed convolutions of stacked decoders on GPU kernels, from the first image to outputs, and back."""

from collections.abc import Sequence
from typing import Any

import torch

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Precision, correlate, down
from unweave.models.kernels.encoder import bias_of
from unweave.models.kernels.join import Join
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.layout import Layout
from unweave.models.kernels.pixels import FLOATS, Frame, pitch
from unweave.models.kernels.resident import up_forward
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

Outputs = Float[Tensor, "model batch channel height width"]
ByPixel = Float[Tensor, "model batch h2 w2 four"]


def inner_images(
    joins: Sequence[Join], first: Tensor, weights: Tensor, product: str
) -> list[Float[Tensor, "model batch height width channel"]]:
    """The first image, and what comes out of every transposed convolution but the last, rectified."""
    images = [first]
    for join in joins:
        images.append(up_forward(join, images[-1], weights, product))
    return images


def inner_images_backward(
    joins: Sequence[Join], images: Sequence[Tensor], slope: Tensor, weights: Tensor, gradients: Tensor, product: str,
    later: Later = in_turn,
) -> Float[Tensor, "model batch height width channel"]:  # fmt: skip
    """The slope by the first image where that is positive, from that by the last; the weights' go into the rows."""
    for place in range(len(joins) - 1, -1, -1):
        join, image = joins[place], images[place]
        later(correlate, join, slope, image, gradients, product)
        below = joins[place - 1]
        bias = bias_of(gradients, below, below.n_big) if place else None
        slope = down(join, slope, weights, product, like=image, bias_gradient=bias, later=later)
    return slope


def in_rows(pixels: ByPixel, channels: int) -> Outputs:
    """Outputs in rows and columns, from outputs by small pixel, row parity, column parity and channel."""
    outputs = pixels.unflatten(4, (2, 2, pitch(channels)))[..., :channels]
    return outputs.permute(0, 1, 6, 2, 4, 3, 5).flatten(5, 6).flatten(3, 4)


def by_small_pixel(outputs: Outputs) -> ByPixel:
    """The inverse of :func:`in_rows`."""
    height, width, channels = outputs.shape[3], outputs.shape[4], outputs.shape[2]
    pixels = outputs.unflatten(4, (width // 2, 2)).unflatten(3, (height // 2, 2)).permute(0, 1, 3, 5, 4, 6, 2)
    return torch.nn.functional.pad(pixels, (0, pitch(channels) - channels)).flatten(4)


class Decoded(torch.autograd.Function):
    """The outputs of every model's transposed convolutions, from a rectified first image."""

    @staticmethod
    def forward(
        ctx: Any, x: Outputs, layout: Layout, joins: Sequence[Join], precision: Precision, *given: Tensor
    ) -> Outputs:
        weights = layout.rows(dict(zip(layout.names, given))).to(precision.stored)
        *inner, last = joins
        first = x.movedim(2, -1).to(precision.stored).contiguous()
        images = inner_images(inner, first, weights, precision.product)
        frame = Frame(FLOATS, last.n_big, 2 * last.height, 2 * last.width, 0, 0)
        _, pixels, _ = last_forward(last, frame, None, images[-1], weights, precision.product)
        ctx.kept = layout, joins, precision, weights, images
        return in_rows(pixels, last.n_big).contiguous()  # what follows goes through them several times

    @staticmethod
    def backward(ctx: Any, slope: Outputs) -> tuple[Tensor | None, ...]:
        layout, joins, precision, weights, images = ctx.kept
        *inner, last = joins
        gradients = torch.zeros(weights.shape, device=weights.device)
        pixels = by_small_pixel(slope)
        sum_pixels(pixels, bias_of(gradients, last, last.n_big))
        below = inner[-1]
        by_image = last_backward(
            last, last.n_big, pixels.to(precision.stored), None, images[-1], weights, gradients, precision.product,
            bias_gradient=bias_of(gradients, below, below.n_big),
        )  # fmt: skip
        by_x = inner_images_backward(inner, images, by_image, weights, gradients, precision.product)
        return by_x.float().movedim(-1, 2), None, None, None, *layout.views(gradients).values()


def sum_pixels(pixels: ByPixel, out: Float[Tensor, "model channel"]) -> None:
    """The sum of every channel over a batch: over lines, over images, then over what stands in a line."""
    n_models, batch, height, width, four = pixels.shape
    lines = pixels.new_empty(n_models, batch, width * four, dtype=torch.float32)
    add_up(pixels.reshape(n_models * batch, height, -1), lines.flatten(0, 1))
    line = torch.empty_like(lines[:, 0])
    add_up(lines, line)
    add_up(outputs_by_channel(line.unflatten(1, (width, four)), out.shape[1]), out)


def outputs_by_channel(rows: Float[Tensor, "model row four"], channels: int) -> Float[Tensor, "model row4 channel"]:
    """Every row holds the four parities of every channel."""
    return rows.unflatten(2, (4, pitch(channels)))[..., :channels].flatten(1, 2)
