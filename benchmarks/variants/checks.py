"""How far the variants are from float64 on random inputs: ‖out − out64‖ / ‖out64‖, worst over models.

Images between layers are rounded as they are stored; outputs are poisoned first. On a GPU call inside
``torch.device("cuda")``.
"""

import first_two_images  # beside this file, as are the next two
import last_two_images
import shared_columns
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, conv2d, conv_transpose2d

from unweave.models.kernels.convolutions import Join
from unweave.models.kernels.first import ready
from unweave.models.kernels.pixels import BITS, Frame
from unweave.shapes import Tensor

MODELS, BEGIN = 2, 64
STORED = torch.bfloat16
"""What images and weights are stored as; in fp32, Triton's interpreter shows that nothing but rounding is far."""
INNER = 4096
"""Where the second layer's weights begin."""


def first_two(batch: int, size: int) -> dict[str, float]:
    """The second image, and the gradients of both layers; ``size`` is the height of the second image."""
    first, second = Join(2 * size, 2 * size, 1, 32, 4, BEGIN, 0), Join(size, size, 32, 32, 4, INNER, 32)
    masks, pictures = _pictures(first, batch)
    w, b, v, c = _rounded(32, 1, 4, 4), _rounded(32), _rounded(32, 32, 4, 4), _rounded(32)
    rows, gradients = _rows((0, b), (32, c), (BEGIN, _flat(w)), (INNER, _flat(v)))
    slope = _rounded(batch, 32, size, size)
    found = first_two_images.two_forward(first, second, masks, rows, "ieee")
    first_two_images.two_backward(first, second, masks, _stored(slope), rows, gradients, "ieee")
    far: dict[str, float] = {}
    for model in range(MODELS):
        w64, b64, v64, c64 = (one[model].double().requires_grad_() for one in (w, b, v, c))
        made = conv2d(pictures[model], w64, b64, stride=2, padding=1)
        between = made.detach().relu().to(STORED).double().requires_grad_()
        out = conv2d(between, v64, c64, stride=2, padding=1)
        by_between, by_inner = torch.autograd.grad(out, (between, v64), slope[model].double())
        by_w, by_b = torch.autograd.grad(made, (w64, b64), by_between * (between > 0))
        _worse(far, "out", found[model].movedim(-1, 1), out.relu())
        _worse(far, "first weight", gradients[model, BEGIN : BEGIN + 512], _flat(by_w[None])[0])
        _worse(far, "first bias", gradients[model, :32], by_b)
        _worse(far, "second weight", gradients[model, INNER : INNER + 16 * 32 * 32], _flat(by_inner[None])[0])
    return far


def last_two(batch: int, size: int) -> dict[str, float]:
    """The loss, the slope by the image between, and all gradients; ``size`` is the height of the image below."""
    upper, last = Join(size, size, 32, 32, 4, INNER, 32), Join(2 * size, 2 * size, 1, 32, 4, BEGIN, 0)
    masks, pictures = _pictures(last, batch)
    w, b, v, c = _rounded(32, 1, 4, 4), _rounded(1), _rounded(32, 32, 4, 4), _rounded(32)
    rows, gradients = _rows((0, b), (32, c), (BEGIN, _flat(w)), (INNER, _flat(v)))
    small, scale = _rounded(batch, 32, size, size).relu(), torch.rand(MODELS, batch)
    given = _stored(small)
    loss, pixels, sums = last_two_images.two_forward(upper, last, masks, given, rows, "ieee")
    slope = last_two_images.two_backward(upper, last, pixels, scale, given, rows, gradients, "ieee")
    far: dict[str, float] = {}
    for model in range(MODELS):
        w64, b64, v64, c64 = (one[model].double().requires_grad_() for one in (w, b, v, c))
        made = conv_transpose2d(small[model].double(), v64, c64, stride=2, padding=1)
        between = made.detach().relu().to(STORED).double().requires_grad_()
        logits = conv_transpose2d(between, w64, b64, stride=2, padding=1)
        costs = binary_cross_entropy_with_logits(logits, pictures[model], reduction="none").flatten(1).sum(1)
        by_w, by_b, by_between = torch.autograd.grad(costs, (w64, b64, between), scale[model].double())
        by_between = by_between * (between > 0)
        by_v, by_c = torch.autograd.grad(made, (v64, c64), by_between)
        _worse(far, "loss", loss[model], costs)
        _worse(far, "last bias", (sums[model] * scale[model][:, None]).sum(), by_b)
        _worse(far, "slope", slope[model].movedim(-1, 1), by_between)
        _worse(far, "last weight", gradients[model, BEGIN : BEGIN + 512], _flat(by_w[None])[0])
        _worse(far, "upper bias", gradients[model, 32:64], by_c)
        _worse(far, "upper weight", gradients[model, INNER : INNER + 16 * 32 * 32], _flat(by_v[None])[0])
    return far


