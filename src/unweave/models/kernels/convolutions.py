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
    "fp32": Precision(torch.float32, "ieee"),
}


def down(
    join: Join, big: Tensor, weights: Tensor, product: str, *, activate: bool = False, like: Tensor | None = None
) -> Float[Tensor, "model batch height width small"]:
    """From big to small: with ``activate`` plus bias and rectified, with ``like`` only where that is positive."""
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    n_pixels = n_batch * join.height * join.width
    rows = 128 if n_pixels >= 128 else 16
    tiles = triton.cdiv(n_pixels, rows)
    _down[(n_models * tiles,)](
        big, weights, small if like is None else like, small, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, rows, min(128, join.kernel * join.n_big), product, num_warps=4,
    )  # fmt: skip
    return small


def up(
    join: Join, small: Tensor, weights: Tensor, product: str, *, activate: bool = False, like: Tensor | None = None
) -> Float[Tensor, "model batch height2 width2 big"]:
    """From small to big: with ``activate`` plus bias and rectified, with ``like`` only where that is positive."""
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    n_pixels = n_batch * join.height * join.width
    rows = 128 if n_pixels >= 128 else 16
    tiles = triton.cdiv(n_pixels, rows)
    _up[(n_models * tiles,)](
        small, weights, big if like is None else like, big, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, join.kernel,
        activate, like is not None, rows, product, num_warps=4,
    )  # fmt: skip
    return big


def correlate(
    join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], product: str, *, bias: str
) -> None:
    """The gradient of the weights, written into the rows; ``bias`` says which image is the output's gradient."""
    n_models, n_batch = big.shape[:2]
    run = join.kernel * join.n_big
    sums = gradients.new_empty(n_models, join.kernel, join.kernel, join.n_big) if bias == "big" else gradients
    rows = 64 if big.dtype == torch.bfloat16 else 32
    _correlate[(n_models * join.kernel,)](
        big, small, gradients, sums, gradients.stride(0), join.weight_at, join.bias_at,
        n_batch * join.height * join.width, join.height, join.width, join.n_big, join.n_small, join.kernel, run,
        bias == "big", rows, product, num_warps=8 if run * join.n_small > 8192 else 4, num_stages=3,
    )  # fmt: skip
    if bias == "big":
        # taps 1 and 2 of a 4-wide kernel (0 and 1 of a 2-wide one) meet every big pixel exactly once
        inner = sums[:, 1:3, 1:3] if join.kernel == 4 else sums
        gradients[:, join.bias_at : join.bias_at + join.n_big] = inner.sum((1, 2))


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
    for ky in tl.static_range(K):
        line = 2 * y + ky - PAD
        begin = ((image * (2 * H) + line) * (2 * W) + 2 * x - PAD) * CB
        line_ok = inside & (line >= 0) & (line < 2 * H)
        for first in tl.static_range(0, K * CB, RUN):
            k = first + tl.arange(0, RUN)
            column = (2 * x - PAD)[:, None] + (k // CB)[None, :]
            ok = line_ok[:, None] & (column >= 0) & (column < 2 * W)
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
    for py in tl.static_range(2):
        for px in tl.static_range(2):
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
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, RUN: tl.constexpr,
    BIAS_BIG: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // K).to(tl.int64)
    ky = tl.program_id(0) % K
    PAD: tl.constexpr = (K - 2) // 2
    channel = tl.arange(0, CS)
    k = tl.arange(0, RUN)
    big += model * N_PIXELS * (4 * CB)
    small += model * N_PIXELS * CS
    total = tl.zeros((RUN, CS), dtype=tl.float32)
    sums_big = tl.zeros((RUN,), dtype=tl.float32)
    sums_small = tl.zeros((CS,), dtype=tl.float32)
    for begin in range(0, N_PIXELS, ROWS):
        pixel = begin + tl.arange(0, ROWS)
        inside = pixel < N_PIXELS
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        line = 2 * y + ky - PAD
        column = (2 * x - PAD)[:, None] + (k // CB)[None, :]
        ok = (inside & (line >= 0) & (line < 2 * H))[:, None] & (column >= 0) & (column < 2 * W)
        start = ((image * (2 * H) + line) * (2 * W) + 2 * x - PAD) * CB
        patch = tl.load(big + start[:, None] + k[None, :], mask=ok, other=0.0)
        other = tl.load(small + pixel[:, None] * CS + channel[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(tl.trans(patch), other, total, input_precision=PRODUCT)
        if BIAS_BIG:
            sums_big += tl.sum(patch.to(tl.float32), axis=0)
        else:
            sums_small += tl.sum(other.to(tl.float32), axis=0)
    gradients += model * gradient_stride
    tl.store(gradients + weight_at + (ky * RUN + k)[:, None] * CS + channel[None, :], total)
    if BIAS_BIG:
        tl.store(sums + (model * K + ky) * RUN + k, sums_big)
    else:
        tl.store(gradients + bias_at + channel, sums_small, mask=(channel >= 0) & (ky == 0))
