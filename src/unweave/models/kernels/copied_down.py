"""The downward convolution with images brought by the copy engine of a Hopper card, in Gluon."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
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

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.boxes import (
    ask_for_weights,
    bias_of,
    finished,
    flat_boxes,
    leave_sum,
    lines_of_zeros,
    made_ready,
    parity_boxes,
    weight_boxes,
)
from unweave.models.kernels.copies import SUMMED, Shares
from unweave.models.kernels.join import Join
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


def down_by_copies(
    join: Join, big: Tensor, weights: Tensor, chosen: Shares, images: int, *, activate: bool = False,
    like: Tensor | None = None, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """As ``down``, for 32 big channels in bf16, kernels of 4×4 and small images of 64 pixels or 256."""
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    n_sums, parts = triton.cdiv(n_batch, SUMMED), triton.cdiv(n_batch, images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, n_sums, join.n_small)
    _down_by_copies[(n_models * parts,)](
        parity_boxes(join, big), weight_boxes(join, weights, 2), flat_boxes(small if like is None else like),
        flat_boxes(small), weights, sums, weights.stride(0), join.weight_at, join.bias_at, parts, n_batch, images,
        n_sums, SUMMED, join.height, join.width, join.n_big, join.n_small, chosen.columns, chosen.slots,
        activate, like is not None, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return small


@gluon.jit(do_not_specialize=["images", "n_sums"])
def _down_by_copies(
    big, weights, like, small, row, sums, weight_stride, weight_at, bias_at, parts, n_batch, images, n_sums,
    SUMMED: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr,
    COLUMNS: gl.constexpr, SLOTS: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Σ over the kernel of big pixels · weights: a portion is some columns of the kernel, of one row parity."""
    PORTIONS: gl.constexpr = 8 // COLUMNS
    BOXES: gl.constexpr = SLOTS * COLUMNS
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, CS, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * images
    n_images = gl.minimum(images, n_batch - begin)
    first = model * n_batch + begin

    # an even number of lines, so that whatever comes behind begins where a pattern of banks does
    LINES: gl.constexpr = BOXES * (H + 1) + 2 - BOXES * (H + 1) % 2
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], small.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [H * W, CS], small.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    made_ready(full, other, SLOTS)
    lines_of_zeros(ring, BOXES, H, W, CB)
    ask_for_weights(weights, kept, other.index(0), model * (weight_stride // CS) + weight_at // CS, 2, CB, CS)
    for ahead in gl.static_range(SLOTS - 1):
        _ask(big, ring, full, first, ahead, ahead, n_images * PORTIONS, H, W, CB, COLUMNS, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = bias_of(row, model.to(gl.int64) * weight_stride + bias_at, found, CS, ACTIVATE)
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
        if MASKED:
            mbarrier.wait(other.index(1), image & 1)
        else:
            tma.store_wait(0)
            gl.thread_barrier()
        result = finished(total, bias, edge, found, ACTIVATE, MASKED)
        fence_async_shared()
        gl.thread_barrier()
        tma.async_copy_shared_to_global(small, [(first + image) * (H * W), 0], edge)
        if sums is not None:
            summed += result
            if ((image + 1) % SUMMED == 0) | (image + 1 == n_images):
                leave_sum(sums, model * n_sums + (begin + image) // SUMMED, summed, found, CS)
                summed = gl.zeros([H * W, CS], gl.float32, found)
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
    """Ask for a portion, numbered from the beginning of ``image``."""
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