def columns(direction: str, batch: int, height: int, n_big: int, n_small: int) -> dict[str, float]:
    """A layer forward (bias, rectifier) and back (where an image lets it pass, with its sum)."""
    join = Join(height, height, n_big, n_small, 4, INNER, 0)
    assert shared_columns._way(direction, join) is not None
    weight, (n_in, n_out, size) = _rounded(n_small, n_big, 4, 4), (n_big, n_small, 2 * height)
    function, truth = shared_columns.down, conv2d
    if direction == "up":
        (n_in, n_out), size, function, truth = (n_small, n_big), height, shared_columns.up, conv_transpose2d
    bias, given = _rounded(n_out), _rounded(batch, n_in, size, size)
    rows, sums = _rows((0, bias), (INNER, _flat(weight)))
    out = function(join, _stored(given), rows, "ieee", activate=True)
    image = _rounded(batch, n_out, *out.shape[2:4])
    back = function(join, _stored(given), rows, "ieee", like=_stored(image), bias_gradient=sums[:, :n_out])
    far: dict[str, float] = {}
    for model in range(MODELS):
        exact = truth(given[model].double(), weight[model].double(), stride=2, padding=1)
        _worse(far, "out", out[model].movedim(-1, 1), (exact + bias[model].double()[:, None, None]).relu())
        passed = exact * (image[model] > 0)
        _worse(far, "slope", back[model].movedim(-1, 1), passed)
        _worse(far, "sum", sums[model, :n_out], passed.sum((0, 2, 3)))
    return far


def _pictures(first: Join, batch: int) -> tuple[Tensor, Tensor]:
    """Random pictures as masks and as numbers."""
    size = 2 * first.height
    stored = torch.randint(0, 256, (MODELS, batch, size * size // 8)).to(torch.uint8)
    numbers = (stored[..., None] >> torch.arange(7, -1, -1).to(torch.uint8)) & 1
    _, masks = ready(first, Frame(BITS, 1, size, size, 0, 0), stored, STORED)
    return masks, numbers.reshape(MODELS, batch, 1, size, size).double()


def _rounded(*shape: int) -> Tensor:
    """Random numbers that bf16 holds, small where there are many to be added up."""
    drawn = torch.randn(MODELS, *shape)
    return (drawn * (0.1 if shape[-2:] == (4, 4) else 1)).bfloat16().float()


def _rows(*parts: tuple[int, Tensor]) -> tuple[Tensor, Tensor]:
    """Rows of parameters with these parts, and where gradients go."""
    rows = torch.zeros(MODELS, max(place + part.shape[1] for place, part in parts), dtype=STORED)
    for place, part in parts:
        rows[:, place : place + part.shape[1]] = part
    return rows, torch.full(rows.shape, float("nan"))


def _flat(weight: Tensor) -> Tensor:
    return weight.permute(0, 3, 4, 2, 1).flatten(1)


def _stored(image: Tensor) -> Tensor:
    return image.movedim(2, -1).to(STORED).contiguous()


def _worse(far: dict[str, float], name: str, given: Tensor, exact: Tensor) -> None:
    distance = ((given.double() - exact).norm() / exact.norm()).item()
    far[name] = max(far.get(name, 0.0), distance) if distance == distance else float("inf")
