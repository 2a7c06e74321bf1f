"""Boxes of images that the copy engine of a Hopper card brings into shared memory, and what kernels do around it.

A big image [model, batch, 2h, 2w, big] is seen, without a copy, as [image, h, row parity, w, (column parity, big)].
What lies under one place of the 4×4 kernel is then a dense box of it, and the engine writes zeros where the box leaves
the image. A box of one row parity serves two rows of the kernel, one line of pixels apart: lines of zeros stand between
boxes in shared memory, so both are the same memory.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from unweave.models.kernels.join import Join
from unweave.shapes import Tensor


def swizzled(channels: int, rank: int) -> gl.NVMMASharedLayout:
    """Shared memory as copies write it and products read it, a row of channels being 32, 64 or 128 bytes."""
    return gl.NVMMASharedLayout(swizzle_byte_width=min(2 * channels, 128), element_bitwidth=16, rank=rank)


def parity_boxes(join: Join, big: Tensor, beside: int = 1, columns: int = 1) -> TensorDescriptor:
    """The big image by parities; a box is some whole images of one row parity, of one column parity or both."""
    h, w, c = join.height, join.width, join.n_big
    n_images = big.shape[0] * big.shape[1]
    shape, strides = [n_images, h, 2, w, 2 * c], [4 * h * w * c, 4 * w * c, 2 * w * c, 2 * c, 1]
    return TensorDescriptor(big, shape, strides, [beside, h, 1, w, columns * c], swizzled(columns * c, 5))


def image_boxes(images: Tensor, beside: int = 1) -> TensorDescriptor:
    """Images of any model; a box is some whole ones, moved by some pixels."""
    height, width, channels = images.shape[2:]
    return TensorDescriptor.from_tensor(images.flatten(0, 1), [beside, height, width, channels], swizzled(channels, 4))


def flat_boxes(small: Tensor) -> TensorDescriptor:
    """As ``pixel_boxes``; a box is one image."""
    return pixel_boxes(small, small.shape[2] * small.shape[3])


def pixel_boxes(small: Tensor, n_pixels: int) -> TensorDescriptor:
    """Pixels of all small images, one after the other; a box is some of them."""
    channels = small.shape[4]
    return TensorDescriptor(
        small, [small.numel() // channels, channels], [channels, 1], [n_pixels, channels], swizzled(channels, 2)
    )


def weight_boxes(join: Join, weights: Tensor, pieces: int) -> TensorDescriptor:
    """All rows of weights as lines of small channels; that many boxes are a kernel, of at most 256 lines each."""
    shape, box = [weights.numel() // join.n_small, join.n_small], [16 // pieces * join.n_big, join.n_small]
    return TensorDescriptor(weights, shape, [join.n_small, 1], box, swizzled(join.n_small, 2))


@gluon.jit
def made_ready(full, other, SLOTS: gl.constexpr):
    """Barriers of a ring of portions, and of weights and of what the result is met with."""
    for one in gl.static_range(SLOTS):
        mbarrier.init(full.index(one), count=1)
    if other is not None:
        mbarrier.init(other.index(0), count=1)
        mbarrier.init(other.index(1), count=1)


@gluon.jit
def lines_of_zeros(ring, BOXES: gl.constexpr, H: gl.constexpr, W: gl.constexpr, C: gl.constexpr):
    """What lies above and below the images of a ring."""
    thin: gl.constexpr = gl.BlockedLayout([1, 2], [32 * 2 // C, C // 2], [gl.num_warps(), 1], [1, 0])
    for box in gl.static_range(BOXES + 1):
        ring.index(box * (H + 1)).store(gl.zeros([W, C], gl.bfloat16, thin))
    fence_async_shared()
    gl.thread_barrier()


@gluon.jit
def ask_for_weights(weights, kept, barrier, line, PIECES: gl.constexpr, CB: gl.constexpr, CS: gl.constexpr):
    """All taps of a model's kernel, which begin at a ``line``."""
    TAPS: gl.constexpr = 16 // PIECES
    mbarrier.expect(barrier, 16 * CB * CS * 2)
    for piece in gl.static_range(PIECES):
        target = kept.index(piece * TAPS)._reinterpret(gl.bfloat16, [TAPS * CB, CS], weights.layout)
        tma.async_copy_global_to_shared(weights, [line + piece * (TAPS * CB), 0], barrier, target)


@gluon.jit
def bias_of(row, begin, found: gl.constexpr, C: gl.constexpr, ACTIVATE: gl.constexpr):
    """[channel] a model's bias, or zeros where none is added."""
    bias = gl.zeros([C], gl.float32, gl.SliceLayout(0, found))
    if ACTIVATE:
        channel = gl.arange(0, C, gl.SliceLayout(0, found))
        bias = gl.load(row + begin + channel).to(gl.float32)
    return bias


@gluon.jit
def finished(total, bias, edge, found: gl.constexpr, ACTIVATE: gl.constexpr, MASKED: gl.constexpr):
    """The sum with bias, rectified, or as a slope that what lies in shared memory lets pass; left there, too."""
    result = total
    if ACTIVATE:
        result = result + bias[None, :]
        result = gl.where(result > 0, result, 0.0)
    if MASKED:
        result = gl.where(edge.load(found) > 0, result, 0.0)
        gl.thread_barrier()
    edge.store(result.to(gl.bfloat16))
    return result


@gluon.jit
def leave_sum(sums, part, summed, found: gl.constexpr, C: gl.constexpr):
    """A part of a bias's gradient: the sum over pixels."""
    channel = gl.arange(0, C, gl.SliceLayout(0, found))
    gl.store(sums + part * C + channel, gl.sum(summed, axis=0))
