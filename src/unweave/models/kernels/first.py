"""The first convolution of stacked models in Triton, from packed pixels.

It reads bits or bytes as they are stored. Its weight gradient is summed in the kernel that makes the gradient by its
output, so that gradient, a third of all bytes in a naive step, is never stored.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
from dataclasses import replace

import torch
import triton
import triton.language as tl

from unweave.models.kernels.chosen import Chosen
from unweave.models.kernels.convolutions import Join, Tiles, one_parity
from unweave.models.kernels.pixels import BITS, IMAGES_AT_ONCE, MASKS, PADDED, Frame, pitch, stored_pixels
from unweave.models.kernels.rectifiers import rectified
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Int, Shaped, Tensor

TUNED = {
    "first": Tiles(256, 0, 4, 1),
    "inward": Tiles(256, 0, 4, 1),
    "first in colour": Tiles(256, 0, 4, 1),
    "inward in colour": Tiles(128, 0, 4, 2),
}
"""For bf16 on an H200 (benchmarks/tune.py)."""


def ready(
    join: Join, frame: Frame, examples: Shaped[Tensor, "model batch ..."], dtype: torch.dtype
) -> tuple[Frame, Shaped[Tensor, "model batch ..."]]:
    """Examples as the first convolution reads them fastest: bits as masks, colours padded, others as they are."""
    if frame.channels > 1 and join.kernel == 4:
        return replace(frame, packing=PADDED), _padded(join, frame, examples, dtype)
    if frame.packing != BITS or join.kernel != 4:
        return frame, examples
    return replace(frame, packing=MASKS), _masks_of(join, frame, examples, examples.shape[:2], None)


def ready_chosen(
    join: Join, frame: Frame, chosen: Chosen, dtype: torch.dtype
) -> tuple[tuple[Frame, Shaped[Tensor, "model batch ..."]], tuple[Frame, Shaped[Tensor, "model batch ..."]]]:
    """Examples as the first convolution reads them, and as the last one does; bits are never gathered as bits."""
    if frame.packing == BITS and join.kernel == 4:
        places = chosen.places.contiguous()
        masks = _masks_of(join, frame, chosen.store.contiguous(), places.shape, places)
        seen = replace(frame, packing=MASKS), masks
        return seen, seen
    examples = chosen.gathered().contiguous()
    return ready(join, frame, examples, dtype), (frame, examples)


def _masks_of(
    join: Join, frame: Frame, examples: Tensor, shape: torch.Size, places: Tensor | None
) -> Int[Tensor, "model batch pixel"]:
    n_pixels = join.height * join.width
    masks = torch.empty(*shape, n_pixels, dtype=torch.int32, device=examples.device)
    _masks[(shape.numel() * triton.cdiv(n_pixels, 256),)](
        examples,
        places,
        masks,
        join.height,
        join.width,
        frame.height,
        frame.width,
        frame.top,
        frame.left,
        256,
        num_warps=4,
    )
    return masks


def _padded(
    join: Join, frame: Frame, examples: Shaped[Tensor, "model batch ..."], dtype: torch.dtype
) -> Float[Tensor, "model batch height width 4"]:
    height, width = 2 * join.height + 2, 2 * join.width + 2
    padded = torch.empty(*examples.shape[:2], height, width, 4, dtype=dtype, device=examples.device)
    n_images = examples.shape[0] * examples.shape[1]
    _pad[(n_images * triton.cdiv(height * width, 256),)](
        examples, padded, height, width, frame.channels, frame.packing, frame.height, frame.width, frame.top,
        frame.left, 256, num_warps=4,
    )  # fmt: skip
    return padded


def first_forward(
    join: Join, frame: Frame, examples: Tensor, weights: Tensor, dtype: torch.dtype, product: str, leak: float = 0.0
) -> Float[Tensor, "model batch height width small"]:
    """The first convolution with bias and rectifier, from stored examples."""
    shape = (*examples.shape[:2], join.height, join.width, join.n_small)
    out = torch.empty(shape, dtype=dtype, device=examples.device)
    n_batch, chosen = examples.shape[1], _tiles("first", dtype, frame.channels)
    n_pixels = n_batch * join.height * join.width
    tiles = triton.cdiv(n_pixels, chosen.rows)
    _first_forward[(len(examples) * tiles,)](
        examples, weights, out, weights.stride(0), join.weight_at, join.bias_at, n_pixels, tiles, n_batch,
        join.height, join.width, frame.channels, join.n_small, join.kernel, taps_padded(join),
        pitch(frame.channels), frame.packing, frame.height, frame.width, frame.top, frame.left, chosen.rows, leak,
        product, num_warps=chosen.warps,
    )  # fmt: skip
    return out


def first_backward(
    first: Join, second: Join, frame: Frame, examples: Tensor, slope: Tensor, image: Tensor, weights: Tensor,
    gradients: Tensor, product: str,
) -> None:  # fmt: skip
    """The first convolution's gradients from the slope by the second's output; ``image`` lies between the two."""
    n_models, n_batch = examples.shape[:2]
    parts, chosen = triton.cdiv(n_batch, IMAGES_AT_ONCE), _tiles("inward", image.dtype, frame.channels)
    size, taps = taps_padded(first), first.kernel**2 * frame.channels
    shares = gradients.new_empty(n_models, parts, taps + 1, first.n_small)
    _first_backward[(n_models * parts,)](
        slope, weights, image, examples, shares, weights.stride(0), second.weight_at, parts, n_batch,
        second.height, second.width, second.n_big, second.n_small, second.kernel, frame.channels, first.kernel, size,
        pitch(frame.channels), frame.packing, frame.height, frame.width, frame.top, frame.left,
        IMAGES_AT_ONCE, chosen.rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    weight_at, n_weights = first.weight_at, taps * first.n_small
    add_up(shares[:, :, :taps].flatten(2), gradients[:, weight_at : weight_at + n_weights])
    add_up(shares[:, :, taps], gradients[:, first.bias_at : first.bias_at + first.n_small])


def _tiles(name: str, dtype: torch.dtype, channels: int) -> Tiles:
    if dtype == torch.bfloat16:
        return TUNED[name if channels == 1 else f"{name} in colour"]
    return Tiles(128, 0, 4, 1) if channels == 1 else Tiles(64, 0, 4, 1)  # four times the taps, or registers run out


def taps_padded(join: Join) -> int:
    """Values under a kernel, missing channels included; a product takes at least 16."""
    return max(16, join.kernel**2 * pitch(join.n_big))


@triton.jit
def _masks(
    examples, places, masks, H: tl.constexpr, W: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    TOP: tl.constexpr, LEFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    TILES: tl.constexpr = (H * W + ROWS - 1) // ROWS
    image = (tl.program_id(0) // TILES).to(tl.int64)
    pixel = tl.program_id(0) % TILES * ROWS + tl.arange(0, ROWS)
    x, y = pixel % W, pixel // W
    column = 2 * x - 1 - LEFT
    from_column, to_column = _within(column, WIDTH), _within(column + 3, WIDTH)
    stored = image if places is None else tl.load(places + image)
    examples += stored * (HEIGHT * WIDTH // 8)
    word = tl.zeros((ROWS,), dtype=tl.int32)
    for row in tl.static_range(4):
        line = 2 * y - 1 - TOP + row
        ok = (pixel < H * W) & (line >= 0) & (line < HEIGHT)
        # four bits lie in two bytes at most, the first one highest; of the same byte twice only the first counts
        begin = (line * WIDTH + from_column) // 8
        high = tl.load(examples + begin, mask=ok, other=0).to(tl.int32)
        low = tl.load(examples + (line * WIDTH + to_column) // 8, mask=ok, other=0).to(tl.int32)
        after = tl.maximum(12 - (line * WIDTH + column - begin * 8), 0)
        word |= (((high << 8 | low) >> after) & 15) << (4 * row)
    # in every group of four the first bit becomes the lowest
    word = (word & 0x1111) << 3 | (word & 0x2222) << 1 | (word & 0x4444) >> 1 | (word & 0x8888) >> 3
    outside = tl.minimum(tl.maximum(-column, 0), 4)
    inside = tl.minimum(tl.maximum(WIDTH - column, 0), 4)
    word &= ((1 << inside) - (1 << tl.minimum(outside, inside))) * 0x1111
    tl.store(masks + image * (H * W) + pixel, word, mask=pixel < H * W)


@triton.jit
def _within(column, WIDTH: tl.constexpr):
    return tl.minimum(tl.maximum(column, 0), WIDTH - 1)


@triton.jit
def _pad(
    examples, padded, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, PACKING: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    TILES: tl.constexpr = (H * W + ROWS - 1) // ROWS
    image = (tl.program_id(0) // TILES).to(tl.int64)
    pixel = tl.program_id(0) % TILES * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, 4)
    line, column = (pixel // W - 1 - TOP)[:, None], (pixel % W - 1 - LEFT)[:, None]
    ok = (pixel < H * W)[:, None] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
    ok = ok & (channel < C)[None, :]
    value = stored_pixels(examples, image, channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
    place = (image * (H * W) + pixel)[:, None] * 4 + channel[None, :]
    tl.store(padded + place, value.to(padded.dtype.element_ty), mask=(pixel < H * W)[:, None])


@triton.jit
def first_patches(
    examples, image, y, x, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    SIZE: tl.constexpr, PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr,
    LEFT: tl.constexpr,
):  # fmt: skip
    """[pixel, tap] the examples' values under the first kernel at (y, x)."""
    k = tl.arange(0, SIZE)
    if PACKING == 3:
        word = tl.load(examples + image * (H * W) + y * W + x, mask=inside, other=0)
        patch = tl.where(((word[:, None] >> k[None, :]) & 1) != 0, 1.0, 0.0)
    elif PACKING == 4:
        # kernel row k // 16 begins at column 2x of the padded line 2y + k // 16
        begin = image * ((2 * H + 2) * (2 * W + 2) * 4) + (y * (2 * W + 2) + x) * 8
        there = tl.max_contiguous(tl.multiple_of(k // 16 * ((2 * W + 2) * 4) + k % 16, 8), 16)
        patch = tl.load(examples + begin[:, None] + there[None, :], mask=inside[:, None], other=0.0)
    else:
        PAD: tl.constexpr = (K - 2) // 2
        CP: tl.constexpr = 1 if C == 1 else 4
        channel, tap = k % CP, k // CP
        line = (2 * y - PAD - TOP)[:, None] + (tap // K)[None, :]
        column = (2 * x - PAD - LEFT)[:, None] + (tap % K)[None, :]
        ok = inside[:, None] & ((tap < K * K) & (channel < C))[None, :]
        ok = ok & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
        patch = stored_pixels(examples, image[:, None], channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
    return patch


@triton.jit
def _first_forward(
    examples, weights, out, weight_stride, weight_at, bias_at, n_pixels, tiles, n_batch,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr,
    CP: tl.constexpr, PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr,
    LEFT: tl.constexpr, ROWS: tl.constexpr, LEAK: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    channel = tl.arange(0, CS)
    k = tl.arange(0, SIZE)
    patch = first_patches(
        examples, model * n_batch + image, y, x, inside, H, W, C, K, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
    )
    row_of_weights = weights + model * weight_stride
    used = ((k < K * K * CP) & (k % CP < C))[:, None] & (channel >= 0)[None, :]
    places = (k // CP * C + k % CP)[:, None] * CS + channel[None, :]
    weight = tl.load(row_of_weights + weight_at + places, mask=used, other=0.0)
    total = tl.dot(patch.to(weight.dtype), weight, input_precision=PRODUCT)
    total = rectified(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], LEAK)
    place = (model * n_pixels + pixel)[:, None] * CS + channel[None, :]
    tl.store(out + place, total.to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _first_backward(
    small, weights, like, examples, shares, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    C: tl.constexpr, KERNEL: tl.constexpr, SIZE: tl.constexpr, CP: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    TILES: tl.constexpr = (IMAGES * H * W + ROWS - 1) // ROWS
    model = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    channel = tl.arange(0, CB)
    small += model * n_batch * (H * W * CS)
    begin = part * IMAGES * H * W
    end = tl.minimum(begin + IMAGES * H * W, n_batch * H * W)
    total = tl.zeros((CB, SIZE), dtype=tl.float32)
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    for turn in range(TILES * 4):
        py, px = turn % 4 // 2, turn % 2
        pixel = begin + turn // 4 * ROWS + tl.arange(0, ROWS)
        inside = pixel < end
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        row_of_weights = weights + model * weight_stride + weight_at
        slope = one_parity(small, row_of_weights, image, y, x, py, px, inside, H, W, CB, CS, K, PRODUCT)
        line, column, example = 2 * y + py, 2 * x + px, model * n_batch + image
        place = ((example * (2 * H) + line) * (2 * W) + column)[:, None] * CB + channel[None, :]
        active = tl.load(like + place, mask=inside[:, None], other=0.0)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        patch = first_patches(
            examples, example, line, column, inside, 2 * H, 2 * W, C, KERNEL, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
        )
        total = tl.dot(
            tl.trans(slope.to(like.dtype.element_ty)), patch.to(like.dtype.element_ty), total, input_precision=PRODUCT
        )
    TAPS: tl.constexpr = KERNEL * KERNEL * C
    shares += (model * parts + part) * ((TAPS + 1) * CB)
    k = tl.arange(0, SIZE)
    used = ((k < KERNEL * KERNEL * CP) & (k % CP < C))[None, :] & (channel >= 0)[:, None]
    tl.store(shares + (k // CP * C + k % CP)[None, :] * CB + channel[:, None], total, mask=used)
    tl.store(shares + TAPS * CB + channel, tl.sum(summed, axis=0))
