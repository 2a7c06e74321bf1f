"""Weight gradients of stacked convolutions, tap by tap, for any number of channels that is a power of two."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.models.kernels.convolutions import Tiles
from unweave.shapes import Float, Tensor

TUNED = {(64, 128): Tiles(64, 0, 4, 2), (128, 128): Tiles(64, 0, 8, 3)}
"""By big and small channels, for bf16 on an H200; only rows, warps and stages. Others get a modest division."""
SPAN = 4096
"""Pixels that one program adds up. Fixed, whatever the number of models: their bits depend on it."""


def correlate_taps(big: Tensor, small: Tensor, kernel: int, product: str) -> Float[Tensor, "model part size"]:
    """Σ over pixels of big patches · small pixels, in parts of the pixels: [row · column · big · small]."""
    n_models, batch, height, width, n_small = small.shape
    n_big, n_pixels = big.shape[-1], batch * height * width
    parts = triton.cdiv(n_pixels, SPAN)
    sums = torch.empty(n_models, parts, kernel * kernel * n_big * n_small, device=big.device)
    known = TUNED if big.dtype == torch.bfloat16 else {}
    chosen = known.get((n_big, n_small), Tiles(32, 0, 8 if n_big * n_small > 64 * 64 else 4, 3))
    _taps[(n_models * parts * kernel * kernel,)](
        big, small, sums, n_pixels, parts, SPAN, height, width, n_big, n_small, kernel, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    return sums


@triton.jit
def _taps(
    big, small, sums, n_pixels, parts, SPAN: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    TAPS: tl.constexpr = K * K
    PAD: tl.constexpr = (K - 2) // 2
    tap = tl.program_id(0) % TAPS
    part = tl.program_id(0) // TAPS % parts
    model = (tl.program_id(0) // TAPS // parts).to(tl.int64)
    from_big, from_small = tl.arange(0, CB), tl.arange(0, CS)
    big += model * n_pixels * (4 * CB)
    small += model * n_pixels * CS
    total = tl.zeros((CB, CS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        pixel = part * SPAN + begin + tl.arange(0, ROWS)
        inside = pixel < n_pixels
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        line, column = 2 * y + tap // K - PAD, 2 * x + tap % K - PAD
        ok = inside & (line >= 0) & (line < 2 * H) & (column >= 0) & (column < 2 * W)
        place = (image * (2 * H) + line) * (2 * W) + column
        patch = tl.load(big + place[:, None] * CB + from_big[None, :], mask=ok[:, None], other=0.0)
        other = tl.load(small + pixel[:, None] * CS + from_small[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(tl.trans(patch), other, total, input_precision=PRODUCT)
    target = sums + (model * parts + part) * (TAPS * CB * CS) + tap * (CB * CS)
    tl.store(target + from_big[:, None] * CS + from_small[None, :], total)
