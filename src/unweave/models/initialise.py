"""Initial weights as a function of the seed alone: Glorot's (the default of the published studies) or PyTorch's."""

import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import nn

from unweave import rng
from unweave.shapes import Float, Int, Tensor

Scheme = Literal["glorot", "pytorch"]

AT_ONCE = 1 << 22
"""Numbers that are drawn together."""


@torch.no_grad()
def initialise(module: nn.Module, scheme: Scheme, seed: int, first: int = 0) -> None:
    """Fill every weight and bias. Parameter number i draws with step ``first + i``, whatever the others' sizes.

    Those that a layer names in ``begins_as_made`` stay as they are: a scale of one, say.
    """
    for number, _, parameter, limit in _limits(module, scheme):
        if parameter.is_meta:
            # a structure without weights: drawing on the meta device takes a second a model
            continue
        drawn = _between(limit, parameter.shape, seed, first + number) if limit else torch.zeros_like(parameter)
        parameter.copy_(drawn)


def initial_values(
    module: nn.Module, scheme: Scheme, seeds: Int[Tensor, " model"]
) -> dict[str, Float[Tensor, "model ..."]] | None:
    """What :func:`initialise` fills in for each of several seeds, drawn together; the module may lie on no device.

    None where a layer begins as it was made.
    """
    if _as_made(module):
        return None
    found = {}
    for number, name, parameter, limit in _limits(module, scheme):
        found[name] = torch.zeros(len(seeds), *parameter.shape, device=seeds.device)
        portion = max(1, AT_ONCE // max(1, parameter.numel()))
        for some, own in zip(found[name].split(portion), seeds.split(portion)):
            if limit:
                some.copy_(_between(limit, parameter.shape, own, number))
    return found


def _limits(module: nn.Module, scheme: Scheme) -> Iterator[tuple[int, str, nn.Parameter, float]]:
    """Number, name and limit of all parameters that are filled; the limit of zeros is 0."""
    fan_in, finished = 1, _as_made(module)
    for number, (name, parameter) in enumerate(module.named_parameters()):
        if parameter.dim() > 1:
            fan_in = parameter.shape[1] * math.prod(parameter.shape[2:])
        if name not in finished:
            yield number, name, parameter, _limit(name, parameter, scheme, fan_in)


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
    fan_out = parameter.shape[0] * math.prod(parameter.shape[2:])
    return math.sqrt(6.0 / (fan_in + fan_out))


def _between(limit: float, shape: torch.Size, seed: int | Int[Tensor, " model"], step: int) -> Tensor:
    """One number of each seed for every place of a parameter."""
    drawn = rng.uniform(seed, rng.Purpose.INITIALISE, step, shape[0], shape.numel() // shape[0])
    return ((2.0 * drawn - 1.0) * limit).view(*drawn.shape[:-2], *shape)
