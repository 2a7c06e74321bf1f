"""The two ends of a stacked convolutional model in Triton: from packed pixels in, and out to pixels and their loss.

The outer layers have one to four channels and hold two thirds of all activations, so they are made of few passes:
the first convolution reads bits or bytes as they are stored, and the last transposed one computes the Bernoulli loss
and its gradient without ever storing an output.
"""

from dataclasses import dataclass

# ruff: noqa: N803, N806
import torch
import triton
import triton.language as tl

from unweave.models.kernels.convolutions import Join
from unweave.shapes import Float, Shaped, Tensor

PACKINGS = {"bits": 0, "bytes": 1, "floats": 2}
IMAGES_AT_ONCE = 8
"""Images whose share of a weight gradient one program sums; the shares are then added in a fixed order."""


@dataclass(frozen=True)
class Frame:
    """How examples are stored, and where they lie in the even-sized frame that the network works in."""

    packing: int
    channels: int
    height: int
    width: int
    top: int
    left: int


def first_forward(
    join: Join,
    frame: Frame,
    examples: Shaped[Tensor, "model batch ..."],
    weights: Tensor,
    dtype: torch.dtype,
    product: str,
) -> Float[Tensor, "model batch height width small"]:
    """The first convolution with bias and rectifier, from stored examples."""
    n_models, n_batch = examples.shape[:2]
    out = torch.empty(n_models, n_batch, join.height, join.width, join.n_small, dtype=dtype, device=examples.device)
    n_pixels = n_batch * join.height * join.width
    tiles = triton.cdiv(n_pixels, 128)
    _first_forward[(n_models * tiles,)](
        examples, weights, out, weights.stride(0), join.weight_at, join.bias_at, n_pixels, tiles, n_batch,
        join.height, join.width, frame.channels, join.n_small, join.kernel, _padded(join),
        frame.packing, frame.height, frame.width, frame.top, frame.left, 128, product, num_warps=4,
    )  # fmt: skip
    return out


def first_backward(
    join: Join,
    frame: Frame,
    examples: Shaped[Tensor, "model batch ..."],
    gradient: Tensor,
    gradients: Tensor,
    product: str,
) -> None:
    """The first convolution's weight and bias gradients, written into the rows."""
    n_models, n_batch = examples.shape[:2]
    parts = triton.cdiv(n_batch, IMAGES_AT_ONCE)
    size, taps = _padded(join), join.kernel**2 * frame.channels
    shares = gradients.new_empty(n_models, parts, size + 1, join.n_small)
    _first_backward[(n_models * parts,)](
        examples, gradient, shares, parts, n_batch, join.height, join.width, frame.channels, join.n_small,
        join.kernel, size, frame.packing, frame.height, frame.width, frame.top, frame.left,
        IMAGES_AT_ONCE, 64, product, num_warps=4, num_stages=2,
    )  # fmt: skip
    total = shares.sum(1)
    gradients[:, join.weight_at : join.weight_at + taps * join.n_small] = total[:, :taps].flatten(1)
    gradients[:, join.bias_at : join.bias_at + join.n_small] = total[:, size]


def last_forward(
    join: Join, frame: Frame, examples: Tensor | None, small: Tensor, weights: Tensor, product: str
) -> tuple[Float[Tensor, "model batch"], Float[Tensor, "model batch height2 width2 big"]]:
    """The last transposed convolution. With examples: the Bernoulli loss of each, and its gradient by the outputs.

    Without examples the outputs themselves come second, in fp32, and the first is empty.
    """
    n_models, n_batch = small.shape[:2]
    fused = examples is not None
    shape = (n_models, n_batch, 2 * join.height, 2 * join.width, frame.channels)
    pixels = torch.empty(shape, dtype=small.dtype if fused else torch.float32, device=small.device)
    loss = torch.empty(n_models, n_batch, dtype=torch.float32, device=small.device)
    rows = min(128, triton.next_power_of_2(join.height * join.width))
    _last_forward[(n_models * n_batch,)](
        small if examples is None else examples, small, weights, pixels, loss, weights.stride(0), join.weight_at,
        join.bias_at, n_batch, join.height, join.width, frame.channels, join.n_small,
        frame.packing, frame.height, frame.width, frame.top, frame.left, fused, rows, product, num_warps=4, num_stages=1,
    )  # fmt: skip
    return loss, pixels


