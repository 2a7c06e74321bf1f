"""The two ends of a stacked convolutional model in Triton: from packed pixels in, and out to pixels and their loss.

The outer layers have one to four channels and hold two thirds of all activations, so they are made of few passes. The
first convolution reads bits or bytes as they are stored; its weight gradient is summed in the kernel that makes the
gradient by its output, which is never stored. The last transposed convolution computes the Bernoulli loss and its
gradient without storing an output.
"""

# ruff: noqa: N803, N806
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl

from unweave.models.kernels.convolutions import Join, Tiles, _one_parity
from unweave.shapes import Float, Shaped, Tensor

BITS, BYTES, FLOATS, MASKS = range(4)
IMAGES_AT_ONCE = 8
"""Images whose share of a weight gradient one program sums; the shares are then added in a fixed order."""
PROGRAMS = 528
"""Programs of the last forward kernel: each keeps its scratch for all images it works on, so that it stays cached."""
TUNED = {
    "first": Tiles(128, 0, 4, 1),
    "inward": Tiles(128, 0, 4, 1),
    "loss": Tiles(128, 0, 4, 1),
    "last": Tiles(128, 0, 4, 2),
}


@dataclass(frozen=True)
class Frame:
    """How examples are stored, and where they lie in the even-sized frame that the network works in."""

    packing: int
    channels: int
    height: int
    width: int
    top: int
    left: int


def ready(
    join: Join, frame: Frame, examples: Shaped[Tensor, "model batch ..."]
) -> tuple[Frame, Shaped[Tensor, "model batch ..."]]:
    """Examples as the kernels read them fastest: of bits, the 16 under each 4×4 kernel as one number."""
    if frame.packing != BITS or join.kernel != 4:
        return frame, examples
    n_images, n_pixels = examples.shape[0] * examples.shape[1], join.height * join.width
    masks = torch.empty(*examples.shape[:2], n_pixels, dtype=torch.int32, device=examples.device)
    _masks[(n_images * triton.cdiv(n_pixels, 256),)](
        examples, masks, join.height, join.width, frame.height, frame.width, frame.top, frame.left, 256, num_warps=4
    )
    return replace(frame, packing=MASKS), masks


def first_forward(
    join: Join, frame: Frame, examples: Tensor, weights: Tensor, dtype: torch.dtype, product: str
) -> Float[Tensor, "model batch height width small"]:
    """The first convolution with bias and rectifier, from stored examples."""
    shape = (*examples.shape[:2], join.height, join.width, join.n_small)
    out = torch.empty(shape, dtype=dtype, device=examples.device)
    n_batch, chosen = examples.shape[1], TUNED["first"]
    n_pixels = n_batch * join.height * join.width
    tiles = triton.cdiv(n_pixels, chosen.rows)
    _first_forward[(len(examples) * tiles,)](
        examples, weights, out, weights.stride(0), join.weight_at, join.bias_at, n_pixels, tiles, n_batch,
        join.height, join.width, frame.channels, join.n_small, join.kernel, _padded(join),
        frame.packing, frame.height, frame.width, frame.top, frame.left, chosen.rows, product, num_warps=chosen.warps,
    )  # fmt: skip
    return out


