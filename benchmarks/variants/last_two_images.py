"""The last two transposed convolutions without the image between them.

Forward, one kernel goes from the image below to the Bernoulli loss. Backward, what lies between is made again from the
neighbours that the weight gradient reads anyway, and both layers' weight gradients are one kernel, which leaves the
slope by the image between for the next layer. 17 MB a model-step less.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl
from way import Way  # beside this file

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.conv_stack import ConvStack
from unweave.models.kernels.convolutions import Join, down
from unweave.models.kernels.dense import dense_forward
from unweave.models.kernels.encoder import bias_of
from unweave.models.kernels.first_two import _neighbours, _parity_places
from unweave.models.kernels.last import _bernoulli
from unweave.models.kernels.pixels import Frame
from unweave.models.kernels.resident import _neighbour, big_places, in_batch, up_forward
from unweave.models.kernels.sums import add_up
from unweave.shapes import Float, Tensor

FORWARD, BACKWARD = Way(64, 1, 4, 2), Way(64, 16, 4, 3)
"""``run``: images whose products one program keeps aside at a time; images that one program sums."""
PROGRAMS, IMAGES, MEET = 264, 8, 256
"""Programs of the forward kernel, images that share its weights, outputs' places that it meets at a time."""


def decode(
    stack: ConvStack, weights: Tensor, parameters: Tensor, frame: Frame, examples: Tensor, sampled: Tensor
) -> tuple[list[Tensor], Tensor, dict[str, Tensor]]:
    """As the stack's own; the image before the last layer is not among what is kept."""
    stored, product = stack.precision.stored, stack.precision.product
    code = sampled.to(stored).contiguous()
    hidden = dense_forward(stack.dense, code, weights, product, activate=True, dtype=stored)
    flat = dense_forward(stack.spread, hidden, weights, product, activate=True, dtype=stored)
    *inner, upper, last = stack.deconvolutions
    begin = inner[0] if inner else upper
    images = [flat.view(*flat.shape[:2], begin.height, begin.width, begin.n_small)]
    for join in inner:
        images.append(up_forward(join, images[-1], weights, product))
    loss, pixels, sums = two_forward(upper, last, examples, images[-1], weights, product)
    return [code, hidden, *images, pixels, sums], loss.requires_grad_(), {"loss": loss}


def decode_backward(
    stack: ConvStack, weights: Tensor, kept: list[Tensor], slopes: dict[str, Tensor], gradients: Tensor, later: Later
) -> Tensor:
    """As the stack's own."""
    from unweave.models.kernels.convolutions import correlate
    from unweave.models.kernels.dense import dense_input_gradient, dense_weight_gradient

    stored, product = stack.precision.stored, stack.precision.product
    code, hidden, *images, pixels, sums = kept
    *inner, upper, last = stack.deconvolutions
    # the stack's own way forward keeps one image more, and room for more sums
    images, sums = images[: len(inner) + 1], sums[..., :4]
    parts = (sums * slopes["loss"][..., None])[..., None].flatten(1, 2)
    later(add_up, parts, bias_of(gradients, last, 1))
    slope = two_backward(upper, last, pixels, slopes["loss"], images[-1], weights, gradients, product, later)
    below = inner[-1] if inner else None
    bias = None if below is None else bias_of(gradients, below, below.n_big)
    slope = down(upper, slope, weights, product, like=images[-1], bias_gradient=bias, later=later)
    for place in range(len(inner) - 1, -1, -1):
        join, image = inner[place], images[place]
        later(correlate, join, slope, image, gradients, product)
        below = inner[place - 1]
        bias = bias_of(gradients, below, below.n_big) if place else None
        slope = down(join, slope, weights, product, like=image, bias_gradient=bias, later=later)
    flat = slope.flatten(2)
    later(dense_weight_gradient, stack.spread, flat, hidden, gradients, product)
    flat = dense_input_gradient(stack.spread, flat, weights, product, dtype=stored, like=hidden)
    later(dense_weight_gradient, stack.dense, flat, code, gradients, product)
    return dense_input_gradient(stack.dense, flat, weights, product, dtype=torch.float32)


