"""Initial weights as a function of the seed alone: Glorot's (the default of the published studies) or PyTorch's."""

import math
from typing import Literal

import torch
from torch import nn

from unweave import rng
from unweave.shapes import Tensor

Scheme = Literal["glorot", "pytorch"]


@torch.no_grad()
def initialise(module: nn.Module, scheme: Scheme, seed: int, first: int = 0) -> None:
    """Fill every weight and bias. Parameter number i draws with step ``first + i``, whatever the others' sizes.

    Those that a layer names in ``begins_as_made`` stay as they are: a scale of one, say.
    """
    fan_in, finished = 1, _as_made(module)
    for number, (name, parameter) in enumerate(module.named_parameters()):
        if parameter.is_meta:
            # a structure without weights: drawing on the meta device takes a second a model
            continue
        if parameter.dim() > 1:
            fan_in = parameter.shape[1] * parameter[0, 0].numel()
        if name in finished:
            continue
        limit = _limit(name, parameter, scheme, fan_in)
        parameter.copy_(_between(limit, parameter, seed, first + number) if limit else torch.zeros_like(parameter))


def _as_made(module: nn.Module) -> set[str]:
    return {
        f"{place}.{name}" if place else name
        for place, layer in module.named_modules()
        for name in getattr(layer, "begins_as_made", ())
    }


def _limit(name: str, parameter: Tensor, scheme: Scheme, fan_in: int) -> float:
    if name.endswith("log_noise") or "_offset" in name:
        return 0.0
    if scheme == "pytorch":
        return 1.0 / math.sqrt(fan_in)
    if parameter.dim() < 2:
        return 0.0
    # U(−a, a) with a = √(6 / (fan_in + fan_out))
    fan_out = parameter.shape[0] * parameter[0, 0].numel()
    return math.sqrt(6.0 / (fan_in + fan_out))


def _between(limit: float, parameter: Tensor, seed: int, step: int) -> Tensor:
    rows = parameter.shape[0]
    drawn = rng.uniform(seed, rng.Purpose.INITIALISE, step, rows, parameter.numel() // rows)
    return ((2.0 * drawn - 1.0) * limit).view(parameter.shape)