def first_backward(
    first: Join, second: Join, frame: Frame, examples: Tensor, slope: Tensor, image: Tensor, weights: Tensor,
    gradients: Tensor, product: str,
) -> None:  # fmt: skip
    """The first convolution's gradients from the slope by the second's output; ``image`` lies between the two."""
    n_models, n_batch = examples.shape[:2]
    parts, chosen = triton.cdiv(n_batch, IMAGES_AT_ONCE), TUNED["inward"]
    size, taps = _padded(first), first.kernel**2 * frame.channels
    shares = gradients.new_empty(n_models, parts, size + 1, first.n_small)
    _first_backward[(n_models * parts,)](
        slope, weights, image, examples, shares, weights.stride(0), second.weight_at, parts, n_batch,
        second.height, second.width, second.n_big, second.n_small, second.kernel, frame.channels, first.kernel, size,
        frame.packing, frame.height, frame.width, frame.top, frame.left,
        IMAGES_AT_ONCE, chosen.rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    total = shares.sum(1)
    gradients[:, first.weight_at : first.weight_at + taps * first.n_small] = total[:, :taps].flatten(1)
    gradients[:, first.bias_at : first.bias_at + first.n_small] = total[:, size]


def last_forward(
    join: Join, frame: Frame, examples: Tensor | None, small: Tensor, weights: Tensor, product: str
) -> tuple[
    Float[Tensor, "model batch"], Float[Tensor, "model batch height width four"], Float[Tensor, "model batch 16"]
]:
    """The last transposed convolution. With examples: the Bernoulli loss of each, its slope by the outputs, its sums.

    Outputs lie by small pixel, row parity, column parity and channel; sums are over the small pixels of an example.
    Without examples the outputs themselves come second, in fp32, and nothing else is meant.
    """
    n_models, n_batch = small.shape[:2]
    fused = examples is not None
    shape = (n_models, n_batch, join.height, join.width, 4 * frame.channels)
    pixels = torch.empty(shape, dtype=small.dtype if fused else torch.float32, device=small.device)
    loss = torch.empty(n_models, n_batch, dtype=torch.float32, device=small.device)
    sums = torch.empty(n_models, n_batch, 16, dtype=torch.float32, device=small.device)
    chosen = TUNED["loss"]
    sizes = (join.height, join.width, frame.channels, join.n_small)
    framed = (frame.packing, frame.height, frame.width, frame.top, frame.left)
    rows = min(chosen.rows, triton.next_power_of_2(join.height * join.width))
    at = (weights.stride(0), join.weight_at, join.bias_at, n_batch)
    given = (small if examples is None else examples, small, weights, pixels, loss, sums)
    options = {"num_warps": chosen.warps, "num_stages": chosen.stages}
    if fused and frame.channels == 1:
        count = triton.cdiv(n_models * n_batch, PROGRAMS)
        scratch = torch.empty(PROGRAMS, join.height * join.width, 16, dtype=torch.float32, device=small.device)
        grid = (min(PROGRAMS, n_models * n_batch),)
        _last_forward_one[grid](
            *given, scratch, *at, n_models * n_batch, count, grid[0], *sizes, *framed, rows, product, **options
        )
    else:
        _last_forward[(n_models * n_batch,)](*given, *at, *sizes, *framed, fused, rows, product, **options)
    return loss, pixels, sums


def last_backward(
    join: Join, channels: int, pixels: Tensor, scale: Float[Tensor, "model batch"] | None, small: Tensor, weights: Tensor,
    gradients: Tensor, product: str, *, bias_gradient: Tensor,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """The slope by the small image (where that is positive); the weights' goes into the rows.

    ``scale`` multiplies the pixels of every example; ``bias_gradient`` [model, small] takes the result's sum.
    """
    n_models, n_batch = small.shape[:2]
    parts, chosen = triton.cdiv(n_batch, IMAGES_AT_ONCE), TUNED["last"]
    size, taps = _padded(join), 16 * channels
    slope = torch.empty_like(small)
    shares = gradients.new_empty(n_models, parts, size + 1, join.n_small)
    rows = min(chosen.rows, triton.next_power_of_2(join.height * join.width))
    _last_backward[(n_models * parts,)](
        pixels, gradients if scale is None else scale, small, weights, slope, shares, weights.stride(0),
        join.weight_at, parts, n_batch, join.height, join.width, channels, join.n_small, size,
        scale is not None, IMAGES_AT_ONCE, rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    total = shares.sum(1)
    gradients[:, join.weight_at : join.weight_at + taps * join.n_small] = total[:, :taps].flatten(1)
    bias_gradient.copy_(total[:, size])
    return slope


def _padded(join: Join) -> int:
    return max(16, triton.next_power_of_2(join.kernel**2 * join.n_big))


@triton.jit
def _masks(
    examples, masks, H: tl.constexpr, W: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr,
    LEFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    TILES: tl.constexpr = (H * W + ROWS - 1) // ROWS
    image = (tl.program_id(0) // TILES).to(tl.int64)
    pixel = tl.program_id(0) % TILES * ROWS + tl.arange(0, ROWS)
    x, y = pixel % W, pixel // W
    word = tl.zeros((ROWS,), dtype=tl.int32)
    for k in tl.static_range(16):
        line, column = 2 * y - 1 - TOP + k // 4, 2 * x - 1 - LEFT + k % 4
        ok = (pixel < H * W) & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
        place = line * WIDTH + column
        byte = tl.load(examples + image * (HEIGHT * WIDTH // 8) + place // 8, mask=ok, other=0).to(tl.int32)
        word |= ((byte >> (7 - place % 8)) & 1) << k
    tl.store(masks + image * (H * W) + pixel, word, mask=pixel < H * W)


@triton.jit
def _stored(examples, image, channel, line, column, ok, PACKING, C, HEIGHT, WIDTH):
    """Pixels as numbers; places outside the frame give 0."""
    if PACKING == 0:
        place = line * WIDTH + column
        byte = tl.load(examples + image * (HEIGHT * WIDTH // 8) + place // 8, mask=ok, other=0).to(tl.int32)
        value = ((byte >> (7 - place % 8)) & 1).to(tl.float32)
    else:
        place = ((image * C + channel) * HEIGHT + line) * WIDTH + column
        value = tl.load(examples + place, mask=ok, other=0).to(tl.float32)
        if PACKING == 1:
            value = value / 255.0
    return value


@triton.jit
def _first_patches(
    examples, image, y, x, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    SIZE: tl.constexpr, PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr,
    LEFT: tl.constexpr,
):  # fmt: skip
    """[pixel, tap] the examples' values under the first kernel at (y, x)."""
    k = tl.arange(0, SIZE)
    if PACKING == 3:
        word = tl.load(examples + image * (H * W) + y * W + x, mask=inside, other=0)
        patch = ((word[:, None] >> k[None, :]) & 1).to(tl.float32)
    else:
        PAD: tl.constexpr = (K - 2) // 2
        channel, tap = k % C, k // C
        line = (2 * y - PAD - TOP)[:, None] + (tap // K)[None, :]
        column = (2 * x - PAD - LEFT)[:, None] + (tap % K)[None, :]
        ok = inside[:, None] & (tap < K * K)[None, :] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
        patch = _stored(examples, image[:, None], channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
    return patch


@triton.jit
def _first_forward(
    examples, weights, out, weight_stride, weight_at, bias_at, n_pixels, tiles, n_batch,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    pixel = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    inside = pixel < n_pixels
    x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
    channel = tl.arange(0, CS)
    k = tl.arange(0, SIZE)
    patch = _first_patches(
        examples, model * n_batch + image, y, x, inside, H, W, C, K, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
    )
    row_of_weights = weights + model * weight_stride
    used = (k < K * K * C)[:, None] & (channel >= 0)[None, :]
    weight = tl.load(row_of_weights + weight_at + k[:, None] * CS + channel[None, :], mask=used, other=0.0)
    total = tl.dot(patch.to(weight.dtype), weight, input_precision=PRODUCT)
    total = tl.maximum(total + tl.load(row_of_weights + bias_at + channel).to(tl.float32)[None, :], 0.0)
    place = (model * n_pixels + pixel)[:, None] * CS + channel[None, :]
    tl.store(out + place, total.to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _first_backward(
    small, weights, like, examples, shares, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, K: tl.constexpr,
    C: tl.constexpr, KERNEL: tl.constexpr, SIZE: tl.constexpr,
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
        slope = _one_parity(small, row_of_weights, image, y, x, py, px, inside, H, W, CB, CS, K, PRODUCT)
        line, column, example = 2 * y + py, 2 * x + px, model * n_batch + image
        place = ((example * (2 * H) + line) * (2 * W) + column)[:, None] * CB + channel[None, :]
        active = tl.load(like + place, mask=inside[:, None], other=0.0)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        patch = _first_patches(
            examples, example, line, column, inside, 2 * H, 2 * W, C, KERNEL, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
        )
        total = tl.dot(
            tl.trans(slope.to(like.dtype.element_ty)), patch.to(like.dtype.element_ty), total, input_precision=PRODUCT
        )
    shares += (model * parts + part) * ((SIZE + 1) * CB)
    tl.store(shares + tl.arange(0, SIZE)[None, :] * CB + channel[:, None], total)
    tl.store(shares + SIZE * CB + channel, tl.sum(summed, axis=0))


@triton.jit
def _last_weight(weights, weight_at, dy, dx, C: tl.constexpr, CS: tl.constexpr):
    """[small, output] weights from neighbour (dy, dx) to the outputs (row parity, column parity, channel)."""
    n = tl.arange(0, 16)
    channel, parity = n % C, n // C
    ky, kx = parity // 2 + 3 - 2 * dy, parity % 2 + 3 - 2 * dx
    ok = (parity < 4) & (ky >= 0) & (ky < 4) & (kx >= 0) & (kx < 4)
    places = ((ky * 4 + kx) * C + channel)[None, :] * CS + tl.arange(0, CS)[:, None]
    return tl.load(weights + weight_at + places, mask=ok[None, :] & (tl.arange(0, CS) >= 0)[:, None], other=0.0)


@triton.jit
def _last_forward(
    examples, small, weights, pixels, loss, sums, weight_stride, weight_at, bias_at, n_batch,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    FUSED: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    example = tl.program_id(0).to(tl.int64)
    row_of_weights = weights + example // n_batch * weight_stride
    n = tl.arange(0, 16)
    channel, parity = n % C, n // C
    k = tl.arange(0, CS)
    bias = tl.load(row_of_weights + bias_at + channel).to(tl.float32)
    small += example * (H * W * CS)
    losses = tl.zeros((ROWS, 16), dtype=tl.float32)
    summed = tl.zeros((ROWS, 16), dtype=tl.float32)
    for begin in range(0, H * W, ROWS):
        pixel = begin + tl.arange(0, ROWS)
        x, y = pixel % W, pixel // W
        total = tl.zeros((ROWS, 16), dtype=tl.float32)
        for neighbour in range(9):
            dy, dx = neighbour // 3, neighbour % 3
            line, column = y + (dy - 1), x + (dx - 1)
            ok = (pixel < H * W) & (line >= 0) & (line < H) & (column >= 0) & (column < W)
            patch = tl.load(small + ((line * W + column) * CS)[:, None] + k[None, :], mask=ok[:, None], other=0.0)
            weight = _last_weight(row_of_weights, weight_at, dy, dx, C, CS)
            total = tl.dot(patch, weight, total, input_precision=PRODUCT)
        total += bias[None, :]
        real = (pixel < H * W)[:, None] & (parity < 4)[None, :]
        if FUSED:
            line = (2 * y - TOP)[:, None] + (parity // 2)[None, :]
            column = (2 * x - LEFT)[:, None] + (parity % 2)[None, :]
            ok = real & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
            value = _stored(examples, example, channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
            cost, total = _bernoulli(total, value, ok)
            losses += cost
            summed += total
        place = (example * (H * W) + pixel)[:, None] * (4 * C) + n[None, :]
        tl.store(pixels + place, total.to(pixels.dtype.element_ty), mask=real)
    if FUSED:
        tl.store(loss + example, tl.sum(tl.sum(losses, axis=1), axis=0))
        tl.store(sums + example * 16 + n, tl.sum(summed, axis=0))


@triton.jit
def _last_forward_one(
    examples, small, weights, pixels, loss, sums, scratch, weight_stride, weight_at, bias_at, n_batch, n_images,
    COUNT: tl.constexpr, STRIDE: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """One channel: all 16 products of every small pixel first, kept aside; then four of them meet in every output."""
    k, tap, parity = tl.arange(0, CS), tl.arange(0, 16), tl.arange(0, 4)
    py, px = parity // 2, parity % 2
    scratch += tl.program_id(0) * (H * W * 16)
    for turn in range(COUNT):
        example = (tl.program_id(0) + turn * STRIDE).to(tl.int64)
        there = example < n_images
        row_of_weights = weights + example // n_batch * weight_stride
        places = row_of_weights + weight_at + tap[None, :] * CS + k[:, None]
        weight = tl.load(places, mask=there & (k >= 0)[:, None] & (tap >= 0)[None, :], other=0.0)
        bias = tl.load(row_of_weights + bias_at, mask=there, other=0.0).to(tl.float32)
        for begin in range(0, H * W, ROWS):
            pixel = begin + tl.arange(0, ROWS)
            real = there & (pixel < H * W)
            patch = tl.load(
                small + (example * (H * W) + pixel)[:, None] * CS + k[None, :], mask=real[:, None], other=0.0
            )
            product = tl.dot(patch, weight, input_precision=PRODUCT)
            tl.store(scratch + pixel[:, None] * 16 + tap[None, :], product, mask=real[:, None])
        tl.debug_barrier()
        losses = tl.zeros((ROWS, 4), dtype=tl.float32)
        summed = tl.zeros((ROWS, 4), dtype=tl.float32)
        for begin in range(0, H * W, ROWS):
            pixel = begin + tl.arange(0, ROWS)
            real = there & (pixel < H * W)
            x, y = pixel % W, pixel // W
            total = tl.zeros((ROWS, 4), dtype=tl.float32) + bias
            for e in tl.static_range(4):
                line, column = y[:, None] + (py - 1 + e // 2)[None, :], x[:, None] + (px - 1 + e % 2)[None, :]
                heard = (3 - py - 2 * (e // 2)) * 4 + 3 - px - 2 * (e % 2)
                ok = real[:, None] & (line >= 0) & (line < H) & (column >= 0) & (column < W)
                total += tl.load(scratch + (line * W + column) * 16 + heard[None, :], mask=ok, other=0.0)
            line, column = (2 * y - TOP)[:, None] + py[None, :], (2 * x - LEFT)[:, None] + px[None, :]
            ok = real[:, None] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
            if PACKING == 3:
                word = tl.load(examples + example * (H * W) + pixel, mask=real, other=0)
                value = ((word[:, None] >> ((1 + py) * 4 + 1 + px)[None, :]) & 1).to(tl.float32)
            else:
                value = _stored(examples, example, 0, line, column, ok, PACKING, C, HEIGHT, WIDTH)
            cost, slope = _bernoulli(total, value, ok)
            losses += cost
            summed += slope
            place = (example * (H * W) + pixel)[:, None] * 4 + parity[None, :]
            tl.store(pixels + place, slope.to(pixels.dtype.element_ty), mask=real[:, None])
        tl.store(loss + example, tl.sum(tl.sum(losses, axis=1), axis=0), mask=there)
        tl.store(sums + example * 16 + parity, tl.sum(summed, axis=0), mask=there & (parity >= 0))
        tl.debug_barrier()


@triton.jit
def _bernoulli(logit, value, ok):
    """−x log p − (1 − x) log(1 − p) = max(l, 0) − l x + log(1 + e^−|l|), and its slope p − x."""
    tail = tl.exp(-tl.abs(logit))
    cost = tl.maximum(logit, 0.0) - logit * value + tl.log(1.0 + tail)
    slope = tl.where(logit >= 0, 1.0, tail) / (1.0 + tail) - value
    return tl.where(ok, cost, 0.0), tl.where(ok, slope, 0.0)


@triton.jit
def _last_backward(
    pixels, scale, small, weights, gradient, shares, weight_stride, weight_at, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, SIZE: tl.constexpr,
    SCALED: tl.constexpr, IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    channel = tl.arange(0, CS)
    k = tl.arange(0, SIZE)
    tap = k // C
    used = (k < 16 * C)[:, None] & (channel >= 0)[None, :]
    places = weights + model * weight_stride + weight_at + k[:, None] * CS + channel[None, :]
    weight = tl.load(places, mask=used, other=0.0)
    total = tl.zeros((CS, SIZE), dtype=tl.float32)
    summed = tl.zeros((ROWS, CS), dtype=tl.float32)
    begin = part * IMAGES * H * W
    end = tl.minimum(begin + IMAGES * H * W, n_batch * H * W)
    # tap (ky, kx) at (y, x) is output (2y − 1 + ky, 2x − 1 + kx): small pixel (y + down, x + right), some parity
    down, right = (tap // 4 + 1) // 2 - 1, (tap % 4 + 1) // 2 - 1
    inner = ((tap // 4 + 1) % 2 * 2 + (tap + 1) % 2) * C + k % C
    for start in range(0, IMAGES * H * W, ROWS):
        pixel = begin + start + tl.arange(0, ROWS)
        inside = pixel < end
        x, y = pixel % W, pixel // W % H
        line, column = y[:, None] + down[None, :], x[:, None] + right[None, :]
        ok = inside[:, None] & (k < 16 * C)[None, :] & (line >= 0) & (line < H) & (column >= 0) & (column < W)
        home = (model * n_batch * (H * W) + pixel) * (4 * C)
        shift = (down * W + right) * (4 * C) + inner
        patch = tl.load(pixels + home[:, None] + shift[None, :], mask=ok, other=0.0)
        if SCALED:
            image = model * n_batch + pixel // (W * H)
            patch = patch.to(tl.float32) * tl.load(scale + image, mask=inside, other=0.0)[:, None]
        patch = patch.to(small.dtype.element_ty)
        place = (model * n_batch * (H * W) + pixel)[:, None] * CS + channel[None, :]
        active = tl.load(small + place, mask=inside[:, None], other=0.0)
        slope = tl.dot(patch, weight, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        tl.store(gradient + place, slope.to(gradient.dtype.element_ty), mask=inside[:, None])
        total = tl.dot(tl.trans(active), patch, total, input_precision=PRODUCT)
    shares += (model * parts + part) * ((SIZE + 1) * CS)
    tl.store(shares + k[None, :] * CS + channel[:, None], total)
    tl.store(shares + SIZE * CS + channel, tl.sum(summed, axis=0))
