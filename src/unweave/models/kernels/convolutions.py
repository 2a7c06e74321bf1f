"""Stacked convolutions of stride 2 and their transposes as implicit matrix products, in Triton.

A layer joins a ``big`` image [model, batch, 2h, 2w, big] and a ``small`` one [model, batch, h, w, small] through
weights [model, row, column, big, small]. A convolution's forward pass and a transposed one's input gradient go
``down``; the other two go ``up``; both weight gradients are one correlation. Channels lie last, so a kernel row is one
run of memory.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.copies import correlate_copied, down_copied, up_copied
from unweave.models.kernels.join import Join
from unweave.models.kernels.rectifiers import passed, rectified
from unweave.models.kernels.sums import add_up
from unweave.models.kernels.up_runs import up_by_runs
from unweave.models.kernels.whole import up_whole
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Precision:
    """What is stored between layers and how products are rounded; sums are always fp32."""

    stored: torch.dtype
    product: str


PRECISIONS = {
    "bf16": Precision(torch.bfloat16, "ieee"),
    "tf32": Precision(torch.float32, "tf32"),
    "fp32": Precision(torch.float32, "tf32x3"),
}


@dataclass(frozen=True)
class Tiles:
    """How a kernel divides its work. Fixed per layer, never by the number of models: a model's bits depend on it."""

    rows: int
    run: int
    warps: int
    stages: int
    inner: int = 64


ALL = 4
"""Parities at a time, for ``up``: with all four, every small pixel is read from its nine neighbours once."""


