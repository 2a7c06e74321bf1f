"""Weight gradients of convolutions with images brought by the copy engine of a Hopper card, in Gluon."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

from unweave.models.kernels.boxes import image_boxes, lines_of_zeros, made_ready, parity_boxes
from unweave.models.kernels.copied_up import ask_for_image, take_image
from unweave.models.kernels.copies import Shares
from unweave.models.kernels.join import Join
from unweave.shapes import Float, Tensor


def correlate_by_copies(
    join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"], chosen: Shares
) -> None:
    """As ``correlate``, for 32 big channels in bf16, kernels of 4×4 and small images of 64 pixels or 256."""
    n_models, n_batch = big.shape[:2]
    _correlate_by_copies[(n_models * 2,)](
        parity_boxes(join, big, columns=2), image_boxes(small), gradients, gradients.stride(0), join.weight_at, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.slots, num_warps=chosen.warps,
    )  # fmt: skip


@gluon.jit
def _correlate_by_copies(
    big, small, gradients, gradient_stride, weight_at, n_batch,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """One row parity of the big image, which lies under two kernel rows; small images come moved by a column.

    A product has both column parities as its rows: 64 is the least that the matrix units take.
    """
    AHEAD: gl.constexpr = (SLOTS - 1) // 3 + 1
    found: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, CS, 16])
    model, parity = gl.program_id(0) // 2, gl.program_id(0) % 2
    first = model * n_batch

    LINES: gl.constexpr = SLOTS * (H + 1) + 2 - SLOTS * (H + 1) % 2
    pairs = gl.allocate_shared_memory(gl.bfloat16, [AHEAD, H * W, 2 * CB], gl.NVMMASharedLayout(4 * CB, 16, 2))
    ring = gl.allocate_shared_memory(gl.bfloat16, [LINES, W, CS], gl.NVMMASharedLayout(2 * CS, 16, 2))
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    made_ready(full, None, SLOTS)
    lines_of_zeros(ring, SLOTS, H, W, CS)
    for ahead in gl.static_range(SLOTS - 1):
        _ask(big, small, pairs, ring, full, first, 0, ahead, ahead, parity, n_batch, H, W, CB, CS, SLOTS)

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
            _ask(
                big, small, pairs, ring, full, first, image, column + SLOTS - 1, count + SLOTS - 1, parity, n_batch,
                H, W, CB, CS, SLOTS,
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
def _ask(
    big, small, pairs, ring, full, first, image, PORTION: gl.constexpr, count, parity, n_images,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a portion, numbered from ``image``: a small image, moved; with the first of three the big one, too."""
    asked = image + PORTION // 3
    if PORTION % 3 == 0:
        _ask_pair(big, pairs, full, first, asked, parity, count, n_images, H, W, CB, CS, SLOTS)
        take_image(small, ring, full, first + asked, 0, count, n_images * 3, H, W, CS, SLOTS)
    else:
        ask_for_image(small, ring, full, first + asked, PORTION % 3, count, n_images * 3, H, W, CS, SLOTS)


@gluon.jit
def _ask_pair(
    big, pairs, full, first, image, parity, count, n_images,
    H: gl.constexpr, W: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """Ask for a big image of one row parity; the barrier waits for the small one with it."""
    AHEAD: gl.constexpr = (SLOTS - 1) // 3 + 1
    wanted = image < n_images
    mbarrier.expect(full.index(count % SLOTS), H * W * (2 * CB + CS) * 2, pred=wanted)
    target = pairs.index(image % AHEAD)._reinterpret(gl.bfloat16, [1, H, 1, W, 2 * CB], big.layout)
    at = [first + image, 0, parity, 0, 0]
    tma.async_copy_global_to_shared(big, at, full.index(count % SLOTS), target, pred=wanted)


@gluon.jit
def _two_rows(ring, pair, own, beside, line, parity, H: gl.constexpr, W: gl.constexpr, CS: gl.constexpr):
    """The products of a moved small image with both lines of the big one that its pixels lie under."""
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
