"""The first two convolutions without the image between them: it is made again from 16 bits wherever it is needed.

Forward, both are one kernel that reads masks and writes the second image; backward, what lies between comes from the
same bits. 12.6 MB a model-step less than to store it once and read it twice.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from shared_columns import from_left, from_right  # beside this file, as is the next
from way import Way

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, Precision, correlate, down, up
from unweave.models.kernels.encoder import bias_of
from unweave.models.kernels.first_two import _neighbours, _parity_places
from unweave.models.kernels.pixels import MASKS, Frame
from unweave.models.kernels.resident import in_batch
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

FORWARD, BACKWARD = Way(64, 8, 4, 2), Way(64, 16, 4, 3)
"""``run`` is the number of images of one program."""


def encoded_images(
    joins: Sequence[Join], precision: Precision, weights: Tensor, frame: Frame, examples: Tensor, leak: float = 0.0
) -> list[Tensor]:
    """As the package's, but the first image is not made: masks stand in its place."""
    assert (frame.packing, precision.stored, leak) == (MASKS, torch.bfloat16, 0)
    layers = [examples, two_forward(*joins[:2], examples, weights, precision.product)]
    for join in joins[2:]:
        layers.append(down(join, layers[-1], weights, precision.product, activate=True))
    return layers


def encoded_images_backward(
    joins: Sequence[Join], precision: Precision, weights: Tensor, frame: Frame, examples: Tensor, images: list[Tensor],
    slope: Tensor, gradients: Tensor, later: Later = in_turn,
) -> None:  # fmt: skip
    """As the package's, without the first image."""
    top, product = joins[-1], precision.product
    later(add_up, slope.flatten(1, 3), bias_of(gradients, top, top.n_small))
    for place in range(len(images) - 1, 1, -1):
        join, below, image = joins[place], joins[place - 1], images[place - 1]
        later(correlate, join, image, slope, gradients, product)
        bias = bias_of(gradients, below, below.n_small)
        slope = up(join, slope, weights, product, like=image, bias_gradient=bias, later=later)
    two_backward(*joins[:2], examples, slope, weights, gradients, product, later)


def two_forward(
    first: Join, second: Join, masks: Tensor, weights: Tensor, product: str
) -> Float[Tensor, "model batch height width small"]:
    """Both convolutions with bias and rectifier, from the bits under the first one's kernels."""
    n_models, n_batch = masks.shape[:2]
    out = weights.new_empty(n_models, n_batch, second.height, second.width, second.n_small)
    parts = triton.cdiv(n_batch, FORWARD.run)
    _two_forward[(n_models * parts,)](
        masks, weights, out, weights.stride(0), first.weight_at, first.bias_at, second.weight_at, second.bias_at,
        parts, n_batch, second.height, second.width, second.n_big, second.n_small, FORWARD.run, FORWARD.rows, product,
        **FORWARD.options,
    )  # fmt: skip
    return out


def two_backward(
    first: Join, second: Join, masks: Tensor, slope: Tensor, weights: Tensor, gradients: Tensor, product: str,
    later: Later = in_turn,
) -> None:  # fmt: skip
    """The gradients of both from the slope by the second's output."""
    n_models, n_batch = masks.shape[:2]
    parts = triton.cdiv(n_batch, BACKWARD.run)
    shares = gradients.new_empty(n_models, parts, 16 * second.n_big * second.n_small)
    firsts = gradients.new_empty(n_models, parts * 4, 17, first.n_small)
    _two_backward[(n_models * parts * 4,)](
        slope, weights, masks, shares, firsts, weights.stride(0), first.weight_at, first.bias_at, second.weight_at,
        parts, n_batch, second.height, second.width, second.n_big, second.n_small, BACKWARD.run, BACKWARD.rows,
        product, **BACKWARD.options,
    )  # fmt: skip
    later(add_up, shares, gradients[:, second.weight_at : second.weight_at + shares.shape[2]])
    n_weights = 16 * first.n_small
    later(add_up, firsts[:, :, :16].flatten(2), gradients[:, first.weight_at : first.weight_at + n_weights])
    later(add_up, firsts[:, :, 16], gradients[:, first.bias_at : first.bias_at + first.n_small])


