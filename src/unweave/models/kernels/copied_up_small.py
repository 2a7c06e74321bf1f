"""The upward convolution of images so small that they make 64 pixels only together, by a Hopper card's copy engine."""

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
    made_ready,
    parity_boxes,
    weight_boxes,
)
from unweave.models.kernels.copied_up import ask_for_parities, send_parities
from unweave.models.kernels.copies import SUMMED, WHOLE, Shares
from unweave.models.kernels.join import Join
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


def up_small_by_copies(
    join: Join, small: Tensor, weights: Tensor, chosen: Shares, images: int, *, activate: bool = False,
    like: Tensor | None = None, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """As ``up``, for 64 channels in bf16, kernels of 4×4 and batches that can be divided by the images of 64 pixels."""
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    beside = WHOLE // (join.height * join.width)
    n_sums, parts = triton.cdiv(n_batch, SUMMED), triton.cdiv(n_batch, images)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, n_sums, join.n_big)
    _up_small_by_copies[(n_models * parts,)](
        image_boxes(small, beside), weight_boxes(join, weights, 4),
        parity_boxes(join, big if like is None else like, beside), parity_boxes(join, big, beside), weights, sums,
        weights.stride(0), join.weight_at, join.bias_at, parts, n_batch, images, n_sums, SUMMED,
        join.height, join.width, join.n_big, join.n_small, beside, chosen.slots,
        activate, like is not None, num_warps=chosen.warps,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return big


@gluon.jit(do_not_specialize=["images", "n_sums"])
def _up_small_by_copies(
    small, weights, like, big, row, sums, weight_stride, weight_at, bias_at, parts, n_batch, images, n_sums,
    SUMMED: gl.constexpr, H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr,
    BESIDE: gl.constexpr, SLOTS: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """Nine neighbours of 64 small pixels, some whole images; each is heard by one, two or all four parities."""
    PIXELS: gl.constexpr = BESIDE * H * W
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, CB, 16])
    model = gl.program_id(0) // parts
    begin = gl.program_id(0) % parts * images
    n_turns = gl.minimum(images, n_batch - begin) // BESIDE
    first = model * n_batch + begin

    ring = gl.allocate_shared_memory(gl.bfloat16, [SLOTS, PIXELS, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    kept = gl.allocate_shared_memory(gl.bfloat16, [16, CB, CS], weights.layout)
    edge = gl.allocate_shared_memory(gl.bfloat16, [4, PIXELS, CB], gl.NVMMASharedLayout(2 * CB, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    other = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    made_ready(full, other, SLOTS)
    fence_async_shared()
    gl.thread_barrier()
    ask_for_weights(weights, kept, other.index(0), model * (weight_stride // CS) + weight_at // CS, 4, CB, CS)
    for ahead in gl.static_range(SLOTS - 1):
        _ask_neighbour(small, ring, full, first, ahead, ahead, n_turns * 9, H, W, CS, BESIDE, SLOTS)
    mbarrier.wait(other.index(0), 0)

    bias = bias_of(row, model.to(gl.int64) * weight_stride + bias_at, found, CB, ACTIVATE)
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
                total0 = _heard(own, kept, total0, (3 - 2 * (d // 3)) * 4 + 3 - 2 * (d % 3), d > 0)
            if d < 6 and d % 3 > 0:
                total1 = _heard(own, kept, total1, (3 - 2 * (d // 3)) * 4 + 4 - 2 * (d % 3), d > 1)
            if d > 2 and d % 3 < 2:
                total2 = _heard(own, kept, total2, (4 - 2 * (d // 3)) * 4 + 3 - 2 * (d % 3), d > 3)
            if d > 2 and d % 3 > 0:
                total3 = _heard(own, kept, total3, (4 - 2 * (d // 3)) * 4 + 4 - 2 * (d % 3), d > 4)
            total0, total1, total2, total3 = warpgroup_mma_wait(
                (1 + d // 3 % 2) * (1 + d % 3 % 2), deps=(total0, total1, total2, total3)
            )
            gl.thread_barrier()
            _ask_neighbour(
                small, ring, full, image, d + SLOTS - 1, count + SLOTS - 1, n_turns * 9, H, W, CS, BESIDE, SLOTS
            )
            if MASKED and d == 4:
                tma.store_wait(0)
                ask_for_parities(like, edge, other.index(1), image, BESIDE, H, W, CB)
        total0, total1, total2, total3 = warpgroup_mma_wait(0, deps=(total0, total1, total2, total3))
        if MASKED:
            mbarrier.wait(other.index(1), turn & 1)
        else:
            tma.store_wait(0)
        gl.thread_barrier()
        result0 = finished(total0, bias, edge.index(0), found, ACTIVATE, MASKED)
        result1 = finished(total1, bias, edge.index(1), found, ACTIVATE, MASKED)
        result2 = finished(total2, bias, edge.index(2), found, ACTIVATE, MASKED)
        result3 = finished(total3, bias, edge.index(3), found, ACTIVATE, MASKED)
        send_parities(big, edge, image, BESIDE, H, W, CB)
        if sums is not None:
            summed += (result0 + result1) + (result2 + result3)
            if ((turn + 1) * BESIDE % SUMMED == 0) | (turn + 1 == n_turns):
                leave_sum(sums, model * n_sums + (begin + turn * BESIDE) // SUMMED, summed, found, CB)
                summed = gl.zeros([PIXELS, CB], gl.float32, found)
    tma.store_wait(0)


@gluon.jit
def _heard(own, kept, total, TAP: gl.constexpr, BEGUN: gl.constexpr):
    return warpgroup_mma(own, kept.index(TAP).permute((1, 0)), total, use_acc=BEGUN, is_async=True)


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