def down(
    join: Join, big: Tensor, weights: Tensor, product: str, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """From big to small: with ``activate`` plus bias and rectified, with ``like`` a slope that it lets pass.

    ``leak`` is the rectifier's slope below 0. ``bias_gradient`` [model, small] takes the sum of the result over batch
    and pixels.
    """
    copied = down_copied(
        join, big, weights, activate=activate, like=like, leak=leak, bias_gradient=bias_gradient, later=later
    )
    if copied is not None:
        return copied
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    n_pixels = n_batch * join.height * join.width
    chosen = tiles_for("down", join, big.dtype)
    tiles = triton.cdiv(n_pixels, chosen.rows)
    sums = _sums(bias_gradient, n_models, tiles, join.n_small)
    _down[(n_models * tiles,)](
        big, weights, small if like is None else like, small, sums, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, leak, chosen.rows, min(chosen.run, join.kernel * join.n_big), product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return small


def up(
    join: Join, small: Tensor, weights: Tensor, product: str, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """From small to big: with ``activate`` plus bias and rectified, with ``like`` a slope that it lets pass.

    ``leak`` is the rectifier's slope below 0. ``bias_gradient`` [model, big] takes the sum of the result over batch
    and pixels.
    """
    copied = up_copied(
        join, small, weights, activate=activate, like=like, leak=leak, bias_gradient=bias_gradient, later=later
    )
    if copied is not None:
        return copied
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    n_pixels = n_batch * join.height * join.width
    chosen = tiles_for("up", join, small.dtype)
    tiles = triton.cdiv(n_pixels, chosen.rows)
    kernel = up_by_runs if chosen.run > ALL else up_whole if chosen.run == ALL and join.kernel == 4 else _up
    programs = 4 * tiles if kernel is up_by_runs else tiles
    sums = _sums(bias_gradient, n_models, programs, join.n_big)
    kernel[(n_models * programs,)](
        small, weights, big if like is None else like, big, sums, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, leak, chosen.rows, chosen.run, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return big


def correlate(join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], product: str) -> None:
    """The gradient of the weights, written into the rows: one of the images is the layer's input, one its gradient."""
    if correlate_copied(join, big, small, gradients):
        return
    n_models, n_batch = big.shape[:2]
    chosen = tiles_for("correlate", join, big.dtype)
    span = min(chosen.run, join.kernel)
    _correlate[(n_models * (join.kernel // span),)](
        big, small, gradients, gradients.stride(0), join.weight_at, n_batch * join.height * join.width,
        join.height, join.width, join.n_big, join.n_small, join.kernel, span, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip


def _sums(wanted: Tensor | None, n_models: int, tiles: int, channels: int) -> Tensor | None:
    return None if wanted is None else wanted.new_empty(n_models, tiles, channels)


TUNED: dict[tuple[str, int, int], Tiles] = {
    ("down", 32, 32): Tiles(128, 32, 4, 4),
    ("down", 32, 64): Tiles(128, 32, 4, 4),
    ("down", 64, 64): Tiles(128, 64, 4, 3),
    ("down", 64, 128): Tiles(128, 64, 8, 3),
    ("down", 128, 128): Tiles(128, 64, 8, 3),
    ("up", 32, 32): Tiles(128, 4, 4, 3),
    ("up", 32, 64): Tiles(128, 4, 4, 3),
    ("up", 64, 64): Tiles(128, 1, 4, 1),
    ("up", 64, 128): Tiles(128, 64, 4, 3),
    ("up", 128, 128): Tiles(128, 32, 4, 4),
    ("correlate", 32, 32): Tiles(64, 2, 4, 3),
    ("correlate", 32, 64): Tiles(32, 2, 8, 4),
    ("correlate", 64, 64): Tiles(32, 1, 4, 3),
}
"""By kernel, big and small channels, for bf16 on an H200 (benchmarks/tune.py). ``run`` is the length of a product for
``down``, parities at a time for ``up`` or, above ALL, channels of one at a time, kernel rows at a time for
``correlate``."""


def tiles_for(what: str, join: Join, dtype: torch.dtype) -> Tiles:
    """The division found best on an H200 (benchmarks/NOTES.md), or a modest one."""
    known = TUNED.get((what, join.n_big, join.n_small))
    if known is not None and dtype == torch.bfloat16 and join.kernel == 4:
        return known
    if what == "correlate":
        return Tiles(32, 1, 8 if join.kernel * join.n_big * join.n_small > 8192 else 4, 2)
    return Tiles(64, 1, 4, 1) if what == "up" else Tiles(64, 64, 4, 2)


@triton.jit
def _down(
    big, weights, like, small, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, RUN: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    PAD: tl.constexpr = (K - 2) // 2
    channel = tl.arange(0, CS)
    big += model * n_pixels * (4 * CB)
    row_of_weights = weights + model * weight_stride
    total = tl.zeros((ROWS, CS), dtype=tl.float32)
    PIECES: tl.constexpr = K * CB // RUN
    for piece in range(K * PIECES):
        ky, k = piece // PIECES, piece % PIECES * RUN + tl.arange(0, RUN)
        line = 2 * y + ky - PAD
        begin = ((image * (2 * H) + line) * (2 * W) + 2 * x - PAD) * CB
        column = (2 * x - PAD)[:, None] + (k // CB)[None, :]
        ok = (inside & (line >= 0) & (line < 2 * H))[:, None] & (column >= 0) & (column < 2 * W)
        patch = tl.load(big + begin[:, None] + k[None, :], mask=ok, other=0.0)
        weight = tl.load(row_of_weights + weight_at + (ky * K * CB + k)[:, None] * CS + channel[None, :])
        total = tl.dot(patch, weight, total, input_precision=PRODUCT)
    if ACTIVATE:
        total = rectified(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], LEAK)
    place = model * n_pixels * CS + pixel[:, None] * CS + channel[None, :]
    if MASKED:
        total = passed(total, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
    tl.store(small + place, total.to(small.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        tl.store(sums + tl.program_id(0) * CS + channel, tl.sum(total, axis=0))


@triton.jit
def _up(
    small, weights, like, big, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, AHEAD: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    channel = tl.arange(0, CB)
    small += model * n_pixels * CS
    row_of_weights = weights + model * weight_stride
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    # AHEAD parities at a time: their loads are in flight together
    for turn in range(4 // AHEAD):
        for ahead in tl.static_range(AHEAD):
            py, px = (turn * AHEAD + ahead) // 2, (turn * AHEAD + ahead) % 2
            total = one_parity(small, row_of_weights + weight_at, image, y, x, py, px, inside, H, W, CB, CS, K, PRODUCT)
            if ACTIVATE:
                bias = tl.load(row_of_weights + bias_at + channel).to(tl.float32)
                total = rectified(total + bias[None, :], LEAK)
            target = (image * (2 * H) + 2 * y + py) * (2 * W) + 2 * x + px
            place = model * n_pixels * (4 * CB) + target[:, None] * CB + channel[None, :]
            if MASKED:
                total = passed(total, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
            tl.store(big + place, total.to(big.dtype.element_ty), mask=inside[:, None])
            if sums is not None:
                summed += total
    if sums is not None:
        tl.store(sums + tl.program_id(0) * CB + channel, tl.sum(summed, axis=0))


@triton.jit
def one_parity(
    small, weights, image, y, x, py, px, inside,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """The big pixels (2y + py, 2x + px) of some small ones, before bias and mask."""
    TAPS: tl.constexpr = K // 2
    k = tl.arange(0, TAPS * CS)
    tap, channel = k // CS, tl.arange(0, CB)
    total = tl.zeros((y.shape[0], CB), dtype=tl.float32)
    # output 2y + py hears input y + py − 1 + j through kernel row 3 − py − 2j (kernel 2: input y, row py)
    for j in tl.static_range(TAPS):
        if K == 4:
            line, column = y + (py - 1 + j), x + (px - 1)
            kernel_place = (3 - py - 2 * j) * 4 + (3 - px - 2 * tap)
        else:
            line, column = y, x
            kernel_place = py * 2 + px + 0 * tap
        begin = ((image * H + line) * W + column) * CS
        reached = column[:, None] + tap[None, :]
        ok = (inside & (line >= 0) & (line < H))[:, None] & (reached >= 0) & (reached < W)
        patch = tl.load(small + begin[:, None] + k[None, :], mask=ok, other=0.0)
        places = kernel_place[:, None] * (CB * CS) + channel[None, :] * CS + (k % CS)[:, None]
        total = tl.dot(patch, tl.load(weights + places), total, input_precision=PRODUCT)
    return total


@triton.jit
def _correlate(
    big, small, gradients, gradient_stride, weight_at, N_PIXELS: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SPAN: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    PARTS: tl.constexpr = K // SPAN
    RUN: tl.constexpr = K * CB
    SIZE: tl.constexpr = SPAN * RUN
    PAD: tl.constexpr = (K - 2) // 2
    model = (tl.program_id(0) // PARTS).to(tl.int64)
    first = tl.program_id(0) % PARTS * SPAN
    channel = tl.arange(0, CS)
    k = tl.arange(0, SIZE)
    big += model * N_PIXELS * (4 * CB)
    small += model * N_PIXELS * CS
    total = tl.zeros((SIZE, CS), dtype=tl.float32)
    for begin in range(0, N_PIXELS, ROWS):
        pixel = begin + tl.arange(0, ROWS)
        inside = pixel < N_PIXELS
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        line = (2 * y + first - PAD)[:, None] + (k // RUN)[None, :]
        column = (2 * x - PAD)[:, None] + (k % RUN // CB)[None, :]
        ok = inside[:, None] & (line >= 0) & (line < 2 * H) & (column >= 0) & (column < 2 * W)
        start = ((image * (2 * H) + 2 * y + first - PAD) * (2 * W) + 2 * x - PAD) * CB
        there = tl.max_contiguous(tl.multiple_of((k // RUN) * (2 * W * CB) + k % RUN, CB), CB)
        ok = tl.max_constancy(ok, [1, CB])
        patch = tl.load(big + start[:, None] + there[None, :], mask=ok, other=0.0)
        other = tl.load(small + pixel[:, None] * CS + channel[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(tl.trans(patch), other, total, input_precision=PRODUCT)
    gradients += model * gradient_stride
    tl.store(gradients + weight_at + (first * RUN + k)[:, None] * CS + channel[None, :], total)
