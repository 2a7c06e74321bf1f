"""The last transposed convolution of one channel, with its loss, by the copy engine of a Hopper card, in Gluon."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from unweave.models.kernels.boxes import made_ready, pixel_boxes, weight_boxes
from unweave.models.kernels.copies import Shares
from unweave.models.kernels.join import Join
from unweave.shapes import Float, Int, Tensor


def loss_by_copies(
    join: Join, masks: Int[Tensor, "model batch pixel"], small: Tensor, weights: Tensor, chosen: Shares
) -> tuple[
    Float[Tensor, "model batch"], Float[Tensor, "model batch height width four"], Float[Tensor, "model batch 16"]
]:
    """As ``last_forward``, for 32 small channels in bf16, one big one, and bits that fill the frame."""
    n_models, n_batch = small.shape[:2]
    pixels = small.new_empty(n_models, n_batch, join.height, join.width, 4)
    loss = torch.empty(n_models, n_batch, dtype=torch.float32, device=small.device)
    sums = torch.empty(n_models, n_batch, 16, dtype=torch.float32, device=small.device)
    programs = min(chosen.images, n_models * n_batch)
    _loss_by_copies[(programs,)](
        pixel_boxes(small, chosen.columns), weight_boxes(join, weights, 1), masks, weights, pixels.view(torch.int64),
        loss, sums, weights.stride(0), join.weight_at, join.bias_at, n_batch, n_models * n_batch, programs,
        join.height, join.width, join.n_small, chosen.columns, chosen.slots, num_warps=chosen.warps,
    )  # fmt: skip
    return loss, pixels, sums


@gluon.constexpr_function
def _thin(n_pixels, n_warps):
    """A pixel a lane, two neighbours exchanged: else rows of matrices are loaded, which must not begin anywhere."""
    lanes, warps, registers = [[2], [1], [4], [8], [16]], [], []
    step = 32
    while step < n_pixels:
        (warps if step < 32 * n_warps else registers).append([step])
        step *= 2
    return gl.DistributedLinearLayout(registers, lanes, warps, [], [n_pixels])


@gluon.jit(do_not_specialize=["n_batch", "n_images", "programs"])
def _loss_by_copies(
    small, weights, masks, row, pixels, loss, sums, weight_stride, weight_at, bias_at, n_batch, n_images, programs,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, PIXELS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """All 16 products of every small pixel are left in shared memory; then four of them meet in every output.

    They lie by tap, as plain memory, whose views may begin at any pixel. Four values between taps spread what a warp
    leaves at once, eight pixels of four taps two apart, over all banks.
    """
    PORTIONS: gl.constexpr = H * W // PIXELS
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, 16, 16])
    thin: gl.constexpr = _thin(H * W, gl.num_warps())
    four: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    apart: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[H * W, 4]], [H * W, 16], [0, 1])
    program = gl.program_id(0)
    n_turns = (n_images - program + programs - 1) // programs

    flat = gl.allocate_shared_memory(gl.float32, [16 * (H * W + 4), 1], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ring = gl.allocate_shared_memory(gl.bfloat16, [SLOTS, PIXELS, CS], small.layout)
    kept = gl.allocate_shared_memory(gl.bfloat16, [2, 16, CS], weights.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    made_ready(full, None, SLOTS)
    fence_async_shared()
    gl.thread_barrier()
    line, lines = weight_at // CS, weight_stride // CS
    for ahead in gl.static_range(SLOTS):
        _ask(
            small, weights, ring, kept, full, 0, ahead, n_turns, programs, n_batch, line, lines, H, W, CS, PIXELS, SLOTS
        )

    products = flat.index(0)._reinterpret(gl.float32, [H * W, 16], apart)
    pixel = gl.arange(0, H * W, thin)
    nothing = gl.zeros([PIXELS, 16], gl.float32, found)
    for turn in range(n_turns):
        example = program.to(gl.int64) + turn * programs
        word = gl.load(masks + example * (H * W) + pixel)
        bias = gl.load(row + example // n_batch * weight_stride + bias_at).to(gl.float32)
        weight = kept.index(turn % 2).permute((1, 0))
        total = nothing
        for portion in gl.static_range(PORTIONS + 1):
            count = turn * PORTIONS + portion
            before = total
            if portion > 0:
                before = warpgroup_mma_wait(0, deps=(total,))
                gl.thread_barrier()
                _ask(
                    small, weights, ring, kept, full, turn, portion + SLOTS - 1, n_turns, programs, n_batch, line,
                    lines, H, W, CS, PIXELS, SLOTS,
                )  # fmt: skip
            if portion < PORTIONS:
                mbarrier.wait(full.index(count % SLOTS), count // SLOTS & 1)
                total = warpgroup_mma(ring.index(count % SLOTS), weight, nothing, use_acc=False, is_async=True)
            if portion > 0:
                products.slice((portion - 1) * PIXELS, PIXELS).store(before)
        gl.thread_barrier()
        cost0, slope0 = _bernoulli(_met(flat, bias, pixel, 0, 0, H, W, thin), word, 5)
        cost1, slope1 = _bernoulli(_met(flat, bias, pixel, 0, 1, H, W, thin), word, 6)
        cost2, slope2 = _bernoulli(_met(flat, bias, pixel, 1, 0, H, W, thin), word, 9)
        cost3, slope3 = _bernoulli(_met(flat, bias, pixel, 1, 1, H, W, thin), word, 10)
        gl.store(pixels + example * (H * W) + pixel, packed(slope0, slope1, slope2, slope3))
        gl.store(loss + example, gl.sum((cost0 + cost1) + (cost2 + cost3), axis=0))
        both = gl.join(gl.join(slope0, slope2), gl.join(slope1, slope3))
        summed = gl.convert_layout(gl.reshape(gl.sum(both, axis=0), [4]), four)
        gl.store(sums + example * 16 + gl.arange(0, 4, four), summed)


@gluon.jit
def _ask(
    small, weights, ring, kept, full, turn, PORTION: gl.constexpr, n_turns, programs, n_batch, line, lines,
    H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr, PIXELS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a portion, numbered from the image of ``turn``; with the first of an image come its model's weights."""
    PORTIONS: gl.constexpr = H * W // PIXELS
    asked = turn + PORTION // PORTIONS
    image = gl.program_id(0) + asked * programs
    slot = (turn * PORTIONS + PORTION) % SLOTS
    wanted = asked < n_turns
    if PORTION % PORTIONS == 0:
        mbarrier.expect(full.index(slot), (PIXELS + 16) * CS * 2, pred=wanted)
        begin = line + image // n_batch * lines
        tma.async_copy_global_to_shared(weights, [begin, 0], full.index(slot), kept.index(asked % 2), pred=wanted)
    else:
        mbarrier.expect(full.index(slot), PIXELS * CS * 2, pred=wanted)
    at = image * (H * W) + PORTION % PORTIONS * PIXELS
    tma.async_copy_global_to_shared(small, [at, 0], full.index(slot), ring.index(slot), pred=wanted)


