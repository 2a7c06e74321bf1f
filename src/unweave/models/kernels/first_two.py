"""The gradients of a stack's first two convolutions in one kernel, in Triton.

The image between the two is read once: it says where the slope passes, and it is what the second one's weights saw. A
program makes one parity of some images, with weights that stay on the chip; the shares are added in a fixed order.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, Tiles, correlate
from unweave.models.kernels.first import first_backward, first_patches, taps_padded
from unweave.models.kernels.pixels import Frame, pitch
from unweave.models.kernels.resident import big_places, fits, in_batch
from unweave.models.kernels.sums import add_up
from unweave.shapes import Tensor

TUNED: dict[tuple[int, int], Tiles] = {(32, 32): Tiles(64, 4, 4, 3)}
"""By the second layer's big and small channels, for bf16 and one image channel on an H200 (benchmarks/tune.py); ``run``
is the number of images that are summed apart. Others make their gradients apart."""

PORTIONS = 4
"""So many such sums are added one after the other before all others are: by the program that makes them one after the
other, or, of few models, by what adds up the sums of many programs. The bits are the same."""

REGISTERS = 168
"""Of a thread: three programs of four warps share a multiprocessor."""

FEW = 24
"""Models up to which programs make one sum each (benchmarks/dense.py)."""


def first_two_backward(
    first: Join, second: Join, frame: Frame, examples: Tensor, slope: Tensor, image: Tensor, weights: Tensor,
    gradients: Tensor, product: str, later: Later = in_turn,
) -> None:  # fmt: skip
    """The gradients of both from the slope by the second's output; ``image`` lies between the two."""
    known = TUNED.get((second.n_big, second.n_small)) if frame.channels == 1 else None
    chosen = fits(known, second, image.dtype)
    if chosen is None:
        later(correlate, second, image, slope, gradients, product)
        first_backward(first, second, frame, examples, slope, image, weights, gradients, product)
        return
    n_models, n_batch = examples.shape[:2]
    size, taps = taps_padded(first), first.kernel**2 * frame.channels
    # sums of a program, and neighbours that are added up first
    portions, run = (1, PORTIONS) if n_models <= FEW else (PORTIONS, 1)
    parts = triton.cdiv(n_batch, PORTIONS * chosen.run) * run
    shares = gradients.new_empty(n_models, parts, 16 * second.n_big * second.n_small)
    firsts = gradients.new_empty(n_models, parts * 4, taps + 1, first.n_small)
    _first_two_backward[(n_models * parts * 4,)](
        slope, weights, image, examples, shares, firsts, weights.stride(0), second.weight_at, parts, n_batch,
        second.height, second.width, second.n_big, second.n_small, frame.channels, first.kernel, size,
        pitch(frame.channels), frame.packing, frame.height, frame.width, frame.top, frame.left,
        portions * chosen.run * second.height * second.width, run, chosen.run, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages, maxnreg=REGISTERS,
    )  # fmt: skip
    n_weights = taps * first.n_small
    later(add_up, shares, gradients[:, second.weight_at : second.weight_at + shares.shape[2]], run)
    firsts = firsts.flatten(2)
    later(add_up, firsts[..., :n_weights], gradients[:, first.weight_at : first.weight_at + n_weights], run)
    later(add_up, firsts[..., n_weights:], gradients[:, first.bias_at : first.bias_at + first.n_small], run)


# the same machine code for any number of portions, so that its products are made alike
@triton.jit(do_not_specialize=["parts", "n_pixels", "run"])
def _first_two_backward(
    small, weights, like, examples, shares, firsts, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    C: tl.constexpr, KERNEL: tl.constexpr, SIZE: tl.constexpr, CP: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    n_pixels, run, IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    part = tl.program_id(0) // 4
    model = (part // parts).to(tl.int64)
    begin = part % parts * (n_pixels // (H * W))
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
    kept0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    kept1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    kept = tl.zeros((CB, SIZE), dtype=tl.float32)
    kept_bias = tl.zeros((CB,), dtype=tl.float32)
    for start in range(0, n_pixels, ROWS):
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
        if (start + ROWS) % (IMAGES * H * W) == 0:
            kept0, kept1, kept = kept0 + total0, kept1 + total1, kept + total
            kept_bias += tl.sum(summed, axis=0)
            total0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
            total1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
            total = tl.zeros((CB, SIZE), dtype=tl.float32)
            summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    shares += part.to(tl.int64) * (16 * CB * CS)
    tl.store(shares + places0, kept0)
    tl.store(shares + places1, kept1)
    TAPS: tl.constexpr = KERNEL * KERNEL * C
    # neighbours are what is added up first
    place = (part // run * 4 + tl.program_id(0) % 4) * run + part % run
    firsts += place.to(tl.int64) * ((TAPS + 1) * CB)
    k = tl.arange(0, SIZE)
    used = ((k < KERNEL * KERNEL * CP) & (k % CP < C))[None, :] & (channel >= 0)[:, None]
    tl.store(firsts + (k // CP * C + k % CP)[None, :] * CB + channel[:, None], kept, mask=used)
    tl.store(firsts + TAPS * CB + channel, kept_bias)


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
