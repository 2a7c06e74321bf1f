"""All four parities of an upward convolution at a time, in Triton: every neighbour of a small pixel is read once.

A product is made for every (neighbour, parity), though only 16 of the 36 pairs meet: more arithmetic, fewer bytes.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.models.kernels.rectifiers import passed, rectified


@triton.jit
def up_whole(
    small, weights, like, big, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, AHEAD: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    row_of_weights = weights + model * weight_stride
    total = all_parities(
        small + model * n_pixels * CS, row_of_weights + weight_at, image, y, x, inside, H, W, CB, CS, PRODUCT
    )
    if ACTIVATE:
        bias = tl.load(row_of_weights + bias_at + tl.arange(0, 4 * CB) % CB).to(tl.float32)
        total = rectified(total + bias[None, :], LEAK)
    place = model * n_pixels * (4 * CB) + big_places(image, y, x, H, W, CB)
    if MASKED:
        total = passed(total, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
    tl.store(big + place, total.to(big.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        summed = tl.sum(tl.reshape(tl.sum(total, axis=0), (4, CB)), axis=0)
        tl.store(sums + tl.program_id(0) * CB + tl.arange(0, CB), summed)


@triton.jit
def big_places(image, y, x, H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr):
    """[pixel, (row parity, column parity, channel)] where the four big pixels of some small ones lie."""
    n = tl.arange(0, 4 * CB)
    begin = ((image * (2 * H) + 2 * y) * (2 * W) + 2 * x) * CB
    there = tl.max_contiguous(tl.multiple_of(n // (2 * CB) * (2 * W * CB) + n % (2 * CB), 2 * CB), 2 * CB)
    return begin[:, None] + there[None, :]


@triton.jit
def all_parities(
    small, weights, image, y, x, inside,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """[pixel, (row parity, column parity, channel)] the four big pixels of some small ones, before bias and mask."""
    k, n = tl.arange(0, CS), tl.arange(0, 4 * CB)
    py, px, channel = n // (2 * CB), n // CB % 2, n % CB
    total = tl.zeros((y.shape[0], 4 * CB), dtype=tl.float32)
    for neighbour in range(9):
        dy, dx = neighbour // 3 - 1, neighbour % 3 - 1
        line, column = y + dy, x + dx
        ok = inside & (line >= 0) & (line < H) & (column >= 0) & (column < W)
        begin = ((image * H + line) * W + column) * CS
        patch = tl.load(small + begin[:, None] + k[None, :], mask=ok[:, None], other=0.0)
        # parity p hears the neighbour at d through kernel row 1 + p − 2d, if there is one
        ky, kx = 1 + py - 2 * dy, 1 + px - 2 * dx
        heard = (ky >= 0) & (ky < 4) & (kx >= 0) & (kx < 4)
        places = ((ky * 4 + kx) * CB + channel)[None, :] * CS + k[:, None]
        weight = tl.load(weights + places, mask=heard[None, :] & (k >= 0)[:, None], other=0.0)
        total = tl.dot(patch, weight, total, input_precision=PRODUCT)
    return total
