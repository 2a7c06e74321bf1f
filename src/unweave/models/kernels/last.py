"""The last transposed convolution of stacked models in Triton, with the Bernoulli loss.

Forward it computes the loss and its slope without storing an output; backward it makes the slope by its input and the
gradient of its weights in one pass.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.convolutions import Join, Tiles
from unweave.models.kernels.copies import loss_copied
from unweave.models.kernels.first import taps_padded
from unweave.models.kernels.pixels import IMAGES_AT_ONCE, Frame, pitch, stored_pixels
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

PROGRAMS = 528
"""Programs of the last forward kernel: each keeps its scratch for all images it works on, so that it stays cached."""
TUNED = {
    "loss": Tiles(512, 264, 8, 1),
    "last": Tiles(64, 2, 4, 1),
    "loss in colour": Tiles(128, 0, 4, 2),
    "last in colour": Tiles(128, 0, 4, 1),
}
"""For bf16 on an H200 (benchmarks/tune.py). ``run``: of the loss, programs; of the others, images that one program sums
(0: the usual number)."""


def last_forward(
    join: Join, frame: Frame, examples: Tensor | None, small: Tensor, weights: Tensor, product: str
) -> tuple[
    Float[Tensor, "model batch"], Float[Tensor, "model batch height width four"], Float[Tensor, "model batch 16"]
]:
    """The last transposed convolution. With examples: the Bernoulli loss of each, its slope by the outputs, its sums.

    Outputs lie by small pixel, row parity, column parity and channel (see :func:`pitch`); sums are over the small
    pixels of an example.
    Without examples the outputs themselves come second, in fp32, and nothing else is meant.
    """
    n_models, n_batch = small.shape[:2]
    fused = examples is not None
    copied = loss_copied(join, frame, examples, small, weights) if examples is not None else None
    if copied is not None:
        return copied
    shape = (n_models, n_batch, join.height, join.width, 4 * pitch(frame.channels))
    pixels = torch.empty(shape, dtype=small.dtype if fused else torch.float32, device=small.device)
    loss = torch.empty(n_models, n_batch, dtype=torch.float32, device=small.device)
    sums = torch.empty(n_models, n_batch, 16, dtype=torch.float32, device=small.device)
    # outputs alone come from the kernel for colours, whatever their channels
    chosen = _tiles("loss", small.dtype, frame.channels if fused else 3)
    sizes = (join.height, join.width, frame.channels, join.n_small)
    framed = (frame.packing, frame.height, frame.width, frame.top, frame.left)
    rows = min(chosen.rows, triton.next_power_of_2(join.height * join.width))
    at = (weights.stride(0), join.weight_at, join.bias_at, n_batch)
    given = (small if examples is None else examples, small, weights, pixels, loss, sums)
    options = {"num_warps": chosen.warps, "num_stages": chosen.stages}
    if fused and frame.channels == 1:
        programs = chosen.run or PROGRAMS
        count = triton.cdiv(n_models * n_batch, programs)
        scratch = torch.empty(programs, 16, join.height * join.width, dtype=torch.float32, device=small.device)
        grid = (min(programs, n_models * n_batch),)
        _last_forward_one[grid](
            *given, scratch, *at, n_models * n_batch, count, grid[0], *sizes, *framed, rows, product, **options
        )
    else:
        _last_forward[(n_models * n_batch,)](*given, *at, *sizes, *framed, fused, rows, product, **options)
    return loss, pixels, sums


def last_backward(
    join: Join, channels: int, pixels: Tensor, scale: Float[Tensor, "model batch"] | None, small: Tensor,
    weights: Tensor, gradients: Tensor, product: str, *, bias_gradient: Tensor, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"]:  # fmt: skip
    """The slope by the small image (where that is positive); the weights' goes into the rows.

    ``scale`` multiplies the pixels of every example; ``bias_gradient`` [model, small] takes the result's sum.
    """
    n_models, n_batch = small.shape[:2]
    chosen = _tiles("last", small.dtype, channels)
    images = chosen.run or IMAGES_AT_ONCE
    parts = triton.cdiv(n_batch, images)
    size, taps = taps_padded(join), 16 * channels
    # the slope of a plain sum is one number, expanded
    pixels, scale = pixels.contiguous(), gradients if scale is None else scale.contiguous()
    slope = torch.empty_like(small)
    shares = gradients.new_empty(n_models, parts, taps + 1, join.n_small)
    rows = min(chosen.rows, triton.next_power_of_2(join.height * join.width))
    _last_backward[(n_models * parts,)](
        pixels, scale, small, weights, slope, shares, weights.stride(0),
        join.weight_at, parts, n_batch, join.height, join.width, channels, join.n_small, size, pitch(channels),
        scale is not gradients, images, rows, product, num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    later(add_up, shares[:, :, :taps].flatten(2), gradients[:, join.weight_at : join.weight_at + taps * join.n_small])
    later(add_up, shares[:, :, taps], bias_gradient)
    return slope


def _tiles(name: str, dtype: torch.dtype, channels: int) -> Tiles:
    if dtype == torch.bfloat16:
        return TUNED[name if channels == 1 else f"{name} in colour"]
    return Tiles(128, 0, 4, 2 if name == "last" else 1) if channels == 1 else Tiles(64, 0, 4, 1)


@triton.jit
def _last_weight(weights, weight_at, dy, dx, C: tl.constexpr, CP: tl.constexpr, CS: tl.constexpr):
    """[small, output] weights from neighbour (dy, dx) to the outputs (row parity, column parity, channel)."""
    n = tl.arange(0, 16)
    channel, parity = n % CP, n // CP
    ky, kx = parity // 2 + 3 - 2 * dy, parity % 2 + 3 - 2 * dx
    ok = (parity < 4) & (channel < C) & (ky >= 0) & (ky < 4) & (kx >= 0) & (kx < 4)
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
    CP: tl.constexpr = 1 if C == 1 else 4
    n = tl.arange(0, 16)
    channel, parity = n % CP, n // CP
    k = tl.arange(0, CS)
    bias = tl.load(row_of_weights + bias_at + channel, mask=channel < C, other=0.0).to(tl.float32)
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
            weight = _last_weight(row_of_weights, weight_at, dy, dx, C, CP, CS)
            total = tl.dot(patch, weight, total, input_precision=PRODUCT)
        total += bias[None, :]
        real = (pixel < H * W)[:, None] & (parity < 4)[None, :]
        if FUSED:
            line = (2 * y - TOP)[:, None] + (parity // 2)[None, :]
            column = (2 * x - LEFT)[:, None] + (parity % 2)[None, :]
            ok = real & (channel < C)[None, :] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
            value = stored_pixels(examples, example, channel[None, :], line, column, ok, PACKING, C, HEIGHT, WIDTH)
            cost, total = _bernoulli(total, value, ok)
            losses += cost
            summed += total
        place = (example * (H * W) + pixel)[:, None] * (4 * CP) + n[None, :]
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
            inward = small + example * (H * W * CS) + (pixel[:, None] * CS + k[None, :])
            patch = tl.load(inward, mask=real[:, None], other=0.0)
            product = tl.dot(patch, weight, input_precision=PRODUCT)
            tl.store(scratch + (pixel[:, None] + tap[None, :] * (H * W)), product, mask=real[:, None])
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
                shift = heard * (H * W) + (py - 1 + e // 2) * W + px - 1 + e % 2
                ok = real[:, None] & (line >= 0) & (line < H) & (column >= 0) & (column < W)
                total += tl.load(scratch + (pixel[:, None] + shift[None, :]), mask=ok, other=0.0)
            line, column = (2 * y - TOP)[:, None] + py[None, :], (2 * x - LEFT)[:, None] + px[None, :]
            ok = real[:, None] & (line >= 0) & (line < HEIGHT) & (column >= 0) & (column < WIDTH)
            if PACKING == 3:
                word = tl.load(examples + example * (H * W) + pixel, mask=real, other=0)
                value = ((word[:, None] >> ((1 + py) * 4 + 1 + px)[None, :]) & 1).to(tl.float32)
            else:
                value = stored_pixels(examples, example, 0, line, column, ok, PACKING, C, HEIGHT, WIDTH)
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
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, CS: tl.constexpr, SIZE: tl.constexpr, CP: tl.constexpr,
    SCALED: tl.constexpr, IMAGES: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    channel = tl.arange(0, CS)
    k = tl.arange(0, SIZE)
    tap = k // CP
    used = ((k < 16 * CP) & (k % CP < C))[:, None] & (channel >= 0)[None, :]
    places = weights + model * weight_stride + weight_at + (tap * C + k % CP)[:, None] * CS + channel[None, :]
    weight = tl.load(places, mask=used, other=0.0)
    total = tl.zeros((CS, SIZE), dtype=tl.float32)
    summed = tl.zeros((ROWS, CS), dtype=tl.float32)
    # what a tile needs is asked for while the one before is worked on
    begin = part * IMAGES * H * W
    end = tl.minimum(begin + IMAGES * H * W, n_batch * H * W)
    pixels += model * n_batch * (H * W * 4 * CP)
    small += model * n_batch * (H * W * CS)
    gradient += model * n_batch * (H * W * CS)
    patch = _last_patch(pixels, begin, end, H, W, CP, SIZE, ROWS)
    active = _last_active(small, begin, end, CS, ROWS)
    for turn in range(0, IMAGES * H * W, ROWS):
        start = begin + turn
        next_patch = _last_patch(pixels, start + ROWS, end, H, W, CP, SIZE, ROWS)
        next_active = _last_active(small, start + ROWS, end, CS, ROWS)
        pixel = start + tl.arange(0, ROWS)
        inside = pixel < end
        if SCALED:
            image = model * n_batch + pixel // (W * H)
            patch = (patch.to(tl.float32) * tl.load(scale + image, mask=inside, other=0.0)[:, None]).to(patch.dtype)
        patch = patch.to(active.dtype)
        slope = tl.dot(patch, weight, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        place = pixel[:, None] * CS + channel[None, :]
        tl.store(gradient + place, slope.to(gradient.dtype.element_ty), mask=inside[:, None])
        total = tl.dot(tl.trans(active), patch, total, input_precision=PRODUCT)
        patch, active = next_patch, next_active
    shares += (model * parts + part) * ((16 * C + 1) * CS)
    used = ((k < 16 * CP) & (k % CP < C))[None, :] & (channel >= 0)[:, None]
    tl.store(shares + (tap * C + k % CP)[None, :] * CS + channel[:, None], total, mask=used)
    tl.store(shares + 16 * C * CS + channel, tl.sum(summed, axis=0))


@triton.jit
def _last_active(small, start, end, CS: tl.constexpr, ROWS: tl.constexpr):
    """[pixel, small channel] the small image from some pixel on."""
    row = tl.arange(0, ROWS)
    place = start * CS + (row[:, None] * CS + tl.arange(0, CS)[None, :])
    return tl.load(small + place, mask=(start + row < end)[:, None], other=0.0)


@triton.jit
def _last_patch(
    pixels, start, end, H: tl.constexpr, W: tl.constexpr, CP: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """[pixel, (tap, channel)] the outputs that hear small pixels, from some pixel on."""
    k, row = tl.arange(0, SIZE), tl.arange(0, ROWS)
    tap = k // CP
    # tap (ky, kx) at (y, x) is output (2y − 1 + ky, 2x − 1 + kx): small pixel (y + down, x + right), some parity
    down, right = (tap // 4 + 1) // 2 - 1, (tap % 4 + 1) // 2 - 1
    inner = ((tap // 4 + 1) % 2 * 2 + (tap + 1) % 2) * CP + k % CP
    pixel = start + row
    line, column = (pixel // W % H)[:, None] + down[None, :], (pixel % W)[:, None] + right[None, :]
    ok = (pixel < end)[:, None] & (k < 16 * CP)[None, :] & (line >= 0) & (line < H) & (column >= 0) & (column < W)
    shift = tl.max_contiguous(tl.multiple_of((down * W + right) * (4 * CP) + inner, CP), CP)
    ok = tl.max_constancy(ok, [1, CP])
    return tl.load(pixels + start * (4 * CP) + ((row * (4 * CP))[:, None] + shift[None, :]), mask=ok, other=0.0)
