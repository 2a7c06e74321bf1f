"""Run in a process of its own with Triton's interpreter: kernels with a card's tiles, their distance from float64.

Buffers are poisoned first.
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

from dataclasses import replace

import torch
from bounds import watched  # beside this file
from interpreted import CASES  # it mends the interpreter too
from torch.nn.functional import binary_cross_entropy_with_logits, conv2d, conv_transpose2d

from unweave.models.kernels import first_two, resident
from unweave.models.kernels.convolutions import Join
from unweave.models.kernels.first import first_forward, ready
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.pixels import BITS, BYTES, MASKS, Frame
from unweave.models.kernels.resident import up_forward

assert CASES
MODELS, BATCH, BEGIN = 2, 5, 64
"""No program's share divides the batch."""


def up(height: int, n_big: int, n_small: int) -> dict[str, float]:
    """A transposed convolution's output where weights stay on the chip."""
    join = Join(height, height, n_big, n_small, 4, BEGIN, 0)
    weight, bias = torch.randn(MODELS, n_small, n_big, 4, 4).bfloat16(), torch.randn(MODELS, n_big).bfloat16()
    small = torch.randn(MODELS, BATCH, n_small, height, height).bfloat16()
    rows = torch.zeros(MODELS, BEGIN + weight[0].numel(), dtype=torch.bfloat16)
    rows[:, :n_big], rows[:, BEGIN:] = bias, _flat(weight)
    found = up_forward(join, _stored(small), rows, "ieee")
    far: dict[str, float] = {}
    for model in range(MODELS):
        exact = conv_transpose2d(*(one[model].double() for one in (small, weight, bias)), stride=2, padding=1).relu()
        _worse(far, "out", found[model].movedim(-1, 1), exact)
    return far


def first(channels: int, size: int = 16) -> dict[str, float]:
    """The gradients of the first two convolutions."""
    lower, upper = Join(size, size, channels, 32, 4, BEGIN, 0), Join(size // 2, size // 2, 32, 32, 4, 4096, 32)
    frame, examples, numbers = _examples(channels, 2 * size)
    weight, inner_weight = (torch.randn(MODELS, 32, n, 4, 4) * 0.1 for n in (channels, 32))
    weight, inner_weight, bias = (one.bfloat16().float() for one in (weight, inner_weight, torch.randn(MODELS, 32)))
    slope = torch.randn(MODELS, BATCH, 32, size // 2, size // 2).bfloat16().float()
    rows = torch.zeros(MODELS, 4096 + 16 * 32 * 32)
    rows[:, :32], rows[:, BEGIN : BEGIN + 512 * channels], rows[:, 4096:] = bias, _flat(weight), _flat(inner_weight)
    gradients, rows = torch.full(rows.shape, float("nan")), rows.bfloat16()
    seen = ready(lower, frame, examples, torch.bfloat16)
    image = first_forward(lower, *seen, rows, torch.bfloat16, "ieee")
    first_two_backward(lower, upper, *seen, _stored(slope), image, rows, gradients, "ieee")
    far: dict[str, float] = {}
    for model in range(MODELS):
        w, b, v = (one[model].double().requires_grad_() for one in (weight, bias, inner_weight))
        between = image[model].movedim(-1, 1).double().requires_grad_()
        by_between, by_inner = torch.autograd.grad(
            conv2d(between, v, stride=2, padding=1), (between, v), slope[model].double()
        )
        by_between = by_between * (between > 0)
        by_weight, by_bias = torch.autograd.grad(
            conv2d(numbers[model].double(), w, b, stride=2, padding=1), (w, b), by_between.detach()
        )
        _worse(far, "first weight", gradients[model, BEGIN : BEGIN + 512 * channels], _flat(by_weight[None])[0])
        _worse(far, "first bias", gradients[model, :32], by_bias)
        _worse(far, "second weight", gradients[model, 4096:], _flat(by_inner[None])[0])
    return far


def last(channels: int, size: int = 16) -> dict[str, float]:
    """The last transposed convolution: loss, slopes, gradients."""
    join, (frame, examples, numbers) = Join(size, size, channels, 32, 4, BEGIN, 0), _examples(channels, 2 * size)
    weight, bias = (torch.randn(MODELS, 32, channels, 4, 4) * 0.1).bfloat16(), torch.randn(MODELS, channels).bfloat16()
    small = torch.randn(MODELS, BATCH, 32, size, size).relu().bfloat16()
    rows = torch.zeros(MODELS, BEGIN + 512 * channels, dtype=torch.bfloat16)
    rows[:, :channels], rows[:, BEGIN:] = bias, _flat(weight)
    gradients, summed = torch.full(rows.shape, float("nan")), torch.full((MODELS, 32), float("nan"))
    scale, seen = torch.rand(MODELS, BATCH), ready(join, frame, examples, torch.bfloat16)
    shown = seen if seen[0].packing == MASKS else (frame, examples)
    loss, pixels, _ = last_forward(join, *shown, _stored(small), rows, "ieee")
    slope = last_backward(
        join, channels, pixels, scale, _stored(small), rows, gradients, "ieee", bias_gradient=summed
    )  # fmt: skip
    far: dict[str, float] = {}
    for model in range(MODELS):
        w, c, d = (one[model].double().requires_grad_() for one in (weight, bias, small))
        logits = conv_transpose2d(d, w, c, stride=2, padding=1)
        costs = binary_cross_entropy_with_logits(logits, numbers[model].double(), reduction="none").flatten(1).sum(1)
        by_weight, by_small = torch.autograd.grad(costs, (w, d), scale[model].double())
        by_small = by_small * (d > 0)
        _worse(far, "loss", loss[model], costs)
        _worse(far, "weight", gradients[model, BEGIN:], _flat(by_weight[None])[0])
        _worse(far, "input", slope[model].movedim(-1, 1), by_small)
        _worse(far, "bias", summed[model], by_small.sum((0, 2, 3)))
    return far


def _examples(channels: int, size: int) -> tuple[Frame, torch.Tensor, torch.Tensor]:
    """Random pictures as stored and as numbers."""
    shape = (MODELS, BATCH, size * size // 8) if channels == 1 else (MODELS, BATCH, channels, size, size)
    examples = torch.randint(0, 256, shape, dtype=torch.uint8)
    return Frame(BITS if channels == 1 else BYTES, channels, size, size, 0, 0), examples, _numbers(examples, size)


def _numbers(examples: torch.Tensor, size: int) -> torch.Tensor:
    if examples.dim() == 5:
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
    for table in (first_two.TUNED, resident.TUNED):
        for key, tiles in table.items():
            table[key] = replace(tiles, run=4)
    cases = {
        "up": lambda: up(16, 32, 32), "up, images in one tile": lambda: up(4, 32, 32), "first": lambda: first(1),
        "first in colour": lambda: first(3), "last": lambda: last(1), "last in colour": lambda: last(3),
    }  # fmt: skip
    with watched() as launches:
        found = cases[sys.argv[1]]()
    print(json.dumps({"launches": sorted(launches), "far": found}))


if __name__ == "__main__":
    main()
