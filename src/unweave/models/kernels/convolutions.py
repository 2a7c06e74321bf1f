"""Stacked convolutions of stride 2 and their transposes as implicit matrix products, in Triton.

A layer joins a ``big`` image [model, batch, 2h, 2w, big] and a ``small`` one [model, batch, h, w, small] through weights
[model, row, column, big, small]. A convolution's forward pass and a transposed one's input gradient go ``down``; the
other two go ``up``; both weight gradients are one correlation. Channels lie last, so a kernel row is one run of memory.
"""

from dataclasses import dataclass

# ruff: noqa: N803, N806
import torch
import triton
import triton.language as tl

from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Join:
    """One layer's sizes: the small image, both channel counts, the kernel, and where its weights lie in a row."""

    height: int
    width: int
    n_big: int
    n_small: int
    kernel: int
    weight_at: int
    bias_at: int


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


def down(
    join: Join, big: Tensor, weights: Tensor, product: str, *, activate: bool = False, like: Tensor | None = None
) -> Float[Tensor, "model batch height width small"]:
    """From big to small: with ``activate`` plus bias and rectified, with ``like`` only where that is positive."""
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    n_pixels = n_batch * join.height * join.width
    chosen = tiles_for("down", join, big.dtype)
    tiles = triton.cdiv(n_pixels, chosen.rows)
    _down[(n_models * tiles,)](
        big, weights, small if like is None else like, small, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, chosen.rows, min(chosen.run, join.kernel * join.n_big), product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    return small


def up(
    join: Join, small: Tensor, weights: Tensor, product: str, *, activate: bool = False, like: Tensor | None = None
) -> Float[Tensor, "model batch height2 width2 big"]:
    """From small to big: with ``activate`` plus bias and rectified, with ``like`` only where that is positive."""
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    n_pixels = n_batch * join.height * join.width
    chosen = tiles_for("up", join, small.dtype)
    tiles = triton.cdiv(n_pixels, chosen.rows)
    _up[(n_models * tiles,)](
        small, weights, big if like is None else like, big, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, chosen.rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    return big


def correlate(
    join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], product: str, *, bias: str
) -> None:
    """The gradient of the weights, written into the rows; ``bias`` says which image is the output's gradient."""
    n_models, n_batch = big.shape[:2]
    chosen = tiles_for("correlate", join, big.dtype)
    span = min(chosen.run, join.kernel)
    sums = gradients.new_empty(n_models, join.kernel, join.kernel, join.n_big) if bias == "big" else gradients
    _correlate[(n_models * (join.kernel // span),)](
        big, small, gradients, sums, gradients.stride(0), join.weight_at, join.bias_at,
        n_batch * join.height * join.width, join.height, join.width, join.n_big, join.n_small, join.kernel, span,
        bias == "big", chosen.rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    if bias == "big":
        # taps 1 and 2 of a 4-wide kernel (0 and 1 of a 2-wide one) meet every big pixel exactly once
        inner = sums[:, 1:3, 1:3] if join.kernel == 4 else sums
        gradients[:, join.bias_at : join.bias_at + join.n_big] = inner.sum((1, 2))


TUNED: dict[tuple[str, int, int], Tiles] = {}


def tiles_for(what: str, join: Join, dtype: torch.dtype) -> Tiles:
    """The division found best on an H200 (benchmarks/NOTES.md), or a modest one."""
    known = TUNED.get((what, join.n_big, join.n_small))
    if known is not None and dtype == torch.bfloat16 and join.kernel == 4:
        return known
    if what == "correlate":
        return Tiles(32, 1, 8 if join.kernel * join.n_big * join.n_small > 8192 else 4, 2)
    return Tiles(64, 64, 4, 1 if what == "up" else 2)


@triton.jit
def _down(
    big, weights, like, small, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, ROWS: tl.constexpr, RUN: tl.constexpr, PRODUCT: tl.constexpr,
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
        total = tl.maximum(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], 0.0)
    place = model * n_pixels * CS + pixel[:, None] * CS + channel[None, :]
    if MASKED:
        total = tl.where(tl.load(like + place, mask=inside[:, None], other=0.0) > 0, total, 0.0)
    tl.store(small + place, total.to(small.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _up(
    small, weights, like, big, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    TAPS: tl.constexpr = K // 2
    channel = tl.arange(0, CB)
    k = tl.arange(0, TAPS * CS)
    tap = k // CS
    small += model * n_pixels * CS
    row_of_weights = weights + model * weight_stride
    for parity in range(4):
        py, px = parity // 2, parity % 2
        total = tl.zeros((ROWS, CB), dtype=tl.float32)
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
            weight = tl.load(row_of_weights + weight_at + places)
            total = tl.dot(patch, weight, total, input_precision=PRODUCT)
        if ACTIVATE:
            total = tl.maximum(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], 0.0)
        target = (image * (2 * H) + 2 * y + py) * (2 * W) + 2 * x + px
        place = model * n_pixels * (4 * CB) + target[:, None] * CB + channel[None, :]
        if MASKED:
            total = tl.where(tl.load(like + place, mask=inside[:, None], other=0.0) > 0, total, 0.0)
        tl.store(big + place, total.to(big.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _correlate(
    big, small, gradients, sums, gradient_stride, weight_at, bias_at, N_PIXELS: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SPAN: tl.constexpr,
    BIAS_BIG: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
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
    sums_big = tl.zeros((SIZE,), dtype=tl.float32)
    sums_small = tl.zeros((CS,), dtype=tl.float32)
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
        if BIAS_BIG:
            sums_big += tl.sum(patch.to(tl.float32), axis=0)
        else:
            sums_small += tl.sum(other.to(tl.float32), axis=0)
    gradients += model * gradient_stride
    tl.store(gradients + weight_at + (first * RUN + k)[:, None] * CS + channel[None, :], total)
    if BIAS_BIG:
        tl.store(sums + model * (K * RUN) + first * RUN + k, sums_big)
    else:
        tl.store(gradients + bias_at + channel, sums_small, mask=(channel >= 0) & (first == 0))