@triton.jit
def _two_forward(
    masks, weights, out, weight_stride, first_at, first_bias_at, second_at, second_bias_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """Each pixel between is made for two of the four lines that see it, and told to three columns.

    A small pixel has two columns of its own, 2x and 2x + 1, and hears one of either neighbour's:
    out(x) = own(x) + right(x − 1) + left(x + 1).
    """
    model = (tl.program_id(0) // parts).to(tl.int64)
    begin = tl.program_id(0) % parts * IMAGES
    masks += model * n_batch * (4 * H * W)
    out += model * n_batch * (H * W * CS)
    row_of_weights = weights + model * weight_stride
    channel, k, row = tl.arange(0, CB), tl.arange(0, 16), tl.arange(0, ROWS)
    first = tl.load(row_of_weights + first_at + k[:, None] * CB + channel[None, :])
    first_bias = tl.load(row_of_weights + first_bias_at + channel).to(tl.float32)
    second_bias = tl.load(row_of_weights + second_bias_at + tl.arange(0, CS)).to(tl.float32)
    places = row_of_weights + second_at + (channel[:, None] * CS + tl.arange(0, CS)[None, :])
    second = ()
    for tap in tl.static_range(16):
        second = second + (tl.load(places + tap * (CB * CS)),)  # type: ignore[assignment]  # noqa: RUF005
    x, y = row % W, row // W % H
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        own = tl.zeros((ROWS, CS), dtype=tl.float32) + second_bias[None, :]
        left = tl.zeros((ROWS, CS), dtype=tl.float32)
        right = tl.zeros((ROWS, CS), dtype=tl.float32)
        for ky in tl.static_range(4):
            line = 2 * (top + y) + (ky - 1)
            ok = inside & (line >= 0) & (line < 2 * H)
            place = (image + row // (H * W)) * (4 * H * W) + line * (2 * W) + 2 * x
            for column in tl.static_range(2):
                word = tl.load(masks + place + column, mask=ok, other=0)
                active = between(word, ok, first, first_bias, PRODUCT)
                own = tl.dot(active, second[ky * 4 + 1 + column], own, input_precision=PRODUCT)
                if column == 0:
                    left = tl.dot(active, second[ky * 4 + 3], left, input_precision=PRODUCT)
                else:
                    right = tl.dot(active, second[ky * 4], right, input_precision=PRODUCT)
        total = own + from_left(right, x, ROWS, CS) + from_right(left, x, W, ROWS, CS)
        place = (image * (H * W) + top * W + row)[:, None] * CS + tl.arange(0, CS)[None, :]
        tl.store(out + place, tl.maximum(total, 0.0).to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def between(word, ok, first, first_bias, PRODUCT: tl.constexpr):
    """[pixel, channel] what the first convolution makes of 16 bits, rectified and rounded; 0 outside the image."""
    seen = bits_of(word, first.dtype)
    # the sum begins with the bias: nothing is added afterwards, and outside it stays 0
    total = tl.dot(seen, first, tl.where(ok[:, None], first_bias[None, :], 0.0), input_precision=PRODUCT)
    return tl.maximum(total, 0.0).to(first.dtype)


@triton.jit
def bits_of(word, dtype: tl.constexpr):
    """[pixel, tap] 16 bits as numbers."""
    return tl.where((word[:, None] & (1 << tl.arange(0, 16))[None, :]) != 0, 1.0, 0.0).to(dtype)


@triton.jit
def _two_backward(
    small, weights, masks, shares, firsts, weight_stride, first_at, first_bias_at, second_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    part = tl.program_id(0) // 4
    model = (part // parts).to(tl.int64)
    begin = part % parts * IMAGES
    small += model * n_batch * (H * W * CS)
    masks += model * n_batch * (4 * H * W)
    channel, k, row = tl.arange(0, CB), tl.arange(0, 16), tl.arange(0, ROWS)
    row_of_weights = weights + model * weight_stride
    first = tl.load(row_of_weights + first_at + k[:, None] * CB + channel[None, :])
    first_bias = tl.load(row_of_weights + first_bias_at + channel).to(tl.float32)
    places0, places1 = _parity_places(py, px, 0, CB, CS), _parity_places(py, px, 1, CB, CS)
    weight0, weight1 = tl.load(row_of_weights + second_at + places0), tl.load(row_of_weights + second_at + places1)
    total0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total = tl.zeros((CB, 16), dtype=tl.float32)
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    there = (row // (H * W) * (2 * H) + 2 * (row // W % H)) * (2 * W) + 2 * (row % W)
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        word = tl.load(masks + ((image * (2 * H) + 2 * top + py) * (2 * W) + px) + there, mask=inside, other=0)
        patch0 = _neighbours(small, image, top, py - 1, px, inside, ROWS, H, W, CS)
        patch1 = _neighbours(small, image, top, py, px, inside, ROWS, H, W, CS)
        active = between(word, inside, first, first_bias, PRODUCT)
        slope = tl.dot(patch0, weight0, input_precision=PRODUCT)
        slope = tl.dot(patch1, weight1, slope, input_precision=PRODUCT)
        total0 = tl.dot(tl.trans(patch0), active, total0, input_precision=PRODUCT)
        total1 = tl.dot(tl.trans(patch1), active, total1, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        seen = bits_of(word, active.dtype)
        total = tl.dot(tl.trans(slope.to(active.dtype)), seen, total, input_precision=PRODUCT)
    shares += part.to(tl.int64) * (16 * CB * CS)
    tl.store(shares + places0, total0)
    tl.store(shares + places1, total1)
    firsts += tl.program_id(0).to(tl.int64) * (17 * CB)
    tl.store(firsts + k[None, :] * CB + channel[:, None], total)
    tl.store(firsts + 16 * CB + channel, tl.sum(summed, axis=0))
