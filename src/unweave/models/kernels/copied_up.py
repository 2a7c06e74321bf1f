"""The upward convolution with images brought by the copy engine of a Hopper card, in Gluon."""

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
    image_boxes,
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


def up_by_copies(
    join: Join, small: Tensor, weights: Tensor, chosen: Shares, images: int, *, activate: bool = False,
    like: Tensor | None = None, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """As ``up``, for 32 big channels in bf16, kernels of 4×4 and small images of 64 pixels or 256."""
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    n_sums, parts = triton.cdiv(n_batch, SUMMED), triton.cdiv(n_batch, images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, n_sums, join.n_big)
    _up_by_copies[(n_models * parts,)](
        image_boxes(small), weight_boxes(join, weights, 2), parity_boxes(join, big if like is None else like),
        parity_boxes(join, big), weights, sums, weights.stride(0), join.weight_at, join.bias_at, parts, n_batch,
        images, n_sums, SUMMED, join.height, join.width, join.n_big, join.n_small, chosen.slots,
        activate, like is not None, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return big


@gluon.jit(do_not_specialize=["images", "n_sums"])
def _up_by_copies(
    small, weights, like, big, row, sums, weight_stride, weight_at, bias_at, parts, n_batch, images, n_sums,
    SUMMED: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr,
    SLOTS: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """A small image comes three times, moved by a column; what lies above and below a pixel is in the same memory."""
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, CB, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * images
    n_images = gl.minimum(images, n_batch - begin)
    first = model * n_batch + begin

    LINES: gl.constexpr = SLOTS * (H + 1) + 2 - SLOTS * (H + 1) % 2
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], weights.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [4, H * W, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    made_ready(full, other, SLOTS)
    lines_of_zeros(ring, SLOTS, H, W, CS)
    ask_for_weights(weights, kept, other.index(0), model * (weight_stride // CS) + weight_at // CS, 2, CB, CS)
    for ahead in gl.static_range(SLOTS - 1):
        ask_for_image(small, ring, full, first + ahead // 3, ahead % 3, ahead, n_images * 3, H, W, CS, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = bias_of(row, model.to(gl.int64) * weight_stride + bias_at, found, CB, ACTIVATE)
    summed = gl.zeros([H * W, CB], gl.float32, found)
    total0 = gl.zeros([H * W, CB], gl.float32, found)
    total1, total2, total3 = total0, total0, total0
    for image in range(n_images):
        for column in gl.static_range(3):
            count = image * 3 + column
            mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
            line = count % SLOTS * (H + 1) + 1
            if column < 2:
                total0, total2 = _two_lines(ring, kept, total0, total2, line, 3 - 2 * column, column > 0, H, W, CS)
            if column > 0:
                total1, total3 = _two_lines(ring, kept, total1, total3, line, 4 - 2 * column, column > 1, H, W, CS)
            total0, total1, total2, total3 = warpgroup_mma_wait(
                4 + 4 * (column % 2), deps=(total0, total1, total2, total3)
            )
            gl.thread_barrier()
            ask_for_image(
                small, ring, full, first + image + (column + SLOTS - 1) // 3, (column + SLOTS - 1) % 3,
                count + SLOTS - 1, n_images * 3, H, W, CS, SLOTS,
            )  # fmt: skip
            if MASKED and column == 1:
                tma.store_wait(0)
                ask_for_parities(like, edge, other.index(1), first + image, 1, H, W, CB)
        total0, total1, total2, total3 = warpgroup_mma_wait(0, deps=(total0, total1, total2, total3))
        if MASKED:
            mbarrier.wait(other.index(1), image & 1)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        result0 = finished(total0, bias, edge.index(0), found, ACTIVATE, MASKED)
        result1 = finished(total1, bias, edge.index(1), found, ACTIVATE, MASKED)
        result2 = finished(total2, bias, edge.index(2), found, ACTIVATE, MASKED)
        result3 = finished(total3, bias, edge.index(3), found, ACTIVATE, MASKED)
        send_parities(big, edge, first + image, 1, H, W, CB)
        if sums is not None:
            summed += (result0 + result1) + (result2 + result3)
            if ((image + 1) % SUMMED == 0) | (image + 1 == n_images):
                leave_sum(sums, model * n_sums + (begin + image) // SUMMED, summed, found, CB)
                summed = gl.zeros([H * W, CB], gl.float32, found)
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
def ask_for_image(
    small, ring, full, image, COLUMN: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a small image moved by a column less than ``COLUMN``."""
    mbarrier.expect(full.index(count % SLOTS), H * W * CS * 2, pred=count < n_portions)
    take_image(small, ring, full, image, COLUMN, count, n_portions, H, W, CS, SLOTS)


@gluon.jit
def take_image(
    small, ring, full, image, COLUMN: gl.constexpr, count, n_portions,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """As ``ask_for_image``, of which the barrier knows."""
    slot = count % SLOTS
    target = ring.index(slot * (H + 1) + 1)._reinterpret(gl.bfloat16, [1, H, W, CS], small.layout)
    at = [image, 0, COLUMN - 1, 0]
    tma.async_copy_global_to_shared(small, at, full.index(slot), target, pred=count < n_portions)


@gluon.jit
def ask_for_parities(
    like, edge, barrier, image, BESIDE: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr
):  # fmt: skip
    """All four parities of some big images."""
    mbarrier.expect(barrier, 4 * (BESIDE * H * W * CB * 2))
    for parity in gl.static_range(4):
        target = edge.index(parity)._reinterpret(gl.bfloat16, [BESIDE, H, 1, W, CB], like.layout)
        tma.async_copy_global_to_shared(like, [image, 0, parity // 2, 0, parity % 2 * CB], barrier, target)


@gluon.jit
def send_parities(big, edge, image, BESIDE: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr):
    """All four parities, once everybody has left theirs in shared memory."""
    fence_async_shared()
    gl.thread_barrier()
    for parity in gl.static_range(4):
        source = edge.index(parity)._reinterpret(gl.bfloat16, [BESIDE, H, 1, W, CB], big.layout)
        tma.async_copy_shared_to_global(big, [image, 0, parity // 2, 0, parity % 2 * CB], source)
