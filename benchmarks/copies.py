"""Convolutions of stride 2 whose images come by the copy engine of a Hopper card, in Gluon: candidates for the fleet.

A big image [model, batch, 2h, 2w, big] is seen, without a copy, as [image, h, row parity, w, (column parity, big)].
What lies under one place of the 4×4 kernel is then a dense box of it, and the engine writes zeros where the box leaves
the image. A box of one row parity serves two rows of the kernel, one line of pixels apart: lines of zeros stand between
boxes in shared memory, so both are the same memory.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from unweave.models.kernels.convolutions import Join
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Shares:
    """How work is divided: images of a program, columns of the kernel in a portion, portions on the way, warps."""

    images: int
    columns: int
    slots: int
    warps: int


def down_by_copies(
    join: Join, big: Tensor, weights: Tensor, chosen: Shares, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """As ``down``: for 32 big channels in bf16, kernels of 4×4 and images of 64 pixels or 256."""
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    parts = triton.cdiv(n_batch, chosen.images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, parts, join.n_small)
    result = flat_boxes(small, join.n_small)
    met = result if like is None else flat_boxes(like, join.n_small)
    _down_by_copies[(n_models * parts,)](
        parity_boxes(join, big), weight_boxes(join, weights), met, result, weights, sums, weights.stride(0),
        join.weight_at, join.bias_at, parts, n_batch, join.height, join.width, join.n_big, join.n_small,
        chosen.images, chosen.columns, chosen.slots, activate, like is not None, leak, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        add_up(sums, bias_gradient)
    return small


def down_by_pairs(
    join: Join, big: Tensor, weights: Tensor, chosen: Shares, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """As ``down_by_copies`` for images of 256 pixels; the two middle columns of the kernel are one copy."""
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    parts = triton.cdiv(n_batch, chosen.images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, parts, join.n_small)
    result = flat_boxes(small, join.n_small)
    met = result if like is None else flat_boxes(like, join.n_small)
    _down_by_pairs[(n_models * parts,)](
        parity_boxes(join, big), pair_boxes(join, big), weight_boxes(join, weights), met, result, weights, sums,
        weights.stride(0), join.weight_at, join.bias_at, parts, n_batch, join.height, join.width, join.n_big,
        join.n_small, chosen.images, activate, like is not None, leak, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        add_up(sums, bias_gradient)
    return small


def up_by_copies(
    join: Join, small: Tensor, weights: Tensor, chosen: Shares, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """As ``up``: for 32 big channels in bf16, kernels of 4×4 and small images of 64 pixels or 256."""
    if join.height * join.width < 64:
        return _up_of_small(join, small, weights, chosen, activate, like, leak, bias_gradient)
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    parts = triton.cdiv(n_batch, chosen.images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, parts, join.n_big)
    result = parity_boxes(join, big)
    _up_by_copies[(n_models * parts,)](
        image_boxes(small), weight_boxes(join, weights), result if like is None else parity_boxes(join, like),
        result, weights, sums, weights.stride(0), join.weight_at, join.bias_at, parts, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.images, chosen.slots,
        activate, like is not None, leak, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        add_up(sums, bias_gradient)
    return big


def _up_of_small(
    join: Join, small: Tensor, weights: Tensor, chosen: Shares, activate: bool, like: Tensor | None, leak: float,
    bias_gradient: Tensor | None,
) -> Tensor:  # fmt: skip
    """As ``up``, for 64 channels and images that make 64 pixels only together: every neighbour is a copy of its own."""
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    beside = 64 // (join.height * join.width)
    assert n_batch % beside == 0
    parts = triton.cdiv(n_batch, chosen.images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, parts, join.n_big)
    result = parity_boxes(join, big, beside)
    met = result if like is None else parity_boxes(join, like, beside)
    _up_small_by_copies[(n_models * parts,)](
        image_boxes(small, beside), weight_boxes(join, weights, 4), met, result, weights, sums, weights.stride(0),
        join.weight_at, join.bias_at, parts, n_batch, join.height, join.width, join.n_big, join.n_small, beside,
        chosen.images, chosen.slots, activate, like is not None, leak, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        add_up(sums, bias_gradient)
    return big


def correlate_by_copies(
    join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], chosen: Shares
) -> None:
    """As ``correlate``: for 32 big channels in bf16, kernels of 4×4 and small images of 64 pixels or 256."""
    n_models, n_batch = big.shape[:2]
    _correlate_by_copies[(n_models * 2,)](
        pair_boxes(join, big), image_boxes(small), gradients, gradients.stride(0), join.weight_at, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.slots, num_warps=chosen.warps,
    )  # fmt: skip


def swizzled(channels: int, rank: int) -> gl.NVMMASharedLayout:
    """Shared memory as copies write it and products read it, a row of channels being 32, 64 or 128 bytes."""
    return gl.NVMMASharedLayout(swizzle_byte_width=min(2 * channels, 128), element_bitwidth=16, rank=rank)


def parity_boxes(join: Join, big: Tensor, beside: int = 1) -> TensorDescriptor:
    """The big image by parities; a box is some whole images of one row parity under one column of the kernel."""
    h, w, c = join.height, join.width, join.n_big
    n_images = big.shape[0] * big.shape[1]
    shape, strides = [n_images, h, 2, w, 2 * c], [4 * h * w * c, 4 * w * c, 2 * w * c, 2 * c, 1]
    return TensorDescriptor(big, shape, strides, [beside, h, 1, w, c], swizzled(c, 5))


def image_boxes(images: Tensor, beside: int = 1) -> TensorDescriptor:
    """Images of any model; a box is some whole ones, moved by some pixels."""
    height, width, channels = images.shape[2:]
    return TensorDescriptor.from_tensor(images.flatten(0, 1), [beside, height, width, channels], swizzled(channels, 4))


def pair_boxes(join: Join, big: Tensor) -> TensorDescriptor:
    """The big image by parities; a box is a whole image of one row parity, both column parities side by side."""
    h, w, c = join.height, join.width, join.n_big
    n_images = big.shape[0] * big.shape[1]
    shape, strides = [n_images, h, 2, w, 2 * c], [4 * h * w * c, 4 * w * c, 2 * w * c, 2 * c, 1]
    return TensorDescriptor(big, shape, strides, [1, h, 1, w, 2 * c], swizzled(2 * c, 5))


def weight_boxes(join: Join, weights: Tensor, taps: int = 8) -> TensorDescriptor:
    """All rows of weights as lines of small channels; a box is some taps, 256 lines at most."""
    assert weights.is_contiguous()
    assert weights.shape[1] % join.n_small == 0
    assert join.weight_at % join.n_small == 0
    shape = [weights.numel() // join.n_small, join.n_small]
    return TensorDescriptor(
        weights, shape, [join.n_small, 1], [taps * join.n_big, join.n_small], swizzled(join.n_small, 2)
    )


def flat_boxes(small: Tensor, channels: int) -> TensorDescriptor:
    """Pixels of all small images, one after the other; a box is one image."""
    pixels = small.shape[2] * small.shape[3]
    shape = [small.numel() // channels, channels]
    return TensorDescriptor(small, shape, [channels, 1], [pixels, channels], swizzled(channels, 2))


@gluon.jit
def _down_by_copies(
    big, weights, like, small, row, sums, weight_stride, weight_at, bias_at, parts, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr,
    IMAGES: gl.constexpr, COLUMNS: gl.constexpr, SLOTS: gl.constexpr,
    ACTIVATE: gl.constexpr, MASKED: gl.constexpr, LEAK: gl.constexpr,
):  # fmt: skip
    WARPS: gl.constexpr = gl.num_warps()
    PORTIONS: gl.constexpr = 8 // COLUMNS
    BOXES: gl.constexpr = SLOTS * COLUMNS
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, CS, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * IMAGES
    n_images = gl.minimum(IMAGES, n_batch - begin)
    first = model * n_batch + begin

    # an even number of lines, so that whatever comes behind begins where a pattern of banks does
    LINES: gl.constexpr = BOXES * (H + 1) + 2 - BOXES * (H + 1) % 2
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], small.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [H * W, CS], small.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(SLOTS):
        mbarrier.init(full.index(one), count=1)
    mbarrier.init(other.index(0), count=1)
    mbarrier.init(other.index(1), count=1)
    # lines of zeros between the boxes: what lies above and below an image
    thin: gl.constexpr = gl.BlockedLayout([1, 2], [32 * 2 // CB, CB // 2], [WARPS, 1], [1, 0])
    for box in gl.static_range(BOXES + 1):
        ring.index(box * (H + 1)).store(gl.zeros([W, CB], gl.bfloat16, thin))
    fence_async_shared()
    gl.thread_barrier()

    mbarrier.expect(other.index(0), 16 * CB * CS * 2)
    for half in gl.static_range(2):
        start = model * (weight_stride // CS) + weight_at // CS + half * (8 * CB)
        target = kept.index(half * 8)._reinterpret(gl.bfloat16, [8 * CB, CS], weights.layout)
        tma.async_copy_global_to_shared(weights, [start, 0], other.index(0), target)
    for ahead in gl.static_range(SLOTS - 1):
        _ask(big, ring, full, first, ahead, ahead, n_images * PORTIONS, H, W, CB, COLUMNS, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = gl.zeros([CS], gl.float32, gl.SliceLayout(0, found))
    if ACTIVATE:
        channel = gl.arange(0, CS, gl.SliceLayout(0, found))
        bias = gl.load(row + model.to(gl.int64) * weight_stride + bias_at + channel).to(gl.float32)
    summed = gl.zeros([H * W, CS], gl.float32, found)
    total = gl.zeros([H * W, CS], gl.float32, found)
    for image in range(n_images):
        for portion in gl.static_range(PORTIONS):
            count = image * PORTIONS + portion
            mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
            total = _products(ring, kept, total, count % SLOTS, portion, H, W, CB, COLUMNS)
            # what the last portion was needed for is done, so its slot is free
            total = warpgroup_mma_wait(2 * COLUMNS, deps=(total,))
            gl.thread_barrier()
            _ask(
                big, ring, full, first + image, portion + SLOTS - 1, count + SLOTS - 1, n_images * PORTIONS,
                H, W, CB, COLUMNS, SLOTS,
            )  # fmt: skip
            if MASKED and portion == 1:
                tma.store_wait(0)
                mbarrier.expect(other.index(1), H * W * CS * 2)
                tma.async_copy_global_to_shared(like, [(first + image) * (H * W), 0], other.index(1), edge)
        total = warpgroup_mma_wait(0, deps=(total,))
        result = total
        if ACTIVATE:
            result = result + bias[None, :]
            result = gl.where(result > 0, result, LEAK * result)
        if MASKED:
            mbarrier.wait(other.index(1), image & 1)
            active = edge.load(found)
            result = gl.where(active > 0, result, LEAK * result)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        edge.store(result.to(gl.bfloat16))
        fence_async_shared()
        gl.thread_barrier()
        tma.async_copy_shared_to_global(small, [(first + image) * (H * W), 0], edge)
        if sums is not None:
            summed += result
    if sums is not None:
        out = gl.arange(0, CS, gl.SliceLayout(0, found))
        gl.store(sums + gl.program_id(0) * CS + out, gl.sum(summed, axis=0))
    tma.store_wait(0)


@gluon.jit
def _products(
    ring, kept, total, slot, PORTION: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr,
    COLUMNS: gl.constexpr,
):  # fmt: skip
    """A portion under two kernel rows: parity 0 under row 1 and, a line further down, 3; parity 1 under 2 and 0."""
    PARITY: gl.constexpr = PORTION * COLUMNS // 4
    image: gl.constexpr = gl.NVMMASharedLayout(2 * CB, 16, 2)
    for place in gl.static_range(COLUMNS):
        kx = PORTION * COLUMNS % 4 + place
        line = (slot * COLUMNS + place) * (H + 1) + 1
        same = ring.index(line)._reinterpret(gl.bfloat16, [H * W, CB], image)
        weight = kept.index((1 + PARITY) * 4 + kx)
        total = warpgroup_mma(same, weight, total, use_acc=PORTION + place > 0, is_async=True)
        beside = ring.index(line + 1 - 2 * PARITY)._reinterpret(gl.bfloat16, [H * W, CB], image)
        total = warpgroup_mma(beside, kept.index((3 - 3 * PARITY) * 4 + kx), total, is_async=True)
    return total


@gluon.jit
def _ask(
    big, ring, full, image, PORTION: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, COLUMNS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a portion, numbered from the beginning of ``image``: some columns of the kernel, of one row parity."""
    PORTIONS: gl.constexpr = 8 // COLUMNS
    wanted = count < n_portions
    slot = count % SLOTS
    parity: gl.constexpr = PORTION % PORTIONS * COLUMNS // 4
    mbarrier.expect(full.index(slot), COLUMNS * (H * W * CB * 2), pred=wanted)
    for place in gl.static_range(COLUMNS):
        kx = PORTION * COLUMNS % 4 + place
        line = slot * (COLUMNS * (H + 1)) + place * (H + 1) + 1
        target = ring.index(line)._reinterpret(gl.bfloat16, [1, H, 1, W, CB], big.layout)
        at = [image + PORTION // PORTIONS, 0, parity, (kx + 1) // 2 - 1, (kx + 1) % 2 * CB]
        tma.async_copy_global_to_shared(big, at, full.index(slot), target, pred=wanted)


@gluon.jit
def _up_by_copies(
    small, weights, like, big, row, sums, weight_stride, weight_at, bias_at, parts, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, IMAGES: gl.constexpr, SLOTS: gl.constexpr,
    ACTIVATE: gl.constexpr, MASKED: gl.constexpr, LEAK: gl.constexpr,
):  # fmt: skip
    """A small image comes three times, moved by a column; what lies above and below a pixel is in the same memory."""
    WARPS: gl.constexpr = gl.num_warps()
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, CB, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * IMAGES
    n_images = gl.minimum(IMAGES, n_batch - begin)
    first = model * n_batch + begin

    LINES: gl.constexpr = SLOTS * (H + 1) + 2 - SLOTS * (H + 1) % 2
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], weights.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [4, H * W, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(SLOTS):
        mbarrier.init(full.index(one), count=1)
    mbarrier.init(other.index(0), count=1)
    mbarrier.init(other.index(1), count=1)
    thin: gl.constexpr = gl.BlockedLayout([1, 2], [32 * 2 // CS, CS // 2], [WARPS, 1], [1, 0])
    for box in gl.static_range(SLOTS + 1):
        ring.index(box * (H + 1)).store(gl.zeros([W, CS], gl.bfloat16, thin))
    fence_async_shared()
    gl.thread_barrier()

    mbarrier.expect(other.index(0), 16 * CB * CS * 2)
    for half in gl.static_range(2):
        start = model * (weight_stride // CS) + weight_at // CS + half * (8 * CB)
        target = kept.index(half * 8)._reinterpret(gl.bfloat16, [8 * CB, CS], weights.layout)
        tma.async_copy_global_to_shared(weights, [start, 0], other.index(0), target)
    for ahead in gl.static_range(SLOTS - 1):
        _ask_image(small, ring, full, first + ahead // 3, ahead % 3, ahead, n_images * 3, H, W, CS, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = gl.zeros([CB], gl.float32, gl.SliceLayout(0, found))
    if ACTIVATE:
        channel = gl.arange(0, CB, gl.SliceLayout(0, found))
        bias = gl.load(row + model.to(gl.int64) * weight_stride + bias_at + channel).to(gl.float32)
    summed = gl.zeros([H * W, CB], gl.float32, found)
    total0 = gl.zeros([H * W, CB], gl.float32, found)
    total1, total2, total3 = total0, total0, total0
    for image in range(n_images):
        for column in gl.static_range(3):
            count = image * 3 + column
            mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
            line = count % SLOTS * (H + 1) + 1
            if column < 2:
                total0, total2 = _two_lines(
                    ring, kept, total0, total2, line, 3 - 2 * column, column > 0, H, W, CS
                )  # fmt: skip
            if column > 0:
                total1, total3 = _two_lines(
                    ring, kept, total1, total3, line, 4 - 2 * column, column > 1, H, W, CS
                )  # fmt: skip
            total0, total1, total2, total3 = warpgroup_mma_wait(
                4 + 4 * (column % 2), deps=(total0, total1, total2, total3)
            )
            gl.thread_barrier()
            _ask_image(
                small, ring, full, first + image + (column + SLOTS - 1) // 3, (column + SLOTS - 1) % 3,
                count + SLOTS - 1, n_images * 3, H, W, CS, SLOTS,
            )  # fmt: skip
            if MASKED and column == 1:
                tma.store_wait(0)
                mbarrier.expect(other.index(1), 4 * (H * W * CB * 2))
                for asked in gl.static_range(4):
                    tma.async_copy_global_to_shared(
                        like, [first + image, 0, asked // 2, 0, asked % 2 * CB], other.index(1),
                        edge.index(asked)._reinterpret(gl.bfloat16, [1, H, 1, W, CB], like.layout),
                    )  # fmt: skip
        total0, total1, total2, total3 = warpgroup_mma_wait(0, deps=(total0, total1, total2, total3))
        if MASKED:
            mbarrier.wait(other.index(1), image & 1)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        result0 = _finished(total0, bias, edge.index(0), found, ACTIVATE, MASKED, LEAK)
        result1 = _finished(total1, bias, edge.index(1), found, ACTIVATE, MASKED, LEAK)
        result2 = _finished(total2, bias, edge.index(2), found, ACTIVATE, MASKED, LEAK)
        result3 = _finished(total3, bias, edge.index(3), found, ACTIVATE, MASKED, LEAK)
        fence_async_shared()
        gl.thread_barrier()
        for sent in gl.static_range(4):
            tma.async_copy_shared_to_global(
                big, [first + image, 0, sent // 2, 0, sent % 2 * CB],
                edge.index(sent)._reinterpret(gl.bfloat16, [1, H, 1, W, CB], big.layout),
            )  # fmt: skip
        if sums is not None:
            summed += (result0 + result1) + (result2 + result3)
    if sums is not None:
        out = gl.arange(0, CB, gl.SliceLayout(0, found))
        gl.store(sums + gl.program_id(0) * CB + out, gl.sum(summed, axis=0))
    tma.store_wait(0)


@gluon.jit
def _two_lines(
    ring, kept, even, odd, line, kx: gl.constexpr, BEGUN: gl.constexpr, H: gl.constexpr, W: gl.constexpr,
    CS: gl.constexpr,
):  # fmt: skip
    """Row parity 0 hears a pixel's own line through kernel row 1, the one above through 3; parity 1, 2 and below 0."""
    image: gl.constexpr = gl.NVMMASharedLayout(2 * CS, 16, 2)
    own = ring.index(line)._reinterpret(gl.bfloat16, [H * W, CS], image)
    above = ring.index(line - 1)._reinterpret(gl.bfloat16, [H * W, CS], image)
    below = ring.index(line + 1)._reinterpret(gl.bfloat16, [H * W, CS], image)
    even = warpgroup_mma(own, kept.index(4 + kx).permute((1, 0)), even, use_acc=BEGUN, is_async=True)
    odd = warpgroup_mma(own, kept.index(8 + kx).permute((1, 0)), odd, use_acc=BEGUN, is_async=True)
    even = warpgroup_mma(above, kept.index(12 + kx).permute((1, 0)), even, is_async=True)
    odd = warpgroup_mma(below, kept.index(kx).permute((1, 0)), odd, is_async=True)
    return even, odd


@gluon.jit
def _finished(total, bias, edge, found: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr, LEAK: gl.constexpr):
    """The sum with bias and rectifier, or as a slope that one lets pass; left in shared memory, too."""
    result = total
    if ACTIVATE:
        result = result + bias[None, :]
        result = gl.where(result > 0, result, LEAK * result)
    if MASKED:
        result = gl.where(edge.load(found) > 0, result, LEAK * result)
        gl.thread_barrier()
    edge.store(result.to(gl.bfloat16))
    return result


@gluon.jit
def _ask_image(
    small, ring, full, image, COLUMN: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a small image moved by a column less than ``COLUMN``."""
    mbarrier.expect(full.index(count % SLOTS), H * W * CS * 2, pred=count < n_portions)
    _take_image(small, ring, full, image, COLUMN, count, n_portions, H, W, CS, SLOTS)


@gluon.jit
def _take_image(
    small, ring, full, image, COLUMN: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    wanted = count < n_portions
    slot = count % SLOTS
    target = ring.index(slot * (H + 1) + 1)._reinterpret(gl.bfloat16, [1, H, W, CS], small.layout)
    tma.async_copy_global_to_shared(small, [image, 0, COLUMN - 1, 0], full.index(slot), target, pred=wanted)


@gluon.jit
def _correlate_by_copies(
    big, small, gradients, gradient_stride, weight_at, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """One row parity of the big image, which lies under two kernel rows; small images come moved by a column.

    A product has both column parities as its rows: 64 is the least that the matrix units take.
    """
    WARPS: gl.constexpr = gl.num_warps()
    AHEAD: gl.constexpr = (SLOTS - 1) // 3 + 1
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, CS, 16])
    model, parity = gl.program_id(0) // 2, gl.program_id(0) % 2
    first = model * n_batch

    LINES: gl.constexpr = SLOTS * (H + 1) + 2 - SLOTS * (H + 1) % 2
    pairs = gl.allocate_shared_memory(gl.bfloat16, [AHEAD, H * W, 2 * CB], gl.NVMMASharedLayout(4 * CB, 16, 2))
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(SLOTS):
        mbarrier.init(full.index(one), count=1)
    thin: gl.constexpr = gl.BlockedLayout([1, 2], [32 * 2 // CS, CS // 2], [WARPS, 1], [1, 0])
    for box in gl.static_range(SLOTS + 1):
        ring.index(box * (H + 1)).store(gl.zeros([W, CS], gl.bfloat16, thin))
    fence_async_shared()
    gl.thread_barrier()
    for ahead in gl.static_range(SLOTS - 1):
        if ahead % 3 == 0:
            _ask_pair(big, pairs, full, first, ahead // 3, parity, ahead, n_batch, H, W, CB, CS, SLOTS, AHEAD)
            _take_image(small, ring, full, first + ahead // 3, ahead % 3, ahead, n_batch * 3, H, W, CS, SLOTS)
        else:
            _ask_image(small, ring, full, first + ahead // 3, ahead % 3, ahead, n_batch * 3, H, W, CS, SLOTS)

    own0 = gl.zeros([2 * CB, CS], gl.float32, found)
    own1, own2, beside0, beside1, beside2 = own0, own0, own0, own0, own0
    for image in range(n_batch):
        pair = pairs.index(image % AHEAD).permute((1, 0))
        for column in gl.static_range(3):
            count = image * 3 + column
            mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
            line = count % SLOTS * (H + 1) + 1
            if column == 0:
                own0, beside0 = _two_rows(ring, pair, own0, beside0, line, parity, H, W, CS)
            elif column == 1:
                own1, beside1 = _two_rows(ring, pair, own1, beside1, line, parity, H, W, CS)
            else:
                own2, beside2 = _two_rows(ring, pair, own2, beside2, line, parity, H, W, CS)
            own0, own1, own2, beside0, beside1, beside2 = warpgroup_mma_wait(
                2, deps=(own0, own1, own2, beside0, beside1, beside2)
            )
            gl.thread_barrier()
            if (column + SLOTS - 1) % 3 == 0:
                _ask_pair(
                    big, pairs, full, first, image + (column + SLOTS - 1) // 3, parity, count + SLOTS - 1, n_batch,
                    H, W, CB, CS, SLOTS, AHEAD,
                )  # fmt: skip
                _take_image(
                    small, ring, full, first + image + (column + SLOTS - 1) // 3, 0, count + SLOTS - 1, n_batch * 3,
                    H, W, CS, SLOTS,
                )  # fmt: skip
            else:
                _ask_image(
                    small, ring, full, first + image + (column + SLOTS - 1) // 3, (column + SLOTS - 1) % 3,
                    count + SLOTS - 1, n_batch * 3, H, W, CS, SLOTS,
                )  # fmt: skip
    own0, own1, own2, beside0, beside1, beside2 = warpgroup_mma_wait(
        0, deps=(own0, own1, own2, beside0, beside1, beside2)
    )
    out = gradients + model.to(gl.int64) * gradient_stride + weight_at
    # row parity 0 lies under kernel row 1, and under 3 of the line above; parity 1 under 2, and 0 of the line below
    _leave(out, own0, 1 + parity, 3, found, CB, CS)
    _leave(out, own1, 1 + parity, 1, found, CB, CS)
    _leave(out, own2, 1 + parity, -1, found, CB, CS)
    _leave(out, beside0, 3 - 3 * parity, 3, found, CB, CS)
    _leave(out, beside1, 3 - 3 * parity, 1, found, CB, CS)
    _leave(out, beside2, 3 - 3 * parity, -1, found, CB, CS)


@gluon.jit
def _two_rows(ring, pair, own, beside, line, parity, H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr):
    image: gl.constexpr = gl.NVMMASharedLayout(2 * CS, 16, 2)
    same = ring.index(line)._reinterpret(gl.bfloat16, [H * W, CS], image)
    moved = ring.index(line + 2 * parity - 1)._reinterpret(gl.bfloat16, [H * W, CS], image)
    own = warpgroup_mma(pair, same, own, is_async=True)
    beside = warpgroup_mma(pair, moved, beside, is_async=True)
    return own, beside


@gluon.jit
def _leave(out, total, ky, KX: gl.constexpr, found: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr):
    """Write those of the two column parities that lie under the kernel; the first is in its column ``KX``."""
    row = gl.arange(0, 2 * CB, gl.SliceLayout(1, found))
    channel = gl.arange(0, CS, gl.SliceLayout(0, found))
    kx = KX + row // CB
    place = ((ky * 4 + KX) * CB + row)[:, None] * CS + channel[None, :]
    there = ((kx >= 0) & (kx < 4))[:, None] & (channel >= 0)[None, :]
    gl.store(out + place, total, mask=there)


@gluon.jit
def _ask_pair(
    big, pairs, full, first, image, parity, count, n_images,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr, AHEAD: gl.constexpr,
):  # fmt: skip
    """Ask for a big image of one row parity; the barrier waits for the small one with it."""
    wanted = image < n_images
    mbarrier.expect(full.index(count % SLOTS), H * W * (2 * CB + CS) * 2, pred=wanted)
    target = pairs.index(image % AHEAD)._reinterpret(gl.bfloat16, [1, H, 1, W, 2 * CB], big.layout)
    at = [first + image, 0, parity, 0, 0]
    tma.async_copy_global_to_shared(big, at, full.index(count % SLOTS), target, pred=wanted)


@gluon.jit
def _up_small_by_copies(
    small, weights, like, big, row, sums, weight_stride, weight_at, bias_at, parts, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, BESIDE: gl.constexpr, IMAGES: gl.constexpr,
    SLOTS: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr, LEAK: gl.constexpr,
):  # fmt: skip
    """Nine neighbours of 64 small pixels, some whole images; each is heard by one, two or all four parities."""
    WARPS: gl.constexpr = gl.num_warps()
    PIXELS: gl.constexpr = BESIDE * H * W
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, CB, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * IMAGES
    n_turns = gl.minimum(IMAGES, n_batch - begin) // BESIDE
    first = model * n_batch + begin

    ring = gl.allocate_shared_memory(gl.bfloat16, [SLOTS, PIXELS, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], weights.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [4, PIXELS, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(SLOTS):
        mbarrier.init(full.index(one), count=1)
    mbarrier.init(other.index(0), count=1)
    mbarrier.init(other.index(1), count=1)
    fence_async_shared()
    gl.thread_barrier()

    mbarrier.expect(other.index(0), 16 * CB * CS * 2)
    for quarter in gl.static_range(4):
        start = model * (weight_stride // CS) + weight_at // CS + quarter * (4 * CB)
        target = kept.index(quarter * 4)._reinterpret(gl.bfloat16, [4 * CB, CS], weights.layout)
        tma.async_copy_global_to_shared(weights, [start, 0], other.index(0), target)
    for ahead in gl.static_range(SLOTS - 1):
        _ask_neighbour(small, ring, full, first, ahead, ahead, n_turns * 9, H, W, CS, BESIDE, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = gl.zeros([CB], gl.float32, gl.SliceLayout(0, found))
    if ACTIVATE:
        channel = gl.arange(0, CB, gl.SliceLayout(0, found))
        bias = gl.load(row + model.to(gl.int64) * weight_stride + bias_at + channel).to(gl.float32)
    summed = gl.zeros([PIXELS, CB], gl.float32, found)
    total0 = gl.zeros([PIXELS, CB], gl.float32, found)
    total1, total2, total3 = total0, total0, total0
    for turn in range(n_turns):
        image = first + turn * BESIDE
        for d in gl.static_range(9):
            count = turn * 9 + d
            mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
            own = ring.index(count % SLOTS)
            # parity p hears the neighbour at d through kernel row 1 + p − 2d, if there is one; columns likewise
            if d < 6 and d % 3 < 2:
                tap = kept.index((3 - 2 * (d // 3)) * 4 + 3 - 2 * (d % 3)).permute((1, 0))
                total0 = warpgroup_mma(own, tap, total0, use_acc=d > 0, is_async=True)
            if d < 6 and d % 3 > 0:
                tap = kept.index((3 - 2 * (d // 3)) * 4 + 4 - 2 * (d % 3)).permute((1, 0))
                total1 = warpgroup_mma(own, tap, total1, use_acc=d > 1, is_async=True)
            if d > 2 and d % 3 < 2:
                tap = kept.index((4 - 2 * (d // 3)) * 4 + 3 - 2 * (d % 3)).permute((1, 0))
                total2 = warpgroup_mma(own, tap, total2, use_acc=d > 3, is_async=True)
            if d > 2 and d % 3 > 0:
                tap = kept.index((4 - 2 * (d // 3)) * 4 + 4 - 2 * (d % 3)).permute((1, 0))
                total3 = warpgroup_mma(own, tap, total3, use_acc=d > 4, is_async=True)
            total0, total1, total2, total3 = warpgroup_mma_wait(
                (1 + d // 3 % 2) * (1 + d % 3 % 2), deps=(total0, total1, total2, total3)
            )
            gl.thread_barrier()
            _ask_neighbour(
                small, ring, full, image, d + SLOTS - 1, count + SLOTS - 1, n_turns * 9, H, W, CS, BESIDE, SLOTS
            )
            if MASKED and d == 4:
                tma.store_wait(0)
                mbarrier.expect(other.index(1), 4 * (PIXELS * CB * 2))
                for asked in gl.static_range(4):
                    tma.async_copy_global_to_shared(
                        like, [image, 0, asked // 2, 0, asked % 2 * CB], other.index(1),
                        edge.index(asked)._reinterpret(gl.bfloat16, [BESIDE, H, 1, W, CB], like.layout),
                    )  # fmt: skip
        total0, total1, total2, total3 = warpgroup_mma_wait(0, deps=(total0, total1, total2, total3))
        if MASKED:
            mbarrier.wait(other.index(1), turn & 1)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        result0 = _finished(total0, bias, edge.index(0), found, ACTIVATE, MASKED, LEAK)
        result1 = _finished(total1, bias, edge.index(1), found, ACTIVATE, MASKED, LEAK)
        result2 = _finished(total2, bias, edge.index(2), found, ACTIVATE, MASKED, LEAK)
        result3 = _finished(total3, bias, edge.index(3), found, ACTIVATE, MASKED, LEAK)
        fence_async_shared()
        gl.thread_barrier()
        for sent in gl.static_range(4):
            tma.async_copy_shared_to_global(
                big, [image, 0, sent // 2, 0, sent % 2 * CB],
                edge.index(sent)._reinterpret(gl.bfloat16, [BESIDE, H, 1, W, CB], big.layout),
            )  # fmt: skip
        if sums is not None:
            summed += (result0 + result1) + (result2 + result3)
    if sums is not None:
        out = gl.arange(0, CB, gl.SliceLayout(0, found))
        gl.store(sums + gl.program_id(0) * CB + out, gl.sum(summed, axis=0))
    tma.store_wait(0)


@gluon.jit
def _ask_neighbour(
    small, ring, full, image, D: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, BESIDE: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a neighbour, numbered line by line from the beginning of ``image``."""
    wanted = count < n_portions
    mbarrier.expect(full.index(count % SLOTS), BESIDE * H * W * CS * 2, pred=wanted)
    target = ring.index(count % SLOTS)._reinterpret(gl.bfloat16, [BESIDE, H, W, CS], small.layout)
    at = [image + D // 9 * BESIDE, D % 9 // 3 - 1, D % 3 - 1, 0]
    tma.async_copy_global_to_shared(small, at, full.index(count % SLOTS), target, pred=wanted)


@gluon.jit
def _down_by_pairs(
    big, pairs, weights, like, small, row, sums, weight_stride, weight_at, bias_at, parts, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, IMAGES: gl.constexpr,
    ACTIVATE: gl.constexpr, MASKED: gl.constexpr, LEAK: gl.constexpr,
):  # fmt: skip
    """Four portions an image, each with a place of its own: for each row parity the middle columns, then the outer two.

    Lines of zeros: two behind the first pair, one behind each of the next two boxes, and so before those of parity 1.
    """
    WARPS: gl.constexpr = gl.num_warps()
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, CS, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * IMAGES
    n_images = gl.minimum(IMAGES, n_batch - begin)
    first = model * n_batch + begin

    ring = gl.allocate_shared_memory(gl.bfloat16, [8 * H + 8, W, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], small.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [H * W, CS], small.layout)
    full = gl.allocate_shared_memory(gl.int64, [4, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for one in gl.static_range(4):
        mbarrier.init(full.index(one), count=1)
    mbarrier.init(other.index(0), count=1)
    mbarrier.init(other.index(1), count=1)
    thin: gl.constexpr = gl.BlockedLayout([1, 2], [32 * 2 // CB, CB // 2], [WARPS, 1], [1, 0])
    nothing = gl.zeros([W, CB], gl.bfloat16, thin)
    ring.index(2 * H).store(nothing)
    ring.index(2 * H + 1).store(nothing)
    ring.index(3 * H + 2).store(nothing)
    ring.index(4 * H + 3).store(nothing)
    ring.index(4 * H + 4).store(nothing)
    ring.index(6 * H + 5).store(nothing)
    ring.index(7 * H + 6).store(nothing)
    fence_async_shared()
    gl.thread_barrier()

    mbarrier.expect(other.index(0), 16 * CB * CS * 2)
    for half in gl.static_range(2):
        start = model * (weight_stride // CS) + weight_at // CS + half * (8 * CB)
        target = kept.index(half * 8)._reinterpret(gl.bfloat16, [8 * CB, CS], weights.layout)
        tma.async_copy_global_to_shared(weights, [start, 0], other.index(0), target)
    _ask_two(big, pairs, ring, full, first, 0, True, H, W, CB)
    _ask_two(big, pairs, ring, full, first, 1, True, H, W, CB)
    _ask_two(big, pairs, ring, full, first, 2, True, H, W, CB)
    mbarrier.wait(other.index(0), 0)

    bias = gl.zeros([CS], gl.float32, gl.SliceLayout(0, found))
    if ACTIVATE:
        channel = gl.arange(0, CS, gl.SliceLayout(0, found))
        bias = gl.load(row + model.to(gl.int64) * weight_stride + bias_at + channel).to(gl.float32)
    summed = gl.zeros([H * W, CS], gl.float32, found)
    total = gl.zeros([H * W, CS], gl.float32, found)
    for image in range(n_images):
        phase = image & 1
        mbarrier.wait(full.index(0), phase)
        total = _middle(ring, kept, total, 0, 2, 1, 3, False, H, W, CB, CS)
        total = warpgroup_mma_wait(2, deps=(total,))
        gl.thread_barrier()
        _ask_two(big, pairs, ring, full, first + image, 3, True, H, W, CB)
        mbarrier.wait(full.index(1), phase)
        total = _outer(ring, kept, total, 2 * H + 2, 1, 1, 3, H, W, CB)
        total = warpgroup_mma_wait(4, deps=(total,))
        gl.thread_barrier()
        _ask_two(big, pairs, ring, full, first + image + 1, 0, image + 1 < n_images, H, W, CB)
        if MASKED:
            tma.store_wait(0)
            mbarrier.expect(other.index(1), H * W * CS * 2)
            tma.async_copy_global_to_shared(like, [(first + image) * (H * W), 0], other.index(1), edge)
        mbarrier.wait(full.index(2), phase)
        total = _middle(ring, kept, total, 4 * H + 5, -2, 2, 0, True, H, W, CB, CS)
        total = warpgroup_mma_wait(2, deps=(total,))
        gl.thread_barrier()
        _ask_two(big, pairs, ring, full, first + image + 1, 1, image + 1 < n_images, H, W, CB)
        mbarrier.wait(full.index(3), phase)
        total = _outer(ring, kept, total, 6 * H + 6, -1, 2, 0, H, W, CB)
        total = warpgroup_mma_wait(4, deps=(total,))
        gl.thread_barrier()
        _ask_two(big, pairs, ring, full, first + image + 1, 2, image + 1 < n_images, H, W, CB)
        total = warpgroup_mma_wait(0, deps=(total,))
        if MASKED:
            mbarrier.wait(other.index(1), phase)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        result = _finished(total, bias, edge, found, ACTIVATE, MASKED, LEAK)
        fence_async_shared()
        gl.thread_barrier()
        tma.async_copy_shared_to_global(small, [(first + image) * (H * W), 0], edge)
        if sums is not None:
            summed += result
    if sums is not None:
        out = gl.arange(0, CS, gl.SliceLayout(0, found))
        gl.store(sums + gl.program_id(0) * CS + out, gl.sum(summed, axis=0))
    tma.store_wait(0)


@gluon.jit
def _middle(
    ring, kept, total, line, FURTHER: gl.constexpr, KY: gl.constexpr, OTHER: gl.constexpr, BEGUN: gl.constexpr,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr,
):  # fmt: skip
    """A pair of columns under kernel row KY, and FURTHER half lines on under another."""
    image: gl.constexpr = gl.NVMMASharedLayout(4 * CB, 16, 2)
    taps: gl.constexpr = gl.NVMMASharedLayout(2 * CS, 16, 2)
    own = ring.index(line)._reinterpret(gl.bfloat16, [H * W, 2 * CB], image)
    weight = kept.index(KY * 4 + 1)._reinterpret(gl.bfloat16, [2 * CB, CS], taps)
    total = warpgroup_mma(own, weight, total, use_acc=BEGUN, is_async=True)
    beside = ring.index(line + FURTHER)._reinterpret(gl.bfloat16, [H * W, 2 * CB], image)
    weight = kept.index(OTHER * 4 + 1)._reinterpret(gl.bfloat16, [2 * CB, CS], taps)
    return warpgroup_mma(beside, weight, total, is_async=True)


@gluon.jit
def _outer(
    ring, kept, total, line, FURTHER: gl.constexpr, KY: gl.constexpr, OTHER: gl.constexpr,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr,
):  # fmt: skip
    """Kernel columns 0 and 3, whose boxes lie one after the other, under two kernel rows."""
    image: gl.constexpr = gl.NVMMASharedLayout(2 * CB, 16, 2)
    for kx in gl.static_range(0, 4, 3):
        own = ring.index(line + kx // 3 * (H + 1))._reinterpret(gl.bfloat16, [H * W, CB], image)
        total = warpgroup_mma(own, kept.index(KY * 4 + kx), total, is_async=True)
        beside = ring.index(line + FURTHER + kx // 3 * (H + 1))._reinterpret(gl.bfloat16, [H * W, CB], image)
        total = warpgroup_mma(beside, kept.index(OTHER * 4 + kx), total, is_async=True)
    return total


@gluon.jit
def _ask_two(
    big, pairs, ring, full, image, PORTION: gl.constexpr, wanted, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr
):  # fmt: skip
    """Ask for one of the four portions of an image."""
    parity: gl.constexpr = PORTION // 2
    mbarrier.expect(full.index(PORTION), H * W * CB * 4, pred=wanted)
    if PORTION % 2 == 0:
        target = ring.index(parity * (4 * H + 5))._reinterpret(gl.bfloat16, [1, H, 1, W, 2 * CB], pairs.layout)
        tma.async_copy_global_to_shared(pairs, [image, 0, parity, 0, 0], full.index(PORTION), target, pred=wanted)
    else:
        for side in gl.static_range(2):
            line = 2 * H + 2 + parity * (4 * H + 4) + side * (H + 1)
            box = ring.index(line)._reinterpret(gl.bfloat16, [1, H, 1, W, CB], big.layout)
            at = [image, 0, parity, 2 * side - 1, (1 - side) * CB]
            tma.async_copy_global_to_shared(big, at, full.index(PORTION), box, pred=wanted)