def two_forward(
    upper: Join, last: Join, masks: Tensor, small: Tensor, weights: Tensor, product: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The Bernoulli loss of every example, its slope by the outputs [pixel between, parity], and that one's sums."""
    n_models, n_batch = small.shape[:2]
    pixels = small.new_empty(n_models, n_batch, last.height, last.width, 4)
    loss = masks.new_empty(n_models, n_batch, dtype=torch.float32)
    sums = masks.new_empty(n_models, n_batch, 4, dtype=torch.float32)
    parts = triton.cdiv(n_batch, IMAGES)
    programs = min(PROGRAMS, n_models * parts)
    scratch = masks.new_empty(programs, FORWARD.run * 16 * last.height * last.width, dtype=torch.float32)
    _two_forward[(programs,)](
        masks, small, weights, pixels, loss, sums, scratch, weights.stride(0), upper.weight_at, upper.bias_at,
        last.weight_at, last.bias_at, parts, n_batch, n_models * parts, programs,
        triton.cdiv(n_models * parts, programs),
        upper.height, upper.width, upper.n_big, upper.n_small, IMAGES, FORWARD.run, FORWARD.rows,
        min(MEET, 4 * upper.height * upper.width), product, **FORWARD.options,
    )  # fmt: skip
    return loss, pixels, sums


def two_backward(
    upper: Join, last: Join, pixels: Tensor, scale: Tensor, small: Tensor, weights: Tensor, gradients: Tensor,
    product: str, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"]:  # fmt: skip
    """The slope by the image between; gradients of both layers' weights and of the upper one's bias into the rows."""
    n_models, n_batch = small.shape[:2]
    parts = triton.cdiv(n_batch, BACKWARD.run)
    slope = small.new_empty(n_models, n_batch, last.height, last.width, last.n_small)
    shares = gradients.new_empty(n_models, parts, 16 * upper.n_big * upper.n_small)
    lasts = gradients.new_empty(n_models, parts * 4, 17, last.n_small)
    _two_backward[(n_models * parts * 4,)](
        pixels, scale.contiguous(), small, weights, slope, shares, lasts, weights.stride(0), upper.weight_at,
        upper.bias_at, last.weight_at, parts, n_batch, upper.height, upper.width, upper.n_big, upper.n_small,
        BACKWARD.run, BACKWARD.rows, product, **BACKWARD.options,
    )  # fmt: skip
    later(add_up, shares, gradients[:, upper.weight_at : upper.weight_at + shares.shape[2]])
    n_weights = 16 * last.n_small
    later(add_up, lasts[:, :, :16].flatten(2), gradients[:, last.weight_at : last.weight_at + n_weights])
    later(add_up, lasts[:, :, 16], gradients[:, upper.bias_at : upper.bias_at + upper.n_big])
    return slope


@triton.jit
def _two_forward(
    masks, small, weights, pixels, loss, sums, scratch, weight_stride, upper_at, upper_bias_at, last_at, last_bias_at,
    parts, n_batch, n_units, programs, COUNT: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, IMAGES: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, MEET: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """A unit is some images of one model. Products of a pixel between lie by image, tap, parity and small pixel."""
    SMALL: tl.constexpr = H * W
    tap, channel = tl.arange(0, 16), tl.arange(0, CB)
    scratch += tl.program_id(0) * (GROUP * 64 * SMALL)
    for run in range(COUNT):
        unit = tl.program_id(0) + run * programs
        if unit < n_units:
            model = (unit // parts).to(tl.int64)
            row_of_weights = weights + model * weight_stride
            bias = tl.load(row_of_weights + upper_bias_at + channel).to(tl.float32)
            last_bias = tl.load(row_of_weights + last_bias_at).to(tl.float32)
            last = tl.load(row_of_weights + last_at + (tap[None, :] * CB + channel[:, None]))
            places = row_of_weights + upper_at + (channel[None, :] * CS + tl.arange(0, CS)[:, None])
            weight = ()
            for place in tl.static_range(16):
                weight = weight + (tl.load(places + place * (CB * CS)),)  # type: ignore[assignment]  # noqa: RUF005
            seen = small + model * n_batch * (SMALL * CS)
            for turn in range(0, IMAGES, GROUP):
                begin = unit % parts * IMAGES + turn
                for start in range(0, GROUP * SMALL, ROWS):
                    image, top = begin + start // SMALL, start // W % H
                    inside = in_batch(image, n_batch, ROWS, H, W)
                    totals = _four_parities(seen, image, top, inside, weight, bias, H, W, CB, CS, ROWS, PRODUCT)
                    aside = scratch + start // SMALL * (64 * SMALL) + start % SMALL
                    for parity in tl.static_range(4):
                        _set_aside(aside + parity * SMALL, totals[parity], last, SMALL, ROWS, PRODUCT)
                tl.debug_barrier()
                for held in range(GROUP):
                    image = begin + held
                    if image < n_batch:
                        example = model * n_batch + image
                        _meet(masks, pixels, loss, sums, scratch + held * (64 * SMALL), example, last_bias, H, W, MEET)
                tl.debug_barrier()


@triton.jit
def _four_parities(
    small, image, top, inside, weight, bias,
    H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """[small pixel, big channel] what the big pixels of every parity hear; as in ``resident.py``."""
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
    return total0, total1, total2, total3


@triton.jit
def _set_aside(scratch, total, last, SMALL: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr):
    """What the pixels between of one parity say through the 16 taps of the last kernel."""
    product = tl.dot(tl.maximum(total, 0.0).to(last.dtype), last, input_precision=PRODUCT)
    row = tl.arange(0, ROWS)
    place = row // SMALL * (64 * SMALL) + row % SMALL
    tl.store(scratch + (place[:, None] + (tl.arange(0, 16) * (4 * SMALL))[None, :]), product)


@triton.jit
def _meet(
    masks, pixels, loss, sums, scratch, example, last_bias, H: tl.constexpr, W: tl.constexpr, MEET: tl.constexpr
):  # fmt: skip
    """Four products meet in every output; the loss of an example, and its slope."""
    SMALL: tl.constexpr = H * W
    parity = tl.arange(0, 4)
    py, px = (parity // 2)[None, :], (parity % 2)[None, :]
    losses = tl.zeros((MEET, 4), dtype=tl.float32)
    summed = tl.zeros((MEET, 4), dtype=tl.float32)
    for start in range(0, 4 * SMALL, MEET):
        # pixels between, parity by parity, so that neighbours lie side by side in the scratch
        place = start + tl.arange(0, MEET)
        y = 2 * (place % SMALL // W) + place // SMALL // 2
        x = 2 * (place % W) + place // SMALL % 2
        total = tl.zeros((MEET, 4), dtype=tl.float32) + last_bias
        for e in tl.static_range(4):
            line, column = y[:, None] + (py - 1 + e // 2), x[:, None] + (px - 1 + e % 2)
            heard = (3 - py - 2 * (e // 2)) * 4 + 3 - px - 2 * (e % 2)
            ok = (line >= 0) & (line < 2 * H) & (column >= 0) & (column < 2 * W)
            there = (heard * 4 + line % 2 * 2 + column % 2) * SMALL + line // 2 * W + column // 2
            total += tl.load(scratch + there, mask=ok, other=0.0)
        pixel = example * (4 * SMALL) + y * (2 * W) + x
        word = tl.load(masks + pixel)
        value = ((word[:, None] >> ((1 + py) * 4 + 1 + px)) & 1).to(tl.float32)
        cost, slope = _bernoulli(total, value, total == total)
        losses += cost
        summed += slope
        tl.store(pixels + (pixel[:, None] * 4 + parity[None, :]), slope.to(pixels.dtype.element_ty))
    tl.store(loss + example, tl.sum(tl.sum(losses, axis=1), axis=0))
    tl.store(sums + example * 4 + parity, tl.sum(summed, axis=0))


@triton.jit
def _two_backward(
    pixels, scale, small, weights, gradient, shares, lasts, weight_stride, upper_at, upper_bias_at, last_at, parts,
    n_batch, H: tl.constexpr, W: tl.constexpr, CB: tl.constexpr, CS: tl.constexpr, IMAGES: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    py, px = tl.program_id(0) % 4 // 2, tl.program_id(0) % 2
    part = tl.program_id(0) // 4
    model = (part // parts).to(tl.int64)
    begin = part % parts * IMAGES
    small += model * n_batch * (H * W * CS)
    gradient += model * n_batch * (4 * H * W * CB)
    pixels += model * n_batch * (16 * H * W)
    channel, k, row = tl.arange(0, CB), tl.arange(0, 16), tl.arange(0, ROWS)
    row_of_weights = weights + model * weight_stride
    last = tl.load(row_of_weights + last_at + (k[:, None] * CB + channel[None, :]))
    bias = tl.load(row_of_weights + upper_bias_at + channel).to(tl.float32)
    places0, places1 = _parity_places(py, px, 0, CB, CS), _parity_places(py, px, 1, CB, CS)
    weight0, weight1 = tl.load(row_of_weights + upper_at + places0), tl.load(row_of_weights + upper_at + places1)
    total0 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total1 = tl.zeros((2 * CS, CB), dtype=tl.float32)
    total = tl.zeros((CB, 16), dtype=tl.float32)
    summed = tl.zeros((ROWS, CB), dtype=tl.float32)
    for start in range(0, IMAGES * H * W, ROWS):
        image, top = begin + start // (H * W), start // W % H
        inside = in_batch(image, n_batch, ROWS, H, W)
        patch0 = _neighbours(small, image, top, py - 1, px, inside, ROWS, H, W, CS)
        patch1 = _neighbours(small, image, top, py, px, inside, ROWS, H, W, CS)
        outputs = _outputs(pixels, image, top, py, px, inside, ROWS, H, W)
        times = tl.load(scale + model * n_batch + image + row // (H * W), mask=inside, other=0.0)
        outputs = (outputs.to(tl.float32) * times[:, None]).to(outputs.dtype)
        active = tl.dot(
            patch0, weight0, tl.zeros((ROWS, CB), dtype=tl.float32) + bias[None, :], input_precision=PRODUCT
        )
        active = tl.dot(patch1, weight1, active, input_precision=PRODUCT)
        slope = tl.dot(outputs, last, input_precision=PRODUCT)
        slope = tl.where(active > 0, slope, 0.0)
        summed += slope
        rounded = slope.to(last.dtype)
        tl.store(gradient + big_places(image, top, py, px, ROWS, H, W, CB), rounded, mask=inside[:, None])
        total0 = tl.dot(tl.trans(patch0), rounded, total0, input_precision=PRODUCT)
        total1 = tl.dot(tl.trans(patch1), rounded, total1, input_precision=PRODUCT)
        active = tl.maximum(active, 0.0).to(last.dtype)
        total = tl.dot(tl.trans(active), outputs, total, input_precision=PRODUCT)
    shares += part.to(tl.int64) * (16 * CB * CS)
    tl.store(shares + places0, total0)
    tl.store(shares + places1, total1)
    lasts += tl.program_id(0).to(tl.int64) * (17 * CB)
    tl.store(lasts + k[None, :] * CB + channel[:, None], total)
    tl.store(lasts + 16 * CB + channel, tl.sum(summed, axis=0))


@triton.jit
def _outputs(pixels, image, top, py, px, inside, ROWS: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    """[pixel between, tap] the slopes of the outputs that pixels between of one parity speak to."""
    k, row = tl.arange(0, 16), tl.arange(0, ROWS)
    # tap (ky, kx) at (y, x) is output (2y − 1 + ky, 2x − 1 + kx): that of the pixel (y + below, x + right), some parity
    below, right = (k // 4 + 1) // 2 - 1, (k % 4 + 1) // 2 - 1
    y, x = 2 * (top + row // W % H) + py, 2 * (row % W) + px
    line, column = y[:, None] + below[None, :], x[:, None] + right[None, :]
    ok = inside[:, None] & (line >= 0) & (line < 2 * H) & (column >= 0) & (column < 2 * W)
    inner = (k // 4 + 1) % 2 * 2 + (k + 1) % 2
    shift = (below * (2 * W) + right) * 4 + inner
    there = ((image + row // (H * W)) * (4 * H * W) + y * (2 * W) + x) * 4
    return tl.load(pixels + (there[:, None] + shift[None, :]), mask=ok, other=0.0)
