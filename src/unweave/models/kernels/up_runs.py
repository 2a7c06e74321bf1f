"""An upward convolution, a parity a program, in runs of channels that are loaded ahead of their products, in Triton.

Registers hold the sums of one parity alone, so layers of 64 and 128 channels fit, and there are more programs.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.models.kernels.rectifiers import passed, rectified


@triton.jit
def up_by_runs(
    small, weights, like, big, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, RUN: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    model = (tl.program_id(0) // 4 // tiles).to(tl.int64)
    pixel = tl.program_id(0) // 4 % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    channel = tl.arange(0, CB)
    small += model * n_pixels * CS
    row_of_weights = weights + model * weight_stride
    PIECES: tl.constexpr = CS // RUN
    total = tl.zeros((ROWS, CB), dtype=tl.float32)
    # output 2y + py hears input y + py − 1 + j through kernel row 3 − py − 2j
    for piece in range(4 * PIECES):
        j, i = piece // PIECES // 2, piece // PIECES % 2
        k = piece % PIECES * RUN + tl.arange(0, RUN)
        line, column = y + (py - 1 + j), x + (px - 1 + i)
        place = (3 - py - 2 * j) * K + (3 - px - 2 * i)
        ok = inside & (line >= 0) & (line < H) & (column >= 0) & (column < W)
        begin = ((image * H + line) * W + column) * CS
        patch = tl.load(small + begin[:, None] + k[None, :], mask=ok[:, None], other=0.0)
        weight = tl.load(row_of_weights + weight_at + place * (CB * CS) + channel[:, None] * CS + k[None, :])
        total = tl.dot(patch, tl.trans(weight), total, input_precision=PRODUCT)
    if ACTIVATE:
        total = rectified(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], LEAK)
    target = (image * (2 * H) + 2 * y + py) * (2 * W) + 2 * x + px
    found = model * n_pixels * (4 * CB) + target[:, None] * CB + channel[None, :]
    if MASKED:
        total = passed(total, tl.load(like + found, mask=inside[:, None], other=0.0), LEAK)
    tl.store(big + found, total.to(big.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        summed = tl.sum(tl.where(inside[:, None], total, 0.0), axis=0)
        tl.store(sums + tl.program_id(0) * CB + channel, summed)