@gluon.jit
def _met(flat, bias, pixel, PY: gl.constexpr, PX: gl.constexpr, H: gl.constexpr, W: gl.constexpr, thin: gl.constexpr):
    """[small pixel] the outputs of one parity: each hears two lines and two columns, in an order that stays."""
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    x, y = pixel % W, pixel // W
    total = gl.zeros([H * W], gl.float32, thin) + bias
    for e in gl.static_range(4):
        dy = PY - 1 + e // 2
        dx = PX - 1 + e % 2
        tap = (3 - PY - 2 * (e // 2)) * 4 + 3 - PX - 2 * (e % 2)
        heard = flat.index(tap * (H * W + 4) + dy * W + dx)._reinterpret(gl.float32, [H * W], plain).load(thin)
        if dy != 0:
            heard = gl.where((y + dy >= 0) & (y + dy < H), heard, 0.0)
        if dx != 0:
            heard = gl.where((x + dx >= 0) & (x + dx < W), heard, 0.0)
        total += heard
    return total


@gluon.jit
def _bernoulli(logit, word, BIT: gl.constexpr):
    """Cost and slope, as in the kernels of ``last.py``, of the pixels that one bit of every mask tells."""
    value = ((word >> BIT) & 1).to(gl.float32)
    tail = gl.exp(-gl.abs(logit))
    cost = gl.maximum(logit, 0.0) - logit * value + gl.log(1.0 + tail)
    return cost, gl.where(logit >= 0, 1.0, tail) / (1.0 + tail) - value


@gluon.jit
def packed(value0, value1, value2, value3):
    """Four numbers in bf16, one after the other, as one of 64 bits."""
    low = (_bits(value1) << 16) | _bits(value0)
    high = (_bits(value3) << 16) | _bits(value2)
    return (high.to(gl.int64) << 32) | (low.to(gl.int64) & 0xFFFFFFFF)


@gluon.jit
def _bits(value):
    return value.to(gl.bfloat16).to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
