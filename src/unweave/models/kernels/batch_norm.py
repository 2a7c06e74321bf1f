"""Batch normalisation of many models, with the rectifier before it, in Triton.

With a = max(x, leak · x) of a channel: y = γ (a − mean a) / √(var a + ε) + β over all examples and places of a batch.
Channels lie last. Sums are made in parts of fixed size, so that no model's bits depend on the others. A model may have
several batches, each with its own mean and variance.
"""

# ruff: noqa: N803, SIM108
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
MOST_AT_ONCE = 256
"""Parts whose moments are joined at once; more are joined one after the other."""

Rows = Float[Tensor, "set row channel"]
"""Of every model one set of rows, or as many as it has batches."""
Channels = Float[Tensor, "model channel"]
OfSets = Float[Tensor, "set channel"]


def takes(n_channels: int) -> bool:
    """Whether the kernels divide so many channels evenly."""
    return n_channels % CHANNELS == 0


@dataclass(frozen=True)
class Setting:
    """The slope of the rectifier below 0, the constants of the norm, and the groups that it takes a batch in."""

    leak: float
    momentum: float
    epsilon: float
    groups: int = 1


class Norm(torch.autograd.Function):
    """y of every model, and the next running mean and variance, which have no gradient."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "model batch channel ..."], weight: Tensor, bias: Tensor, running_mean: Tensor,
        running_variance: Tensor, setting: Setting,
    ) -> tuple[Tensor, Channels, Channels]:  # fmt: skip
        last = x.movedim(2, -1)
        rows = last.reshape(len(x) * setting.groups, -1, x.shape[2])
        found = normalise(rows, weight, bias, running_mean, running_variance, setting)
        y, mean, inverse, *moved = found
        next_mean, next_variance = (one.view(len(x), setting.groups, -1)[:, -1] for one in moved)
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
    x: Rows, weight: Channels, bias: Channels, running_mean: Channels, running_variance: Channels, setting: Setting, *,
    before: Channels | None = None, dtype: torch.dtype | None = None,
) -> tuple[Rows, OfSets, OfSets, OfSets, OfSets]:  # fmt: skip
    """y, the mean, 1 / √(variance + ε), and the next running mean and variance (of n − 1).

    ``before`` is added to x before it is rectified; ``dtype`` is that of y.
    """
    n_sets, n_rows, n_channels = x.shape
    groups = n_sets // len(weight)
    parts, blocks = triton.cdiv(n_rows, SPAN), n_channels // CHANNELS
    sums = x.new_empty(n_sets, parts, 2, n_channels, dtype=torch.float32)
    y = torch.empty_like(x, dtype=dtype or x.dtype)
    mean, inverse, next_mean, next_variance = sums.new_empty(4, n_sets, n_channels)
    leak, before_stride = setting.leak, _stride(before)
    _moments[(n_sets * parts * blocks,)](
        x, before, sums, before_stride, n_rows, n_channels, parts, blocks, groups, leak, SPAN, ROWS, CHANNELS,
        num_warps=4,
    )  # fmt: skip
    at_once = triton.next_power_of_2(parts) if parts <= MOST_AT_ONCE else 0
    _together[(n_sets * blocks,)](
        sums, mean, inverse, running_mean, running_variance, next_mean, next_variance,
        running_mean.stride(0), running_variance.stride(0), n_rows, n_channels, parts, blocks, groups,
        setting.momentum, setting.epsilon, SPAN, CHANNELS, at_once, num_warps=4 if at_once > 8 else 1,
    )  # fmt: skip
    _apply[(n_sets * parts * blocks,)](
        x, before, weight, bias, mean, inverse, y, before_stride, weight.stride(0), bias.stride(0), n_rows, n_channels,
        parts, blocks, groups, leak, SPAN, ROWS, CHANNELS, num_warps=4,
    )  # fmt: skip
    return y, mean, inverse, next_mean, next_variance


def normalise_backward(
    slope: Rows, x: Rows, weight: Channels, mean: OfSets, inverse: OfSets, leak: float, *,
    before: Channels | None = None, by_before: Channels | None = None,
) -> tuple[Rows, Channels, Channels]:  # fmt: skip
    """The slopes by x, γ and β. ``by_before`` takes that by ``before``."""
    n_sets, n_rows, n_channels = x.shape
    n_models = len(weight)
    groups = n_sets // n_models
    parts, blocks = triton.cdiv(n_rows, SPAN), n_channels // CHANNELS
    sums, by_x = x.new_empty(n_sets, parts, 2, n_channels, dtype=torch.float32), torch.empty_like(x)
    before_stride = _stride(before)
    _slopes[(n_sets * parts * blocks,)](
        slope, x, before, mean, inverse, sums, before_stride, n_rows, n_channels, parts, blocks, groups, leak,
        SPAN, ROWS, CHANNELS, num_warps=4,
    )  # fmt: skip
    totals = sums.new_empty(n_sets, 2, n_channels)
    add_up(sums.flatten(2), totals.flatten(1))
    shares = None if by_before is None else sums.new_empty(n_models, groups * parts, n_channels)
    _apply_back[(n_sets * parts * blocks,)](
        slope, x, before, weight, mean, inverse, totals, by_x, shares, before_stride, weight.stride(0), n_rows,
        n_channels, parts, blocks, groups, leak, SPAN, ROWS, CHANNELS, num_warps=4,
    )  # fmt: skip
    if shares is not None and by_before is not None:
        add_up(shares, by_before)
    if groups > 1:
        totals = sums.new_empty(n_models, 2, n_channels)
        add_up(sums.view(n_models, groups * parts, -1), totals.flatten(1))
    return by_x, totals[:, 1], totals[:, 0]


def _stride(before: Channels | None) -> int:
    return 0 if before is None else before.stride(0)


@triton.jit
def _moments(
    x, before, sums, before_stride, n_rows, n_channels, parts, blocks, groups, LEAK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Of some rows and channels: the mean of a, and the sum of squares around it."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    x += model * n_rows * n_channels
    shift = before_of(before, model // groups, before_stride, channel)
    n_here = tl.minimum(SPAN, n_rows - part * SPAN)
    total = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        a = tl.load(x + row[:, None] * n_channels + channel[None, :], mask=inside, other=0.0).to(tl.float32)
        total += tl.where(inside, rectified(a + shift[None, :], LEAK), 0.0)
    mean = tl.sum(total, axis=0) / n_here
    squares = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        a = tl.load(x + row[:, None] * n_channels + channel[None, :], mask=inside, other=0.0).to(tl.float32)
        away = tl.where(inside, rectified(a + shift[None, :], LEAK) - mean[None, :], 0.0)
        squares += away * away
    sums += (model * parts + part) * 2 * n_channels
    tl.store(sums + channel, mean)
    tl.store(sums + n_channels + channel, tl.sum(squares, axis=0))


@triton.jit
def _together(
    sums, mean, inverse, running_mean, running_variance, next_mean, next_variance, mean_stride, variance_stride,
    n_rows, n_channels, parts: tl.constexpr, blocks, groups, momentum, epsilon, SPAN: tl.constexpr,
    CHANNELS: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Means and squares of parts, joined; running ← (1 − momentum) running + momentum · batch."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    model = (tl.program_id(0) // blocks).to(tl.int64)
    if AT_ONCE > 0:
        part = tl.arange(0, AT_ONCE)
        inside = (part < parts)[:, None]
        place = sums + (model * parts + part)[:, None] * 2 * n_channels + channel[None, :]
        here = tl.where(part < parts, tl.minimum(SPAN, n_rows - part * SPAN).to(tl.float32), 0.0)[:, None]
        means, own = tl.load(place, mask=inside, other=0.0), tl.load(place + n_channels, mask=inside, other=0.0)
        middle = tl.sum(means * here, axis=0) / n_rows
        # Σ(a − m)² = Σ of each part's own, and nᵢ (mᵢ − m)²
        away = means - middle[None, :]
        squares = tl.sum(own + away * away * here, axis=0)
    else:
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
    last_mean = tl.load(running_mean + model // groups * mean_stride + channel)
    last_variance = tl.load(running_variance + model // groups * variance_stride + channel)
    tl.store(next_mean + target, last_mean + momentum * (middle - last_mean))
    tl.store(next_variance + target, last_variance + momentum * (variance - last_variance))


@triton.jit
def _apply(
    x, before, weight, bias, mean, inverse, y, before_stride, weight_stride, bias_stride, n_rows, n_channels, parts,
    blocks, groups, LEAK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """y of some rows and channels."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    own = model // groups
    scale = tl.load(inverse + known) * tl.load(weight + own * weight_stride + channel)
    middle, behind = tl.load(mean + known), tl.load(bias + own * bias_stride + channel)
    shift = before_of(before, own, before_stride, channel)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        a = rectified(tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + shift[None, :], LEAK)
        found = (a - middle[None, :]) * scale[None, :] + behind[None, :]
        tl.store(y + place, found.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _slopes(
    slope, x, before, mean, inverse, sums, before_stride, n_rows, n_channels, parts, blocks, groups, LEAK: tl.constexpr,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Of some rows and channels: Σ slope and Σ slope · (a − mean) / √(variance + ε)."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    middle, shrink = tl.load(mean + known), tl.load(inverse + known)
    shift = before_of(before, model // groups, before_stride, channel)
    plain, met = tl.zeros((ROWS, CHANNELS), dtype=tl.float32), tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        one = tl.load(slope + place, mask=inside, other=0.0).to(tl.float32)
        a = rectified(tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + shift[None, :], LEAK)
        plain += one
        met += one * ((a - middle[None, :]) * shrink[None, :])
    sums += (model * parts + part) * 2 * n_channels
    tl.store(sums + channel, tl.sum(plain, axis=0))
    tl.store(sums + n_channels + channel, tl.sum(met, axis=0))


@triton.jit
def _apply_back(
    slope, x, before, weight, mean, inverse, totals, by_x, shares, before_stride, weight_stride, n_rows, n_channels,
    parts, blocks, groups, LEAK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """γ / √(variance + ε) · (slope − mean slope − â · mean of slope · â), through the rectifier."""
    channel = tl.program_id(0) % blocks * CHANNELS + tl.arange(0, CHANNELS)
    part, model = tl.program_id(0) // blocks % parts, (tl.program_id(0) // blocks // parts).to(tl.int64)
    known = model * n_channels + channel
    middle, shrink = tl.load(mean + known), tl.load(inverse + known)
    own = model // groups
    scale = shrink * tl.load(weight + own * weight_stride + channel)
    shift = before_of(before, own, before_stride, channel)
    summed = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    plain = tl.load(totals + model * 2 * n_channels + channel) / n_rows
    met = tl.load(totals + model * 2 * n_channels + n_channels + channel) / n_rows
    for begin in range(0, SPAN, ROWS):
        row = part * SPAN + begin + tl.arange(0, ROWS)
        inside = (row < n_rows)[:, None]
        place = model * n_rows * n_channels + row[:, None] * n_channels + channel[None, :]
        one = tl.load(slope + place, mask=inside, other=0.0).to(tl.float32)
        seen = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + shift[None, :]
        within = (rectified(seen, LEAK) - middle[None, :]) * shrink[None, :]
        found = scale[None, :] * (one - plain[None, :] - within * met[None, :])
        found = passed(found, seen, LEAK)
        tl.store(by_x + place, found.to(by_x.dtype.element_ty), mask=inside)
        if shares is not None:
            summed += tl.where(inside, found, 0.0)
    if shares is not None:
        tl.store(shares + (model * parts + part) * n_channels + channel, tl.sum(summed, axis=0))


@triton.jit
def before_of(before, model, stride, channel):
    """What is added to some channels before they are rectified: 0 where nothing is."""
    if before is None:
        found = tl.zeros(channel.shape, dtype=tl.float32)
    else:
        found = tl.load(before + model * stride + channel)
    return found
