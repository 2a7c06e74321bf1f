"""Weight and input gradient of a stacked convolution in one kernel, in Triton: both of its images are read once.

Apart, the two kernels read the larger image four times each, once under every place of the kernel that covers it.
Here the values under a kernel serve both products while they are on the chip. A program sums the weight gradient of
some images; the shares are added in a fixed order. Kernels of 4×4 only.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, Tiles, correlate, down, up
from unweave.models.kernels.first import first_backward, first_patches, taps_padded
from unweave.models.kernels.pixels import Frame, pitch
from unweave.models.kernels.resident import big_places, fits, in_batch, kernel_row
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

TUNED: dict[tuple[str, int, int], Tiles] = {
    ("down", 32, 32): Tiles(64, 16, 8, 2),
    ("up", 32, 64): Tiles(128, 16, 4, 2),
    ("up", 64, 64): Tiles(64, 64, 8, 2),
    ("first", 32, 32): Tiles(128, 16, 4, 2),
}
"""By kernel, big and small channels, for bf16; ``run`` is the number of images that one program sums. Layers that are
not listed make their two gradients apart."""


def together(what: str, join: Join, dtype: torch.dtype) -> Tiles | None:
    """How a layer's two gradients are made in one kernel; None where they are made apart."""
    return fits(TUNED.get((what, join.n_big, join.n_small)), join, dtype)


