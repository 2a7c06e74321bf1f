"""The downward convolution with images copied box by box, in plain Triton: the cautious one beside ``copies.py``."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from unweave.models.kernels.convolutions import Join, Tiles
from unweave.models.kernels.rectifiers import passed, rectified
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor


def down_by_boxes(
    join: Join, big: Tensor, weights: Tensor, chosen: Tiles, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """As ``down``: kernels of 4×4, and tiles that are some whole lines of an image, or some whole images."""
    n_models, n_batch = big.shape[:2]
    h, w, cb, cs = join.height, join.width, join.n_big, join.n_small
    small = big.new_empty(n_models, n_batch, h, w, cs)
    lines = min(chosen.rows // w, h)
    images = chosen.rows // (w * lines)
    tiles = triton.cdiv(n_batch, images) * (h // lines)
    sums = None if bias_gradient is None else bias_gradient.new_empty(n_models, tiles, cs)
    shape, strides = [n_models * n_batch, h, 2, w, 2 * cb], [4 * h * w * cb, 4 * w * cb, 2 * w * cb, 2 * cb, 1]
    boxes = TensorDescriptor(big, shape, strides, [images, lines, 1, w, cb])
    taps = TensorDescriptor(weights, [weights.numel() // cs, cs], [cs, 1], [cb, cs])
    _down_by_boxes[(n_models * tiles,)](
        boxes, taps, weights, small if like is None else like, small, sums, weights.stride(0), join.weight_at,
        join.bias_at, n_batch, tiles, h, w, cb, cs, images, lines, activate, like is not None, leak,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        add_up(sums, bias_gradient)
    return small


@triton.jit
def _down_by_boxes(
    boxes, taps, weights, like, small, sums, weight_stride, weight_at, bias_at, n_batch, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, IMAGES: tl.constexpr, LINES: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr,
):  # fmt: skip
    ROWS: tl.constexpr = IMAGES * LINES * W
    model, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    begin, top = tile // (H // LINES) * IMAGES, tile % (H // LINES) * LINES
    first_tap = model * (weight_stride // CS) + weight_at // CS
    total = tl.zeros((ROWS, CS), dtype=tl.float32)
    for tap in range(16):
        ky, kx = tap // 4, tap % 4
        # kernel row 0 lies on the line above, of parity 1; rows 1 and 2 on this line; row 3 on the next, of parity 0
        patch = boxes.load(
            [model * n_batch + begin, top + (ky + 1) // 2 - 1, (ky + 1) % 2, (kx + 1) // 2 - 1, (kx + 1) % 2 * CB]
        )
        total = tl.dot(patch.reshape(ROWS, CB), taps.load([first_tap + tap * CB, 0]), total)
    channel = tl.arange(0, CS)
    row = tl.arange(0, ROWS)
    inside = begin + row // (LINES * W) < n_batch
    if ACTIVATE:
        bias = tl.load(weights + model.to(tl.int64) * weight_stride + bias_at + channel)
        total = rectified(total + bias.to(tl.float32)[None, :], LEAK)
    # a tile's pixels lie one after the other: they are some lines of one image, or some whole images
    pixel = (begin * H + top) * W + row
    place = model.to(tl.int64) * (n_batch * H * W * CS) + (pixel[:, None] * CS + channel[None, :])
    if MASKED:
        total = passed(total, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
    tl.store(small + place, total.to(small.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        tl.store(sums + tl.program_id(0) * CS + channel, tl.sum(tl.where(inside[:, None], total, 0.0), axis=0))