def last_backward(
    join: Join, frame: Frame, pixels: Tensor, scale: Float[Tensor, "model batch"] | None, small: Tensor, weights: Tensor,
    gradients: Tensor, product: str,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """The gradient by the small image (where that is positive); the weights' goes into the rows."""
    n_models, n_batch = small.shape[:2]
    parts = triton.cdiv(n_batch, IMAGES_AT_ONCE)
    size, taps = _padded(join), 16 * frame.channels
    gradient = torch.empty_like(small)
    shares = gradients.new_empty(n_models, parts, size, join.n_small)
    sums = gradients.new_empty(n_models, parts, size)
    rows = min(128, triton.next_power_of_2(join.height * join.width))
    _last_backward[(n_models * parts,)](
        pixels, gradients if scale is None else scale, small, weights, gradient, shares, sums, weights.stride(0),
        join.weight_at, parts, n_batch, join.height, join.width, frame.channels, join.n_small, size,
        scale is not None, IMAGES_AT_ONCE, rows, product, num_warps=4, num_stages=2,
    )  # fmt: skip
    gradients[:, join.weight_at : join.weight_at + taps * join.n_small] = shares.sum(1)[:, :taps].flatten(1)
    inner = sums.sum(1)[:, :taps].unflatten(1, (4, 4, frame.channels))[:, 1:3, 1:3]
    gradients[:, join.bias_at : join.bias_at + frame.channels] = inner.sum((1, 2))
    return gradient


def _padded(join: Join) -> int:
    return max(16, triton.next_power_of_2(join.kernel**2 * join.n_big))


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
    examples, image, y, x, inside, C: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr, PACKING: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
):  # fmt: skip
    PAD: tl.constexpr = (K - 2) // 2
    k = tl.arange(0, SIZE)
    channel, tap = k % C, k // C
    line = (2 * y - PAD - TOP)[:, None] + (tap // K)[None, :]
    column = (2 * x - PAD - LEFT)[:, None] + (tap % K)[None, :]
    ok = inside[:, None] & (tap < K * K)[None, :] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
    return _stored(examples, image[:, None], channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)


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
        examples, model * n_batch + image, y, x, inside, C, K, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
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
    examples, gradient, shares, parts, n_batch,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr,
    PACKING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    channel = tl.arange(0, CS)
    total = tl.zeros((CS, SIZE), dtype=tl.float32)
    sums = tl.zeros((CS,), dtype=tl.float32)
    begin = part * IMAGES * H * W
    end = tl.minimum(begin + IMAGES * H * W, n_batch * H * W)
    for start in range(0, IMAGES * H * W, ROWS):
        pixel = begin + start + tl.arange(0, ROWS)
        inside = pixel < end
        x, y, image = pixel % W, pixel // W % H, pixel // (W * H)
        place = (model * n_batch * (H * W) + pixel)[:, None] * CS + channel[None, :]
        slope = tl.load(gradient + place, mask=inside[:, None], other=0.0)
        patch = _first_patches(
            examples, model * n_batch + image, y, x, inside, C, K, SIZE, PACKING, HEIGHT, WIDTH, TOP, LEFT
        )
        total = tl.dot(tl.trans(slope), patch.to(slope.dtype), total, input_precision=PRODUCT)
        sums += tl.sum(slope.to(tl.float32), axis=0)
    shares += (model * parts + part) * ((SIZE + 1) * CS)
    tl.store(shares + tl.arange(0, SIZE)[None, :] * CS + channel[:, None], total)
    tl.store(shares + SIZE * CS + channel, sums)


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
    examples, small, weights, pixels, loss, weight_stride, weight_at, bias_at, n_batch,
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
    losses = tl.zeros((ROWS,), dtype=tl.float32)
    for begin in range(0, H * W, ROWS):
        pixel = begin + tl.arange(0, ROWS)
        x, y = pixel % W, pixel // W
        total = tl.zeros((ROWS, 16), dtype=tl.float32)
        for dy in tl.static_range(3):
            for dx in tl.static_range(3):
                line, column = y + (dy - 1), x + (dx - 1)
                ok = (pixel < H * W) & (line >= 0) & (line < H) & (column >= 0) & (column < W)
                patch = tl.load(small + ((line * W + column) * CS)[:, None] + k[None, :], mask=ok[:, None], other=0.0)
                weight = _last_weight(row_of_weights, weight_at, dy, dx, C, CS)
                total = tl.dot(patch, weight, total, input_precision=PRODUCT)
        total += bias[None, :]
        big_line, big_column = (2 * y)[:, None] + (parity // 2)[None, :], (2 * x)[:, None] + (parity % 2)[None, :]
        place = example * (4 * H * W * C) + (big_line * (2 * W) + big_column) * C + channel[None, :]
        real = (pixel < H * W)[:, None] & (parity < 4)[None, :]
        if FUSED:
            line, column = big_line - TOP, big_column - LEFT
            ok = real & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
            value = _stored(examples, example, channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
            # −x log p − (1 − x) log(1 − p) = max(l, 0) − l x + log(1 + e^−|l|), and its slope p − x
            small_part = tl.exp(-tl.abs(total))
            cost = tl.maximum(total, 0.0) - total * value + tl.log(1.0 + small_part)
            losses += tl.sum(tl.where(ok, cost, 0.0), axis=1)
            probability = tl.where(total >= 0, 1.0, small_part) / (1.0 + small_part)
            total = tl.where(ok, probability - value, 0.0)
        tl.store(pixels + place, total.to(pixels.dtype.element_ty), mask=real)
    if FUSED:
        tl.store(loss + example, tl.sum(losses, axis=0))


@triton.jit
def _last_backward(
    pixels, scale, small, weights, gradient, shares, sums, weight_stride, weight_at, parts, n_batch,
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
    summed = tl.zeros((SIZE,), dtype=tl.float32)
    begin = part * IMAGES * H * W
    end = tl.minimum(begin + IMAGES * H * W, n_batch * H * W)
    for start in range(0, IMAGES * H * W, ROWS):
        pixel = begin + start + tl.arange(0, ROWS)
        inside = pixel < end
        x, y, image = pixel % W, pixel // W % H, model * n_batch + pixel // (W * H)
        line, column = (2 * y - 1)[:, None] + (tap // 4)[None, :], (2 * x - 1)[:, None] + (tap % 4)[None, :]
        ok = inside[:, None] & (k < 16 * C)[None, :] & (line >= 0) & (line < 2 * H) & (column >= 0) & (column < 2 * W)
        where = ((image[:, None] * (2 * H) + line) * (2 * W) + column) * C + (k % C)[None, :]
        patch = tl.load(pixels + where, mask=ok, other=0.0).to(tl.float32)
        if SCALED:
            patch *= tl.load(scale + image, mask=inside, other=0.0)[:, None]
        summed += tl.sum(patch, axis=0)
        patch = patch.to(small.dtype.element_ty)
        place = (model * n_batch * (H * W) + pixel)[:, None] * CS + channel[None, :]
        active = tl.load(small + place, mask=inside[:, None], other=0.0)
        slope = tl.dot(patch, weight, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        tl.store(gradient + place, slope.to(gradient.dtype.element_ty), mask=inside[:, None])
        total = tl.dot(tl.trans(active), patch, total, input_precision=PRODUCT)
    shares += (model * parts + part) * (SIZE * CS)
    tl.store(shares + k[None, :] * CS + channel[:, None], total)
    tl.store(sums + (model * parts + part) * SIZE + k, summed)
