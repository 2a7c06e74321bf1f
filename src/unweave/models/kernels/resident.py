"""Stacked transposed convolutions whose weights stay on the chip, in Triton: a program goes through some images.

Weights are read once for many tiles, and all index arithmetic but a few numbers is the same for every tile. Kernels of
4×4 and images whose lines fill tiles; the others are in ``convolutions.py``.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.models.kernels.convolutions import Tiles, up
from unweave.models.kernels.copies import up_copied
from unweave.models.kernels.join import Join
from unweave.shapes import Float, Tensor

TUNED: dict[tuple[int, int], Tiles] = {(32, 32): Tiles(64, 8, 4, 2)}
"""By big and small channels, for bf16 on an H200 (benchmarks/tune.py); ``run`` is the number of images of one program.
Layers that are not listed read their weights for every tile."""


def fits(chosen: Tiles | None, join: Join, dtype: torch.dtype) -> Tiles | None:
    """The division, where it is one for this layer: tiles are some whole images, or some whole lines of one."""
    if chosen is None or dtype != torch.bfloat16 or join.kernel != 4:
        return None
    pixels = join.height * join.width
    whole = chosen.rows % pixels == 0 and chosen.run % (chosen.rows // pixels) == 0
    return chosen if whole or (pixels % chosen.rows == 0 and chosen.rows % join.width == 0) else None


def up_forward(
    join: Join, small: Tensor, weights: Tensor, product: str
) -> Float[Tensor, "model batch height2 width2 big"]:
    """A transposed convolution with bias and rectifier."""
    copied = up_copied(join, small, weights, activate=True)
    if copied is not None:
        return copied
    chosen = fits(TUNED.get((join.n_big, join.n_small)), join, small.dtype)
    if chosen is None:
        return up(join, small, weights, product, activate=True)
    n_models, n_batch = small.shape[:2]
    big = small.new_empty(n_models, n_batch, 2 * join.height, 2 * join.width, join.n_big)
    parts = triton.cdiv(n_batch, chosen.run)
    _up_resident[(n_models * parts,)](
        small, weights, big, weights.stride(0), join.weight_at, join.bias_at, parts, n_batch,
        join.height, join.width, join.n_big, join.n_small, chosen.run, chosen.rows, product,
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    return big


@triton.jit
def _up_resident(
    small, weights, big, weight_stride, weight_at, bias_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """Nine neighbours are read; each goes into the parities that hear it: 16 products in all."""
    model = (tl.program_id(0) // parts).to(tl.int64)
    begin = tl.program_id(0) % parts * IMAGES
    small += model * n_batch * (H * W * CS)
    big += model * n_batch * (4 * H * W * CB)
    row_of_weights = weights + model * weight_stride
    bias = tl.load(row_of_weights + bias_at + tl.arange(0, CB)).to(tl.float32)
    places = row_of_weights + weight_at + (tl.arange(0, CB)[None, :] * CS + tl.arange(0, CS)[:, None])
    weight = ()
    for tap in tl.static_range(16):
        weight = weight + (tl.load(places + tap * (CB * CS)),)  # type: ignore[assignment]  # noqa: RUF005
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        total0 = tl.zeros((ROWS, CB), dtype=tl.float32) + bias[None, :]
        total1, total2, total3 = total0, total0, total0
        for dy in tl.static_range(-1, 2):
            for dx in tl.static_range(-1, 2):
                patch = _neighbour(small, image, top, dy, dx, inside, ROWS, H, W, CS)
                # parity p hears the neighbour at d through kernel row 1 + p − 2d, if there is one
                if dy <= 0 and dx <= 0:
                    total0 = tl.dot(patch, weight[(1 - 2 * dy) * 4 + 1 - 2 * dx], total0, input_precision=PRODUCT)
                if dy <= 0 and dx >= 0:
                    total1 = tl.dot(patch, weight[(1 - 2 * dy) * 4 + 2 - 2 * dx], total1, input_precision=PRODUCT)
                if dy >= 0 and dx <= 0:
                    total2 = tl.dot(patch, weight[(2 - 2 * dy) * 4 + 1 - 2 * dx], total2, input_precision=PRODUCT)
                if dy >= 0 and dx >= 0:
                    total3 = tl.dot(patch, weight[(2 - 2 * dy) * 4 + 2 - 2 * dx], total3, input_precision=PRODUCT)
        _rectified(big, image, top, 0, 0, total0, inside, ROWS, H, W, CB)
        _rectified(big, image, top, 0, 1, total1, inside, ROWS, H, W, CB)
        _rectified(big, image, top, 1, 0, total2, inside, ROWS, H, W, CB)
        _rectified(big, image, top, 1, 1, total3, inside, ROWS, H, W, CB)


@triton.jit
def _rectified(
    big, image, top, py, px, total, inside, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr
):  # fmt: skip
    value = tl.maximum(total, 0.0).to(big.dtype.element_ty)
    tl.store(big + big_places(image, top, py, px, ROWS, H, W, CB), value, mask=inside[:, None])


@triton.jit
def in_batch(image, n_batch, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    """[pixel] whether the pixels of a tile that begins in ``image`` belong to the batch."""
    return image + tl.arange(0, ROWS) // (H * W) < n_batch


@triton.jit
def _neighbour(
    small, image, top, dy, dx, inside, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, CS: tl.constexpr
):  # fmt: skip
    """[small pixel, small channel] the neighbours ``dy`` lines below and ``dx`` columns to the right."""
    row, k = tl.arange(0, ROWS), tl.arange(0, CS)
    x, y = row % W, row // W % H
    ok = inside & (top + y + dy >= 0) & (top + y + dy < H) & (x + dx >= 0) & (x + dx < W)
    there = ((row // (H * W) * H + y) * W + x) * CS
    begin = ((image * H + top + dy) * W + dx) * CS
    return tl.load(small + begin + (there[:, None] + k[None, :]), mask=ok[:, None], other=0.0)


@triton.jit
def big_places(image, top, py, px, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr):
    """[small pixel, big channel] where the big pixels of one parity lie."""
    row = tl.arange(0, ROWS)
    x, y = row % W, row // W % H
    there = ((row // (H * W) * (2 * H) + 2 * y) * (2 * W) + 2 * x) * CB
    begin = ((image * (2 * H) + 2 * top + py) * (2 * W) + px) * CB
    return begin + (there[:, None] + tl.arange(0, CB)[None, :])