def down_gradients(
    join: Join, big: Tensor, image: Tensor, weights: Tensor, gradients: Tensor, product: str, *,
    bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """A transposed convolution's gradients, from the slope ``big`` by its output: by its weights, into the rows, and
    by its input ``image``, where that is positive. ``bias_gradient`` [model, small] takes the sum of the latter."""
    chosen = together("down", join, big.dtype)
    if chosen is None:
        later(correlate, join, big, image, gradients, product)
        return down(join, big, weights, product, like=image, bias_gradient=bias_gradient, later=later)
    n_models, n_batch = big.shape[:2]
    slope, parts, taps = torch.empty_like(image), triton.cdiv(n_batch, chosen.run), 16 * join.n_big
    shares = gradients.new_empty(n_models, parts, taps + 1, join.n_small)
    _down_together[(n_models * parts,)](
        big, weights, image, slope, shares, weights.stride(0), join.weight_at, parts, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.run, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    later(_add_shares, shares[:, :, :taps], join, gradients)
    if bias_gradient is not None:
        later(add_up, shares[:, :, taps], bias_gradient)
    return slope


def up_gradients(
    join: Join, small: Tensor, image: Tensor, weights: Tensor, gradients: Tensor, product: str, *,
    bias_gradient: Tensor, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """A convolution's gradients, from the slope ``small`` by its output: by its weights, into the rows, and by its
    input ``image``, where that is positive. ``bias_gradient`` [model, big] takes the sum of the latter."""
    chosen = together("up", join, small.dtype)
    if chosen is None:
        later(correlate, join, image, small, gradients, product)
        return up(join, small, weights, product, like=image, bias_gradient=bias_gradient, later=later)
    n_models, n_batch = small.shape[:2]
    slope, parts = torch.empty_like(image), triton.cdiv(n_batch, chosen.run)
    shares = gradients.new_empty(n_models, parts, 16 * join.n_big, join.n_small)
    sums = gradients.new_empty(n_models, parts * 4, join.n_big)
    _up_together[(n_models * parts * 4,)](
        small, weights, image, slope, shares, sums, weights.stride(0), join.weight_at, parts, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.run, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    later(_add_shares, shares, join, gradients)
    later(add_up, sums, bias_gradient)
    return slope


def first_gradients(
    first: Join, second: Join, frame: Frame, examples: Tensor, slope: Tensor, image: Tensor, weights: Tensor,
    gradients: Tensor, product: str, later: Later = in_turn,
) -> None:  # fmt: skip
    """The gradients of the first two convolutions from the slope by the second's output; ``image`` lies between."""
    chosen = together("first", second, image.dtype)
    if chosen is None:
        later(correlate, second, image, slope, gradients, product)
        first_backward(first, second, frame, examples, slope, image, weights, gradients, product)
        return
    n_models, n_batch = examples.shape[:2]
    parts, size, taps = triton.cdiv(n_batch, chosen.run), taps_padded(first), first.kernel**2 * frame.channels
    shares = gradients.new_empty(n_models, parts, 16 * second.n_big, second.n_small)
    firsts = gradients.new_empty(n_models, parts * 4, taps + 1, first.n_small)
    _first_together[(n_models * parts * 4,)](
        slope, weights, image, examples, shares, firsts, weights.stride(0), second.weight_at, parts, n_batch,
        second.height, second.width, second.n_big, second.n_small, frame.channels, first.kernel, size,
        pitch(frame.channels), frame.packing, frame.height, frame.width, frame.top, frame.left,
        chosen.run, chosen.rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    n_weights = taps * first.n_small
    later(_add_shares, shares, second, gradients)
    later(add_up, firsts[:, :, :taps].flatten(2), gradients[:, first.weight_at : first.weight_at + n_weights])
    later(add_up, firsts[:, :, taps], gradients[:, first.bias_at : first.bias_at + first.n_small])


def _add_shares(shares: Float[Tensor, "model part tap small"], join: Join, gradients: Tensor) -> None:
    size = 16 * join.n_big * join.n_small
    add_up(shares.flatten(2), gradients[:, join.weight_at : join.weight_at + size])


@triton.jit
def _down_together(
    big, weights, like, small, shares, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // parts).to(tl.int64)
    begin = tl.program_id(0) % parts * IMAGES
    big += model * n_batch * (4 * H * W * CB)
    like += model * n_batch * (H * W * CS)
    small += model * n_batch * (H * W * CS)
    RUN: tl.constexpr = 4 * CB
    k, channel = tl.arange(0, RUN), tl.arange(0, CS)
    row_of_weights = weights + model * weight_stride + weight_at + k[:, None] * CS + channel[None, :]
    weight0, weight1 = tl.load(row_of_weights), tl.load(row_of_weights + RUN * CS)
    weight2, weight3 = tl.load(row_of_weights + 2 * RUN * CS), tl.load(row_of_weights + 3 * RUN * CS)
    total0 = tl.zeros((RUN, CS), dtype=tl.float32)
    total1 = tl.zeros((RUN, CS), dtype=tl.float32)
    total2 = tl.zeros((RUN, CS), dtype=tl.float32)
    total3 = tl.zeros((RUN, CS), dtype=tl.float32)
    summed = tl.zeros((ROWS, CS), dtype=tl.float32)
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        place = (image * H + top) * (W * CS) + (tl.arange(0, ROWS)[:, None] * CS + channel[None, :])
        active = tl.load(like + place, mask=inside[:, None], other=0.0)
        patch0 = kernel_row(big, image, top, 0, inside, ROWS, H, W, CB)
        slope = tl.dot(patch0, weight0, input_precision=PRODUCT)
        total0 = tl.dot(tl.trans(patch0), active, total0, input_precision=PRODUCT)
        patch1 = kernel_row(big, image, top, 1, inside, ROWS, H, W, CB)
        slope = tl.dot(patch1, weight1, slope, input_precision=PRODUCT)
        total1 = tl.dot(tl.trans(patch1), active, total1, input_precision=PRODUCT)
        patch2 = kernel_row(big, image, top, 2, inside, ROWS, H, W, CB)
        slope = tl.dot(patch2, weight2, slope, input_precision=PRODUCT)
        total2 = tl.dot(tl.trans(patch2), active, total2, input_precision=PRODUCT)
        patch3 = kernel_row(big, image, top, 3, inside, ROWS, H, W, CB)
        slope = tl.dot(patch3, weight3, slope, input_precision=PRODUCT)
        total3 = tl.dot(tl.trans(patch3), active, total3, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        tl.store(small + place, slope.to(small.dtype.element_ty), mask=inside[:, None])
    shares += tl.program_id(0).to(tl.int64) * ((4 * RUN + 1) * CS)
    places = shares + k[:, None] * CS + channel[None, :]
    tl.store(places, total0)
    tl.store(places + RUN * CS, total1)
    tl.store(places + 2 * RUN * CS, total2)
    tl.store(places + 3 * RUN * CS, total3)
    tl.store(shares + 4 * RUN * CS + channel, tl.sum(summed, axis=0))


@triton.jit
def _neighbours(
    small, image, top, dy, px, inside, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, CS: tl.constexpr
):  # fmt: skip
    """[small pixel, (column, small channel)] the two neighbours, ``dy`` lines below, that big pixels of column parity
    px hear, for a tile that begins at line ``top``."""
    row, k = tl.arange(0, ROWS), tl.arange(0, 2 * CS)
    x, y = row % W, row // W % H
    column = (x + (px - 1))[:, None] + (k // CS)[None, :]
    line = top + y + dy
    ok = (inside & (line >= 0) & (line < H))[:, None] & (column >= 0) & (column < W)
    there = ((row // (H * W) * H + y) * W + x) * CS
    begin = ((image * H + top + dy) * W + (px - 1)) * CS
    return tl.load(small + begin + (there[:, None] + k[None, :]), mask=ok, other=0.0)


@triton.jit
def _parity_places(py, px, j: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr):
    """[(column, small channel), big channel] where the weights from line j of the neighbours to a parity lie."""
    k = tl.arange(0, 2 * CS)
    # output 2y + py hears input y + py − 1 + j through kernel row 3 − py − 2j
    tap = (3 - py - 2 * j) * 4 + (3 - px - 2 * (k // CS))
    return tap[:, None] * (CB * CS) + tl.arange(0, CB)[None, :] * CS + (k % CS)[:, None]


@triton.jit
def _up_together(
    small, weights, like, big, shares, sums, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    part = tl.program_id(0) // 4
    model = (part // parts).to(tl.int64)
    begin = part % parts * IMAGES
    small += model * n_batch * (H * W * CS)
    like += model * n_batch * (4 * H * W * CB)
    big += model * n_batch * (4 * H * W * CB)
    channel = tl.arange(0, CB)
    row_of_weights = weights + model * weight_stride + weight_at
    places0, places1 = _parity_places(py, px, 0, CB, CS), _parity_places(py, px, 1, CB, CS)
    weight0, weight1 = tl.load(row_of_weights + places0), tl.load(row_of_weights + places1)
    total0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        place = big_places(image, top, py, px, ROWS, H, W, CB)
        active = tl.load(like + place, mask=inside[:, None], other=0.0)
        patch0 = _neighbours(small, image, top, py - 1, px, inside, ROWS, H, W, CS)
        patch1 = _neighbours(small, image, top, py, px, inside, ROWS, H, W, CS)
        slope = tl.dot(patch0, weight0, input_precision=PRODUCT)
        slope = tl.dot(patch1, weight1, slope, input_precision=PRODUCT)
        total0 = tl.dot(tl.trans(patch0), active, total0, input_precision=PRODUCT)
        total1 = tl.dot(tl.trans(patch1), active, total1, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        tl.store(big + place, slope.to(big.dtype.element_ty), mask=inside[:, None])
    shares += part.to(tl.int64) * (16 * CB * CS)
    tl.store(shares + places0, total0)
    tl.store(shares + places1, total1)
    tl.store(sums + tl.program_id(0) * CB + channel, tl.sum(summed, axis=0))


@triton.jit
def _first_together(
    small, weights, like, examples, shares, firsts, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    C: tl.constexpr, KERNEL: tl.constexpr, SIZE: tl.constexpr, CP: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    part = tl.program_id(0) // 4
    model = (part // parts).to(tl.int64)
    begin = part % parts * IMAGES
    small += model * n_batch * (H * W * CS)
    like += model * n_batch * (4 * H * W * CB)
    channel = tl.arange(0, CB)
    row_of_weights = weights + model * weight_stride + weight_at
    places0, places1 = _parity_places(py, px, 0, CB, CS), _parity_places(py, px, 1, CB, CS)
    weight0, weight1 = tl.load(row_of_weights + places0), tl.load(row_of_weights + places1)
    total0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total = tl.zeros((CB, SIZE), dtype=tl.float32)
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        place = big_places(image, top, py, px, ROWS, H, W, CB)
        active = tl.load(like + place, mask=inside[:, None], other=0.0)
        row = tl.arange(0, ROWS)
        line, column = 2 * (top + row // W % H) + py, 2 * (row % W) + px
        example = model * n_batch + image + row // (H * W)
        seen = first_patches(
            examples, example, line, column, inside, 2 * H, 2 * W, C, KERNEL, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
        )
        patch0 = _neighbours(small, image, top, py - 1, px, inside, ROWS, H, W, CS)
        patch1 = _neighbours(small, image, top, py, px, inside, ROWS, H, W, CS)
        slope = tl.dot(patch0, weight0, input_precision=PRODUCT)
        slope = tl.dot(patch1, weight1, slope, input_precision=PRODUCT)
        total0 = tl.dot(tl.trans(patch0), active, total0, input_precision=PRODUCT)
        total1 = tl.dot(tl.trans(patch1), active, total1, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        stored = like.dtype.element_ty
        total = tl.dot(tl.trans(slope.to(stored)), seen.to(stored), total, input_precision=PRODUCT)
    shares += part.to(tl.int64) * (16 * CB * CS)
    tl.store(shares + places0, total0)
    tl.store(shares + places1, total1)
    TAPS: tl.constexpr = KERNEL * KERNEL * C
    firsts += tl.program_id(0).to(tl.int64) * ((TAPS + 1) * CB)
    k = tl.arange(0, SIZE)
    used = ((k < KERNEL * KERNEL * CP) & (k % CP < C))[None, :] & (channel >= 0)[:, None]
    tl.store(firsts + (k // CP * C + k % CP)[None, :] * CB + channel[:, None], total, mask=used)
    tl.store(firsts + TAPS * CB + channel, tl.sum(summed, axis=0))
