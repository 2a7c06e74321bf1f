"""Weight gradients of stacked convolutions, tap by tap, for any number of channels that is a power of two."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.models.kernels.convolutions import Join, Tiles
from unweave.models.kernels.first import first_patches, taps_padded
from unweave.models.kernels.pixels import Frame, pitch
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

TUNED = {(64, 64): Tiles(64, 4, 8, 2), (64, 128): Tiles(64, 2, 8, 3), (128, 128): Tiles(64, 2, 8, 3)}
"""By big and small channels, for bf16 on an H200; ``run`` is how many taps of a row a program takes. Others get a
modest division."""
LEAST_SPAN, SPAN, PARTS = 1024, 4096, 8
"""The fewest and the most pixels that one program adds up; between them there are eight parts. Fixed, whatever the
number of models: their bits depend on it."""


def correlate_taps(big: Tensor, small: Tensor, kernel: int, product: str) -> Float[Tensor, "model part size"]:
    """Σ over pixels of big patches · small pixels, in parts of the pixels: [row · column · big · small]."""
    n_models, batch, height, width, n_small = small.shape
    n_big, n_pixels = big.shape[-1], batch * height * width
    span = span_of(n_pixels)
    parts = triton.cdiv(n_pixels, span)
    sums = torch.empty(n_models, parts, kernel * kernel * n_big * n_small, device=big.device)
    known = TUNED if big.dtype == torch.bfloat16 else {}
    chosen = known.get((n_big, n_small), Tiles(32, 1, 8 if n_big * n_small > 64 * 64 else 4, 3))
    run = min(chosen.run, kernel)
    _taps[(n_models * parts * (kernel * kernel // run),)](
        big, small, sums, n_pixels, parts, span, height, width, n_big, n_small, kernel, run, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    return sums


def span_of(n_pixels: int) -> int:
    """Pixels of a part. A part is gone through pixel after pixel, however few programs there are."""
    return min(SPAN, max(LEAST_SPAN, triton.next_power_of_2(triton.cdiv(n_pixels, PARTS))))


def correlate_into(
    join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], product: str
) -> None:
    """The gradient of a layer's weights, written into the rows."""
    add_up(correlate_taps(big, small, join.kernel, product), _weights_of(gradients, join, join.kernel**2 * join.n_big))


def correlate_first(
    join: Join, frame: Frame, examples: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], product: str
) -> None:
    """The gradient of the first layer's weights, from examples as the first convolution reads them."""
    n_models, batch, height, width, n_small = small.shape
    n_pixels, n_taps = batch * height * width, join.kernel**2 * frame.channels
    parts = triton.cdiv(n_pixels, FIRST_SPAN)
    sums = torch.empty(n_models, parts, n_taps * n_small, device=small.device)
    _first_taps[(n_models * parts,)](
        examples, small, sums, n_pixels, batch, parts, FIRST_SPAN, height, width, frame.channels, n_small, join.kernel,
        taps_padded(join), pitch(frame.channels), frame.packing, frame.height, frame.width, frame.top, frame.left,
        FIRST_ROWS, product, num_warps=4, num_stages=2,
    )  # fmt: skip
    add_up(sums, _weights_of(gradients, join, n_taps))


def _weights_of(gradients: Float[Tensor, "model size"], join: Join, n_rows: int) -> Tensor:
    return gradients[:, join.weight_at : join.weight_at + n_rows * join.n_small]


FIRST_SPAN, FIRST_ROWS = 4096, 64
"""Of the first layer: pixels that one program adds up, and pixels at a time. Fixed, as above."""


@triton.jit
def _first_taps(
    examples, small, sums, n_pixels, n_batch, parts, SPAN: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr,
    CP: tl.constexpr, PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr,
    LEFT: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    part, model = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    channel, k = tl.arange(0, CS), tl.arange(0, SIZE)
    small += model * n_pixels * CS
    total = tl.zeros((SIZE, CS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        pixel = part * SPAN + begin + tl.arange(0, ROWS)
        inside = pixel < n_pixels
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        patch = first_patches(
            examples, model * n_batch + image, y, x, inside, H, W, C, K, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
        )
        slope = tl.load(small + pixel[:, None] * CS + channel[None, :], mask=inside[:, None], other=0.0)
        # as the forward pass saw them
        total = tl.dot(tl.trans(patch.to(slope.dtype)), slope, total, input_precision=PRODUCT)
    used = ((k < K * K * CP) & (k % CP < C))[:, None] & (channel >= 0)[None, :]
    target = sums + (model * parts + part) * (K * K * C * CS)
    tl.store(target + (k // CP * C + k % CP)[:, None] * CS + channel[None, :], total, mask=used)


@triton.jit
def _taps(
    big, small, sums, n_pixels, parts, SPAN: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, RUN: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    RUNS: tl.constexpr = K * K // RUN
    PAD: tl.constexpr = (K - 2) // 2
    tap = tl.program_id(0) % RUNS * RUN
    part = tl.program_id(0) // RUNS % parts
    model = (tl.program_id(0) // RUNS // parts).to(tl.int64)
    k, from_small = tl.arange(0, RUN * CB), tl.arange(0, CS)
    big += model * n_pixels * (4 * CB)
    small += model * n_pixels * CS
    total = tl.zeros((RUN * CB, CS), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        pixel = part * SPAN + begin + tl.arange(0, ROWS)
        inside = pixel < n_pixels
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        line, column = 2 * y + tap // K - PAD, 2 * x + tap % K - PAD
        ok = inside & (line >= 0) & (line < 2 * H)
        place = (image * (2 * H) + line) * (2 * W) + column
        if RUN == 1:
            ok &= (column >= 0) & (column < 2 * W)
            patch = tl.load(big + place[:, None] * CB + k[None, :], mask=ok[:, None], other=0.0)
        else:
            # taps of a row lie side by side, as their pixels do
            reached = column[:, None] + (k // CB)[None, :]
            there = tl.max_constancy(ok[:, None] & (reached >= 0) & (reached < 2 * W), [1, CB])
            patch = tl.load(big + place[:, None] * CB + k[None, :], mask=there, other=0.0)
        other = tl.load(small + pixel[:, None] * CS + from_small[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(tl.trans(patch), other, total, input_precision=PRODUCT)
    target = sums + (model * parts + part) * (K * K * CB * CS) + tap * (CB * CS)
    tl.store(target + k[:, None] * CS + from_small[None, :], total)
