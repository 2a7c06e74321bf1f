"""Batch normalisation of many models, with the rectifier before it, in Triton.

With a = max(x, leak · x) of a channel: y = γ (a − mean a) / √(var a + ε) + β over all examples and places of a batch.
Channels lie last. Sums are made in parts of fixed size, so that no model's bits depend on the others.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from unweave.models.kernels.rectifiers import passed, rectified
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

SPAN, ROWS, CHANNELS = 1024, 64, 32
"""Rows that one program adds up, rows at a time, and channels. Fixed, whatever the number of models."""

Rows = Float[Tensor, "model row channel"]
Channels = Float[Tensor, "model channel"]


def takes(n_channels: int) -> bool:
    """Whether the kernels divide so many channels evenly."""
    return n_channels % CHANNELS == 0


@dataclass(frozen=True)
class Setting:
    """The slope of the rectifier below 0, and the constants of the norm."""

    leak: float
    momentum: float
    epsilon: float


class Norm(torch.autograd.Function):
    """y of every model, and the next running mean and variance, which have no gradient."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "model batch channel ..."], weight: Tensor, bias: Tensor, running_mean: Tensor,
        running_variance: Tensor, setting: Setting,
    ) -> tuple[Tensor, Channels, Channels]:  # fmt: skip
        last = x.movedim(2, -1)
        rows = last.reshape(len(x), -1, x.shape[2])
        found = normalise(rows, weight, bias, running_mean, running_variance, setting)
        y, mean, inverse, next_mean, next_variance = found
        ctx.save_for_backward(rows, weight, mean, inverse)
        ctx.leak = setting.leak
        ctx.mark_non_differentiable(next_mean, next_variance)
        ctx.set_materialize_grads(False)  # or zeros would be made for them
        return y.view(last.shape).movedim(-1, 2), next_mean, next_variance

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        last = slope.movedim(2, -1)
        rows, weight, mean, inverse = ctx.saved_tensors
        by_x, by_weight, by_bias = normalise_backward(last.reshape(rows.shape), rows, weight, mean, inverse, ctx.leak)
        return by_x.view(last.shape).movedim(-1, 2), by_weight, by_bias, None, None, None


def normalise(
    x: Rows, weight: Channels, bias: Channels, running_mean: Channels, running_variance: Channels, setting: Setting
) -> tuple[Rows, Channels, Channels, Channels, Channels]:
    """y, the mean, 1 / √(variance + ε), and the next running mean and variance (of n − 1)."""
    n_models, n_rows, n_channels = x.shape
    parts, blocks = triton.cdiv(n_rows, SPAN), n_channels // CHANNELS
    sums = x.new_empty(n_models, parts, 2, n_channels)
    y, (mean, inverse, next_mean, next_variance) = torch.empty_like(x), x.new_empty(4, n_models, n_channels)
    leak = setting.leak
    _moments[(n_models * parts * blocks,)](
        x, sums, n_rows, n_channels, parts, blocks, leak, SPAN, ROWS, CHANNELS, num_warps=4
    )
    _together[(n_models * blocks,)](
        sums, mean, inverse, running_mean, running_variance, next_mean, next_variance,
        running_mean.stride(0), running_variance.stride(0), n_rows, n_channels, parts, blocks,
        setting.momentum, setting.epsilon, SPAN, CHANNELS, num_warps=1,
    )  # fmt: skip
    _apply[(n_models * parts * blocks,)](
        x, weight, bias, mean, inverse, y, weight.stride(0), bias.stride(0), n_rows, n_channels, parts, blocks, leak,
        SPAN, ROWS, CHANNELS, num_warps=4,
    )  # fmt: skip
    return y, mean, inverse, next_mean, next_variance


def normalise_backward(
    slope: Rows, x: Rows, weight: Tensor, mean: Tensor, inverse: Tensor, leak: float
) -> tuple[Rows, Channels, Channels]:
    """The slopes by x, γ and β."""
    n_models, n_rows, n_channels = x.shape
    parts, blocks = triton.cdiv(n_rows, SPAN), n_channels // CHANNELS
    sums, by_x = x.new_empty(n_models, parts, 2, n_channels), torch.empty_like(x)
    _slopes[(n_models * parts * blocks,)](
        slope, x, mean, inverse, sums, n_rows, n_channels, parts, blocks, leak, SPAN, ROWS, CHANNELS, num_warps=4
    )
    totals = x.new_empty(n_models, 2, n_channels)
    add_up(sums.flatten(2), totals.flatten(1))
    _apply_back[(n_models * parts * blocks,)](
        slope, x, weight, mean, inverse, totals, by_x, weight.stride(0), n_rows, n_channels, parts, blocks, leak,
        SPAN, ROWS, CHANNELS, num_warps=4,
    )  # fmt: skip
    return by_x, totals[:, 1], totals[:, 0]


