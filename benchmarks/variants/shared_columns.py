"""Stacked convolutions of 4×4 kernels and their transposes that read no column twice for one kernel row.

A small pixel has two big columns of its own, 2x and 2x + 1, and meets one of either neighbour's. Its program reads only
its own, adds up what they say to it and to either neighbour, and hands the neighbours' shares on at the end, within a
tile of whole lines: half of the reads of a big image, and 16 products for the 36 of ``up_whole``.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl
from way import Way  # beside this file

from unweave.models.kernels import convolutions
from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, _sums
from unweave.models.kernels.rectifiers import passed, rectified
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

WAYS: dict[tuple[str, int, int], Way] = {}
"""By direction, big and small channels; layers that are not listed go the package's way. ``run`` means nothing."""
PLAIN = {"down": convolutions.down, "up": convolutions.up}


def down(
    join: Join, big: Tensor, weights: Tensor, product: str, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """As the package's."""
    way = _way("down", join)
    if way is None:
        return PLAIN["down"](
            join, big, weights, product, activate=activate, like=like, leak=leak, bias_gradient=bias_gradient,
            later=later,
        )  # fmt: skip
    n_models, n_batch = big.shape[:2]
    small = big.new_empty(n_models, n_batch, join.height, join.width, join.n_small)
    n_pixels = n_batch * join.height * join.width
    tiles = triton.cdiv(n_pixels, way.rows)
    sums = _sums(bias_gradient, n_models, tiles, join.n_small)
    _down_shared[(n_models * tiles,)](
        big, weights, small if like is None else like, small, sums, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, activate, like is not None, leak,
        way.rows, product, **way.options,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return small


def up(
    join: Join, small: Tensor, weights: Tensor, product: str, *, activate: bool = False,
    like: Tensor | None = None, leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """As the package's."""
    way = _way("up", join)
    if way is None:
        return PLAIN["up"](
            join, small, weights, product, activate=activate, like=like, leak=leak, bias_gradient=bias_gradient,
            later=later,
        )  # fmt: skip
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    n_pixels = n_batch * join.height * join.width
    tiles = triton.cdiv(n_pixels, way.rows)
    sums = _sums(bias_gradient, n_models, 2 * tiles, join.n_big)
    _up_shared[(n_models * tiles * 2,)](
        small, weights, big if like is None else like, big, sums, weights.stride(0), join.weight_at, join.bias_at,
        n_pixels, tiles, join.height, join.width, join.n_big, join.n_small, activate, like is not None, leak,
        way.rows, product, **way.options,
    )  # fmt: skip
    if sums is not None and bias_gradient is not None:
        later(add_up, sums, bias_gradient)
    return big


def _way(direction: str, join: Join) -> Way | None:
    way = WAYS.get((direction, join.n_big, join.n_small))
    return way if way is not None and join.kernel == 4 and way.rows % join.width == 0 else None


@triton.jit
def _down_shared(
    big, weights, like, small, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y = pixel % W, pixel // W % H
    channel, k = tl.arange(0, CS), tl.arange(0, CB)
    big += model * n_pixels * (4 * CB)
    row_of_weights = weights + model * weight_stride
    places = row_of_weights + weight_at + (k[:, None] * CS + channel[None, :])
    own = tl.zeros((ROWS, CS), dtype=tl.float32)
    left = tl.zeros((ROWS, CS), dtype=tl.float32)
    right = tl.zeros((ROWS, CS), dtype=tl.float32)
    # the big pixel (2y, 2x) of small pixel p = (image, y, x) is number 4p − 2x
    begin = (4 * pixel - 2 * x) * CB
    for ky in range(4):
        line = 2 * y + ky - 1
        ok = inside & (line >= 0) & (line < 2 * H)
        there = begin + (ky - 1) * (2 * W * CB)
        even = tl.load(big + (there[:, None] + k[None, :]), mask=ok[:, None], other=0.0)
        odd = tl.load(big + (there[:, None] + (CB + k)[None, :]), mask=ok[:, None], other=0.0)
        row = places + ky * (4 * CB * CS)
        own = tl.dot(even, tl.load(row + CB * CS), own, input_precision=PRODUCT)
        own = tl.dot(odd, tl.load(row + 2 * CB * CS), own, input_precision=PRODUCT)
        left = tl.dot(even, tl.load(row + 3 * CB * CS), left, input_precision=PRODUCT)
        right = tl.dot(odd, tl.load(row), right, input_precision=PRODUCT)
    total = own + from_left(right, x, ROWS, CS) + from_right(left, x, W, ROWS, CS)
    if ACTIVATE:
        total = rectified(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], LEAK)
    place = model * n_pixels * CS + pixel[:, None] * CS + channel[None, :]
    if MASKED:
        total = passed(total, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
    tl.store(small + place, total.to(small.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        tl.store(sums + tl.program_id(0) * CS + channel, tl.sum(tl.where(inside[:, None], total, 0.0), axis=0))


@triton.jit
def _up_shared(
    small, weights, like, big, sums, weight_stride, weight_at, bias_at, n_pixels, tiles,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    ACTIVATE: tl.constexpr, MASKED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """A program makes the big lines of one parity."""
    py = tl.program_id(0) % 2
    tile = tl.program_id(0) // 2
    model = (tile // tiles).to(tl.int64)
    pixel = tile % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y = pixel % W, pixel // W % H
    channel, k = tl.arange(0, CB), tl.arange(0, CS)
    small += model * n_pixels * CS
    row_of_weights = weights + model * weight_stride
    places = row_of_weights + weight_at + (channel[None, :] * CS + k[:, None])
    even = tl.zeros((ROWS, CB), dtype=tl.float32)
    odd = tl.zeros((ROWS, CB), dtype=tl.float32)
    left = tl.zeros((ROWS, CB), dtype=tl.float32)
    right = tl.zeros((ROWS, CB), dtype=tl.float32)
    # line 2y + py hears line y + py − 1 + j through kernel row 3 − py − 2j; column 2x − 1 + kx is heard through kx
    for j in range(2):
        line = y + (py - 1 + j)
        ok = inside & (line >= 0) & (line < H)
        patch = tl.load(small + ((pixel + (py - 1 + j) * W) * CS)[:, None] + k[None, :], mask=ok[:, None], other=0.0)
        row = places + (3 - py - 2 * j) * (4 * CB * CS)
        left = tl.dot(patch, tl.load(row), left, input_precision=PRODUCT)
        even = tl.dot(patch, tl.load(row + CB * CS), even, input_precision=PRODUCT)
        odd = tl.dot(patch, tl.load(row + 2 * CB * CS), odd, input_precision=PRODUCT)
        right = tl.dot(patch, tl.load(row + 3 * CB * CS), right, input_precision=PRODUCT)
    even += from_left(right, x, ROWS, CB)
    odd += from_right(left, x, W, ROWS, CB)
    if ACTIVATE:
        bias = tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :]
        even, odd = rectified(even + bias, LEAK), rectified(odd + bias, LEAK)
    place = model * n_pixels * (4 * CB) + ((4 * pixel - 2 * x + py * (2 * W)) * CB)[:, None] + channel[None, :]
    if MASKED:
        even = passed(even, tl.load(like + place, mask=inside[:, None], other=0.0), LEAK)
        odd = passed(odd, tl.load(like + place + CB, mask=inside[:, None], other=0.0), LEAK)
    tl.store(big + place, even.to(big.dtype.element_ty), mask=inside[:, None])
    tl.store(big + place + CB, odd.to(big.dtype.element_ty), mask=inside[:, None])
    if sums is not None:
        total = tl.sum(tl.where(inside[:, None], even + odd, 0.0), axis=0)
        tl.store(sums + tl.program_id(0) * CB + channel, total)


@triton.jit
def from_left(shares, x, ROWS: tl.constexpr, N: tl.constexpr):
    """What the pixels to the left have for these."""
    place = tl.maximum(tl.arange(0, ROWS) - 1, 0)
    return tl.where((x > 0)[:, None], tl.gather(shares, place[:, None].broadcast_to(ROWS, N), 0), 0.0)


@triton.jit
def from_right(shares, x, W: tl.constexpr, ROWS: tl.constexpr, N: tl.constexpr):
    """What the pixels to the right have for these."""
    place = tl.minimum(tl.arange(0, ROWS) + 1, ROWS - 1)
    return tl.where((x < W - 1)[:, None], tl.gather(shares, place[:, None].broadcast_to(ROWS, N), 0), 0.0)
