"""Run in a process of its own with Triton's interpreter: two gradients in one kernel, their distance from float64.

Sizes are those of the tiles that are used on a card, with a batch that no program's share divides; buffers are poisoned.
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

from dataclasses import replace

import torch
from bounds import watched  # beside this file
from interpreted import last as _last  # it mends the interpreter too
from torch.nn.functional import conv2d, conv_transpose2d

from unweave.models.kernels import resident, together
from unweave.models.kernels.convolutions import Join
from unweave.models.kernels.first import first_forward, ready
from unweave.models.kernels.pixels import BITS, BYTES, Frame

MODELS, BATCH, BEGIN = 2, 5, 64
assert _last


def inner(what: str, height: int, n_big: int, n_small: int) -> dict[str, float]:
    """Both gradients of a layer and the sum of the one by its input."""
    join = Join(height, height, n_big, n_small, 4, BEGIN, 0)
    weight, big, small = _given(join)
    image, slope = (small, big) if what == "down" else (big, small)
    rows = torch.cat([torch.zeros(MODELS, BEGIN), _flat(weight)], 1).bfloat16()
    gradients = torch.full(rows.shape, float("nan"))
    summed = torch.full((MODELS, image.shape[2]), float("nan"))
    found = getattr(together, f"{what}_gradients")(
        join, _stored(slope), _stored(image), rows, gradients, "ieee", bias_gradient=summed
    )
    convolve = conv_transpose2d if what == "down" else conv2d
    far: dict[str, float] = {}
    for model in range(MODELS):
        leaves = [one[model].double().requires_grad_() for one in (image, weight)]
        result = convolve(*leaves, stride=2, padding=1)
        by_image, by_weight = torch.autograd.grad(result, leaves, slope[model].double())
        by_image = by_image * (leaves[0] > 0)
        _worse(far, "input", found[model].movedim(-1, 1), by_image)
        _worse(far, "weight", gradients[model, BEGIN:], _flat(by_weight[None])[0])
        _worse(far, "bias", summed[model], by_image.sum((0, 2, 3)))
    return far


def forward(what: str, height: int, n_big: int, n_small: int) -> dict[str, float]:
    """A layer's output where weights stay on the chip."""
    join = Join(height, height, n_big, n_small, 4, BEGIN, 0)
    weight, big, small = _given(join)
    given, n_outputs = (big, n_small) if what == "down" else (small, n_big)
    bias = torch.randn(MODELS, n_outputs).bfloat16().float()
    rows = torch.zeros(MODELS, BEGIN + weight[0].numel())
    rows[:, :n_outputs], rows[:, BEGIN:] = bias, _flat(weight)
    found = getattr(resident, f"{what}_forward")(join, _stored(given), rows.bfloat16(), "ieee")
    convolve, far = conv2d if what == "down" else conv_transpose2d, {}
    for model in range(MODELS):
        exact = convolve(*(one[model].double() for one in (given, weight, bias)), stride=2, padding=1).relu()
        _worse(far, "out", found[model].movedim(-1, 1), exact)
    return far


def first(channels: int) -> dict[str, float]:
    """The gradients of the first two convolutions."""
    size = 16
    lower, upper = Join(size, size, channels, 32, 4, BEGIN, 0), Join(size // 2, size // 2, 32, 32, 4, 4096, 32)
    packing = BITS if channels == 1 else BYTES
    shape = (MODELS, BATCH, 4 * size * size // 8) if channels == 1 else (MODELS, BATCH, channels, 2 * size, 2 * size)
    examples = torch.randint(0, 256, shape, dtype=torch.uint8)
    numbers = _numbers(examples, channels, 2 * size).double()
    weight, inner_weight = (torch.randn(MODELS, 32, n, 4, 4) * 0.1 for n in (channels, 32))
    weight, inner_weight, bias = (one.bfloat16().float() for one in (weight, inner_weight, torch.randn(MODELS, 32)))
    slope = torch.randn(MODELS, BATCH, 32, size // 2, size // 2).bfloat16().float()
    rows = torch.zeros(MODELS, 4096 + 16 * 32 * 32)
    rows[:, :32], rows[:, BEGIN : BEGIN + 512 * channels], rows[:, 4096:] = bias, _flat(weight), _flat(inner_weight)
    gradients, rows = torch.full(rows.shape, float("nan")), rows.bfloat16()
    frame = Frame(packing, channels, 2 * size, 2 * size, 0, 0)
    seen = ready(lower, frame, examples, torch.bfloat16)
    image = first_forward(lower, *seen, rows, torch.bfloat16, "ieee")
    together.first_gradients(lower, upper, *seen, _stored(slope), image, rows, gradients, "ieee")
    far: dict[str, float] = {}
    for model in range(MODELS):
        w, b, v = (one[model].double().requires_grad_() for one in (weight, bias, inner_weight))
        between = image[model].movedim(-1, 1).double().requires_grad_()
        by_between, by_inner = torch.autograd.grad(
            conv2d(between, v, stride=2, padding=1), (between, v), slope[model].double()
        )
        by_between = by_between * (between > 0)
        by_weight, by_bias = torch.autograd.grad(
            conv2d(numbers[model], w, b, stride=2, padding=1), (w, b), by_between.detach()
        )
        _worse(far, "first weight", gradients[model, BEGIN : BEGIN + 512 * channels], _flat(by_weight[None])[0])
        _worse(far, "first bias", gradients[model, :32], by_bias)
        _worse(far, "second weight", gradients[model, 4096:], _flat(by_inner[None])[0])
    return far


def _given(join: Join) -> tuple[torch.Tensor, ...]:
    shapes = (
        (MODELS, join.n_small, join.n_big, 4, 4), (MODELS, BATCH, join.n_big, 2 * join.height, 2 * join.width),
        (MODELS, BATCH, join.n_small, join.height, join.width),
    )  # fmt: skip
    return tuple(torch.randn(shape).bfloat16().float() for shape in shapes)


def _numbers(examples: torch.Tensor, channels: int, size: int) -> torch.Tensor:
    if channels > 1:
        return (examples / 255.0).bfloat16()
    bits = (examples[..., None] >> torch.arange(7, -1, -1, dtype=torch.uint8)) & 1
    return bits.reshape(*examples.shape[:2], 1, size, size)


def _flat(weight: torch.Tensor) -> torch.Tensor:
    return weight.permute(0, 3, 4, 2, 1).flatten(1)


def _stored(image: torch.Tensor) -> torch.Tensor:
    return image.movedim(2, -1).bfloat16().contiguous()


def _worse(far: dict[str, float], name: str, given: torch.Tensor, exact: torch.Tensor) -> None:
    far[name] = max(far.get(name, 0.0), ((given.double() - exact).norm() / exact.norm()).item())


def main() -> None:
    torch.manual_seed(5)
    for table in (together.TUNED, resident.TUNED):
        for key, tiles in table.items():
            table[key] = replace(tiles, run=4)
    cases = {
        "down 16": lambda: inner("down", 16, 32, 32), "up 8": lambda: inner("up", 8, 32, 64),
        "up 4": lambda: inner("up", 4, 64, 64), "down 16 forward": lambda: forward("down", 16, 32, 32),
        "up 16 forward": lambda: forward("up", 16, 32, 32), "up 8 forward": lambda: forward("up", 8, 32, 64), "first": lambda: first(1), "first in colour": lambda: first(3),
    }  # fmt: skip
    with watched() as launches:
        found = {name: cases[name]() for name in sys.argv[1].split(",")}
    print(json.dumps({"launches": sorted(launches), "far": found}))


if __name__ == "__main__":
    main()