@triton.jit
def _moments(
    x, sums, n_rows, n_channels, parts, blocks, LEAK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Of some rows and channels: the mean of a, and the sum of squares around it."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    x += model * n_rows * n_channels
    n_here = tl.minimum(SPAN, n_rows - part * SPAN)
    total = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        a = tl.load(x + row[:, None] * n_channels + channel[None, :], mask=(row < n_rows)[:, None], other=0.0)
        total += rectified(a, LEAK)
    mean = tl.sum(total, axis=0) / n_here
    squares = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        a = tl.load(x + row[:, None] * n_channels + channel[None, :], mask=inside, other=0.0)
        away = tl.where(inside, rectified(a, LEAK) - mean[None, :], 0.0)
        squares += away * away
    sums += (model * parts + part) * 2 * n_channels
    tl.store(sums + channel, mean)
    tl.store(sums + n_channels + channel, tl.sum(squares, axis=0))


@triton.jit
def _together(
    sums, mean, inverse, running_mean, running_variance, next_mean, next_variance, mean_stride, variance_stride,
    n_rows, n_channels, parts: tl.constexpr, blocks, momentum, epsilon, SPAN: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Means and squares of parts, joined one after the other; running ← (1 − momentum) running + momentum · batch."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    model = (tl.program_id(0) // blocks).to(tl.int64)
    middle, squares = tl.zeros((CHANNELS,), dtype=tl.float32), tl.zeros((CHANNELS,), dtype=tl.float32)
    before = tl.zeros((CHANNELS,), dtype=tl.float32)
    for part in range(parts):
        place = sums + (model * parts + part) * 2 * n_channels + channel
        here = tl.minimum(SPAN, n_rows - part * SPAN).to(tl.float32)
        share = here / (before + here)
        away = tl.load(place) - middle
        # Σ(a − m)² of both = that of each, and δ² n₁ n₂ / (n₁ + n₂)
        squares += tl.load(place + n_channels) + away * away * before * share
        middle += away * share
        before += here
    target = model * n_channels + channel
    tl.store(mean + target, middle)
    tl.store(inverse + target, tl.rsqrt(squares / n_rows + epsilon))
    variance = squares / tl.maximum(n_rows - 1, 1)
    last_mean = tl.load(running_mean + model * mean_stride + channel)
    last_variance = tl.load(running_variance + model * variance_stride + channel)
    tl.store(next_mean + target, last_mean + momentum * (middle - last_mean))
    tl.store(next_variance + target, last_variance + momentum * (variance - last_variance))


@triton.jit
def _apply(
    x, weight, bias, mean, inverse, y, weight_stride, bias_stride, n_rows, n_channels, parts, blocks,
    LEAK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """y of some rows and channels."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    scale = tl.load(inverse + known) * tl.load(weight + model * weight_stride + channel)
    middle, shift = tl.load(mean + known), tl.load(bias + model * bias_stride + channel)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        a = rectified(tl.load(x + place, mask=inside, other=0.0), LEAK)
        tl.store(y + place, (a - middle[None, :]) * scale[None, :] + shift[None, :], mask=inside)


@triton.jit
def _slopes(
    slope, x, mean, inverse, sums, n_rows, n_channels, parts, blocks, LEAK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Of some rows and channels: Σ slope and Σ slope · (a − mean) / √(variance + ε)."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    middle, shrink = tl.load(mean + known), tl.load(inverse + known)
    plain, met = tl.zeros((ROWS, CHANNELS), dtype=tl.float32), tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        one = tl.load(slope + place, mask=inside, other=0.0)
        a = rectified(tl.load(x + place, mask=inside, other=0.0), LEAK)
        plain += one
        met += one * ((a - middle[None, :]) * shrink[None, :])
    sums += (model * parts + part) * 2 * n_channels
    tl.store(sums + channel, tl.sum(plain, axis=0))
    tl.store(sums + n_channels + channel, tl.sum(met, axis=0))


@triton.jit
def _apply_back(
    slope, x, weight, mean, inverse, totals, by_x, weight_stride, n_rows, n_channels, parts, blocks,
    LEAK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """γ / √(variance + ε) · (slope − mean slope − â · mean of slope · â), through the rectifier."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    middle, shrink = tl.load(mean + known), tl.load(inverse + known)
    scale = shrink * tl.load(weight + model * weight_stride + channel)
    plain = tl.load(totals + model * 2 * n_channels + channel) / n_rows
    met = tl.load(totals + model * 2 * n_channels + n_channels + channel) / n_rows
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        one = tl.load(slope + place, mask=inside, other=0.0)
        seen = tl.load(x + place, mask=inside, other=0.0)
        within = (rectified(seen, LEAK) - middle[None, :]) * shrink[None, :]
        found = scale[None, :] * (one - plain[None, :] - within * met[None, :])
        tl.store(by_x + place, passed(found, seen, LEAK), mask=inside)
