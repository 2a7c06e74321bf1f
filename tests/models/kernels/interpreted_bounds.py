"""Run in a process of its own with Triton's interpreter: kernels that no other case reaches, inside their tensors."""

# ruff: noqa: N803
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
import triton
import triton.language as tl
from bounds import watched  # beside this file
from interpreted_dense import members_of  # it mends the interpreter too

from unweave import rng, rng_kernels
from unweave.data.altered import UniformNoise
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthNonLin
from unweave.data.world import Data
from unweave.models import OBJECTIVES
from unweave.models.kernels import correlation, mapped_layers
from unweave.models.kernels.conv_stack import conv_stack
from unweave.models.kernels.dense_stack import dense_kernels
from unweave.models.kernels.mapped_layers import Mapped, MappedTrunk
from unweave.models.likelihoods import Bernoulli
from unweave.models.networks import MLP, Conv
from unweave.models.networks.conv import ConvTrunk
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet import choice
from unweave.training.fleet.fleet import template_of
from unweave.training.fleet.members import arrange


@triton.jit
def _copy(given, out, n_read, n_written, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(given + place, mask=place < n_read, other=0.0), mask=place < n_written)


@triton.jit
def _hinted(given, out, SIZE: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK) // 4 * 6 + tl.arange(0, BLOCK) % 4, SIZE), SIZE)
    tl.store(out + place, tl.load(given + place))


def planted() -> dict[str, str]:
    """What is said of kernels that go one value too far, or tell the compiler what is not so; nothing of good ones."""
    room, short = torch.zeros(64), torch.zeros(64)[:31]
    cases: dict[str, Any] = {
        "inside": lambda: _copy[(1,)](room, short, 64, 31, 64),
        "reads": lambda: _copy[(1,)](short, room, 32, 64, 64),
        "writes": lambda: _copy[(1,)](room, short, 64, 32, 64),
        "expanded": lambda: _copy[(1,)](torch.zeros(1).expand(64), room, 64, 64, 64),
        "true hint": lambda: _hinted[(1,)](room, torch.zeros(64), 2, 16),
        "untrue hint": lambda: _hinted[(1,)](room, torch.zeros(64), 4, 16),
    }
    return {name: _said(case) for name, case in cases.items()}


def _said(launch: Any) -> str:
    try:
        with watched():
            launch()
    except Exception as error:
        return str(error)
    return ""


def rehearsal(*, altered: bool = True) -> list[str]:
    """The step on nothing that compiles the kernels of a fleet: its losses are plainly added up."""
    data = Data(torch.zeros(30, 8, dtype=torch.uint8), (1, 8, 8), "bits")
    data = replace(data, alteration=UniformNoise(0.1, 0)) if altered else data
    first = Experiment(
        Micro(), OBJECTIVES["beta_vae"](), Conv((16, 16), (4, 4), 16), batch_size=2, latents=3, plan=Plan("cpu", 1)
    )
    return _rehearsed(conv_stack(template_of(arrange([first]), data.shape), "fp32"), first, data)


def rehearsal_of_dense() -> list[str]:
    world = SynthNonLin()
    members, data = members_of(world, "beta_vae", MLP((20,), (20,)), Bernoulli(), (2,), 9, 0), world.load()
    return _rehearsed(dense_kernels(template_of(members, data.shape), "fp32"), members.experiments[0], data)


def _rehearsed(backend: Any, experiment: Experiment, data: Data) -> list[str]:
    with watched() as launches, patch.object(torch.cuda, "synchronize"):
        for n_models in (2, 1):
            choice._try(backend, experiment, n_models, experiment.latents, data)
    return list(launches)


def mapped() -> list[str]:
    """Layers under ``vmap``, forward and backward, with weights of their own or shared by all models."""
    torch.manual_seed(0)
    trunk = ConvTrunk((3, 8, 8), (16, 32), (4, 2), 16)
    on_kernels = patch.object(mapped_layers, "_by_kernels", lambda given, *channels: min(channels) >= 16)
    with watched() as launches, on_kernels, patch.object(correlation, "SPAN", 64):
        for big, small, kernel, way in ((16, 32, 4, "down"), (32, 16, 2, "up"), (16, 16, 4, "up")):
            size, n_inputs = ((6, 10), big) if way == "down" else ((3, 5), small)
            x, weight = torch.randn(2, 3, n_inputs, *size), torch.randn(2, small, big, kernel, kernel)
            bias = torch.zeros(2, big if way == "up" else small)
            given = [one.requires_grad_() for one in (x, weight, bias)]
            found = torch.vmap(Mapped("tf32x3", way))(*given)  # type: ignore[arg-type]
            torch.autograd.grad(found.sum(), given)
            torch.vmap(Mapped("tf32x3", way), (0, None, 0))(x, weight[0], bias)  # type: ignore[arg-type]
        parameters = {name: torch.stack([one, one]) for name, one in trunk.convolutions.named_parameters()}
        layers = MappedTrunk(trunk.convolutions, "tf32x3", "fp32")
        for pictures, dim in ((torch.rand(2, 3, 3, 8, 8), 0), (torch.rand(3, 3, 8, 8), None)):
            found = torch.vmap(layers, (dim, 0))(pictures, {n: p.requires_grad_() for n, p in parameters.items()})
            torch.autograd.grad(found.sum(), list(parameters.values()))
    return list(launches)


def draws() -> list[str]:
    """Words and shuffled places of seeds and steps that are expanded, as those of one model are."""
    seed, step = torch.tensor([7]), torch.arange(3)[:, None]
    with watched() as launches, patch.object(rng, "_kernels", lambda _: rng_kernels):
        rng.words(seed.expand(3, 1), rng.Purpose.NOISE, step, 5, 6)
        count = (step[..., None] * 5 + torch.arange(5)).expand(-1, 1, -1)
        rng.shuffled(count % 7, 7, seed[..., None], 257, count // 7)
        rng.shuffled(torch.arange(300), 300, 7, 257, torch.tensor(3).expand(300))
    return list(launches)


if __name__ == "__main__":
    cases: dict[str, Any] = {
        "planted": planted,
        "altered": rehearsal,
        "stored": lambda: rehearsal(altered=False),
        "dense": rehearsal_of_dense,
        "mapped": mapped,
        "draws": draws,
    }
    print(json.dumps({name: cases[name]() for name in sys.argv[1].split(",")}))
