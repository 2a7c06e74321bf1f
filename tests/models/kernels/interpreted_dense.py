"""Run in a process of its own with Triton's interpreter: the kernels of dense networks beside PyTorch, as JSON."""

import contextlib
import json
import os
import sys
import tempfile

os.environ["TRITON_INTERPRET"] = "1"

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from bounds import watched
from interpreted import _far  # beside this file; it mends the interpreter's products of bf16 numbers

from unweave.data.synthetic import SynthLin, SynthNonLin
from unweave.data.world import World
from unweave.models import OBJECTIVES, Likelihood
from unweave.models.kernels import dense, small
from unweave.models.kernels.adam import adagrad_stack
from unweave.models.kernels.dense_stack import dense_kernels
from unweave.models.kernels.small import small_stack
from unweave.models.likelihoods import Bernoulli, Gaussian, LearnedGaussian, SquaredError
from unweave.models.networks import MLP, Linear, Network
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.optimisers import AdaGrad, Adam, AdamW, Optimiser, StackedUpdate
from unweave.runs.folder import RunFolder
from unweave.training.batches import draw, images, source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.fleet import Fleet, new_fleet, template_of, total_loss_of
from unweave.training.fleet.members import Members, arrange
from unweave.training.fleet.portable import portable
from unweave.training.fleet.stepper import Stepper
from unweave.training.fleet.whole_steps import WholeSteps
from unweave.training.loop import drive
from unweave.training.results import claim
from unweave.training.running import Interrupted, RunOptions

POINTS, TWO = SquaredError("identity"), (2, 2)
WHOLE: dict[str, tuple[World, str, Network, Likelihood, tuple[int, ...], int, int]] = {
    "linear": (SynthLin(), "beta_vae", Linear(), POINTS, TWO, 8, 0),
    "mixed latents": (SynthLin(), "vae", Linear(), Gaussian(0.1), (2, 3), 8, 5),
    "tanh": (SynthNonLin(), "beta_vae", MLP((12, 10), (20, 8), "tanh", "tanh"), SquaredError(), TWO, 70, 0),
    "autoencoder": (SynthNonLin(), "ae", MLP((12,), (70,)), Bernoulli(), TWO, 16, 0),
}
LAYERS: dict[str, tuple[str, Network, Likelihood]] = {
    "wide": ("beta_vae", MLP((20, 70), (12, 20)), Bernoulli()),
    "full": ("beta_vae_full", MLP((20,), (20,), "tanh", "relu"), POINTS),
    "learned noise": ("beta_tcvae", Linear(), LearnedGaussian()),
}


def members_of(
    world: World, objective: str, network: Network, likelihood: Likelihood, latents: tuple[int, ...], batch: int,
    warmup: int,
) -> Members:  # fmt: skip
    return arrange(
        [
            Experiment(
                world, OBJECTIVES[objective](), network, likelihood, Adam(1e-3), latents=n, batch_size=batch, seed=seed,
                warmup=warmup, plan=Plan("cpu", 1),
            )
            for seed, n in enumerate(latents)
        ]
    )  # fmt: skip


def whole(name: str) -> dict[str, float]:
    """Four steps by the kernel, one by one, all in one and by PyTorch: distances of everything, relative."""
    members, data = members_of(*WHOLE[name]), WHOLE[name][0].load()
    template, source = template_of(members, data.shape), source_of(members.experiments, data)
    engine = portable(template)
    stack = small_stack(template, engine.layout, members.experiments[0].optimiser, "cpu")  # type: ignore[arg-type]
    assert stack is not None
    fleets = [new_fleet(members, engine, len(data), data.shape) for _ in range(3)]
    start, slow = fleets[0].parameters.clone(), Stepper(fleets[0], source, print)
    single, together = (WholeSteps(fleet, source, stack) for fleet in fleets[1:])
    for step in range(4):
        slow(step, record=step == 3)
        single(step, record=step == 3)
        single.catch_up()
        together(step, record=step == 3)
    found = {"same in one launch": float(all(map(torch.equal, _parts(fleets[1]), _parts(fleets[2]))))}
    found["parameters"] = _far(fleets[2].parameters - start, fleets[0].parameters - start)
    for moment in ("first", "second"):
        found[moment] = _far(fleets[2].optimiser_state[moment], fleets[0].optimiser_state[moment])
    for number, (own, other) in enumerate(zip(fleets[2].groups, fleets[0].groups)):
        assert own.row is not None
        assert other.row is not None
        assert own.columns == other.columns
        found[f"row {number}"] = _far(own.row, other.row)
    return found | {"good": _far(fleets[2].good, fleets[0].good), "good at": float(fleets[2].good_at.min())}


def failing() -> dict[str, float]:
    """A model whose weights are not finite is frozen where it is, and its neighbour goes on."""
    members, data = members_of(*WHOLE["linear"]), SynthLin().load()
    template, source = template_of(members, data.shape), source_of(members.experiments, data)
    engine = portable(template)
    stack = small_stack(template, engine.layout, Adam(1e-3), "cpu")
    assert stack is not None
    fleet = new_fleet(members, engine, len(data), data.shape)
    fleet.parameters[0, 0] = float("inf")
    start, steps = fleet.parameters.clone(), WholeSteps(fleet, source, stack)
    for step in range(3):
        steps(step, record=False)
    steps.catch_up()
    return {
        "failed at": float(fleet.failed_at[0]),
        "healthy": float(fleet.failed_at[1]),
        "frozen": float(torch.equal(fleet.parameters[0], start[0])),
        "moved": (fleet.parameters[1] - start[1]).abs().max().item(),
        "blamed": float(torch.isfinite(fleet.groups[0].failed_terms[0, 0])),
    }


def resuming() -> dict[str, float]:
    """Eleven steps through the loop, in one go and stopped before the seventh: the same files, whoever looked when."""
    members = members_of(*WHOLE["linear"])
    given = [
        replace(one, steps=11, history_every=4, snapshots=(3,), plan=Plan("cpu", 1)) for one in members.experiments
    ]
    data, asked, found = SynthLin().load(), [0], {}
    with tempfile.TemporaryDirectory() as place:

        def go(name: str, how: RunOptions) -> list[RunFolder]:
            with patch.object(Experiment, "whole_steps", True):  # as on a GPU, which the interpreter stands for
                engine = FleetEngine(given, data, print)
            assert isinstance(engine.stepper, WholeSteps)
            folders = [RunFolder(Path(place) / name / str(one.seed)) for one in given]
            for folder, one in zip(folders, given):
                claim(folder, one)
            drive(engine, folders, RunFolder(Path(place) / name / "home"), how)
            return folders

        def stop() -> bool:
            asked[0] += 1
            return asked[0] == 7

        whole = go("whole", RunOptions())
        with contextlib.suppress(Interrupted):
            go("parts", RunOptions(stop=stop))
        parts = go("parts", RunOptions(watchers=(lambda report: report.mean_loss() and None,)))
        for one, other in zip(whole, parts):
            for name in sorted(name for name in one.sums() if name.endswith((".safetensors", ".parquet", ".csv"))):
                found[f"{one.path.name}/{name}"] = float(one.read(name) == other.read(name))
    return found


def layers(name: str, precision: str) -> dict[str, float]:
    """‖g − g′‖ / ‖g′‖ of every parameter's gradient; rows are poisoned."""
    objective, network, likelihood = LAYERS[name]
    world = SynthNonLin()
    members, data = members_of(world, objective, network, likelihood, TWO, 9, 0), world.load()
    template, source = template_of(members, data.shape), source_of(members.experiments, data)
    draws = {key: drawn[0] for key, drawn in draw(source, torch.arange(1)).items()}
    gradients = []
    for engine in (portable(template), dense_kernels(template, precision)):
        fleet = new_fleet(members, engine, len(data), data.shape)
        if engine.name == "kernels":
            engine.rows[(2, fleet.parameters.device)] = torch.full_like(fleet.parameters, float("nan"))
        seen, total = images(source, draws, "images"), total_loss_of(fleet, draws)
        found, _ = engine.gradients(fleet.parameters, fleet.weights, seen, draws["noise"], total)
        gradients.append(engine.layout.views(found))
    return {key: _far(gradients[1][key], gradients[0][key]) for key in gradients[0]}


def adagrad() -> dict[str, float]:
    """Two updates by the fused kernel and by PyTorch's operations, the second model frozen."""
    generator = torch.Generator().manual_seed(3)
    start, slopes = torch.randn(3, 300, generator=generator), torch.randn(2, 3, 300, generator=generator)
    good, rate = torch.tensor([True, False, True]), torch.tensor([1e-3, 1e-2, 1e-1])
    slow, fast, rounded = start.clone(), start.clone(), start.to(torch.float64)
    slow_state, squares = AdaGrad().start_stack(slow), torch.zeros_like(fast)
    for count in (1, 2):
        AdaGrad().update_stack(slow, slow_state, StackedUpdate(slopes[count - 1], rate, torch.tensor(count), good))
        adagrad_stack(fast, slopes[count - 1], squares, rounded, rate, good, 1e-10)
    return {
        "parameters": (fast - slow).abs().max().item(),
        "moved": float(torch.equal(fast[0], start[0])),
        "frozen": (fast[1] - start[1]).abs().max().item(),
        "rounded": (rounded[[0, 2]] - fast[[0, 2]]).abs().max().item(),
    }


def _parts(fleet: Fleet) -> list[torch.Tensor]:
    rows = [group.row for group in fleet.groups if group.row is not None]
    return [fleet.parameters, *fleet.optimiser_state.values(), *rows]


def products(way: str) -> dict[str, float]:
    """How far a product of numbers of many sizes is from float64's, and a plain one in fp32."""
    generator = torch.Generator().manual_seed(4)
    x, weights = torch.randn(2, 64, 300, generator=generator), torch.randn(2, 70 * 300 + 70, generator=generator)
    x *= torch.exp(4 * torch.randn(x.shape, generator=generator))
    exact = x.double() @ weights[:, :21000].view(2, 70, 300).double().mT + weights[:, None, 21000:].double()
    with patch.dict(dense.PRODUCTS, {"tf32": way}):
        found = dense.dense_forward(dense.Affine(300, 70, 0, 21000), x, weights, "tf32", activate=False, dtype=x.dtype)
    plain = x @ weights[:, :21000].view(2, 70, 300).mT + weights[:, None, 21000:]
    return {"away": _far(found, exact), "plain": _far(plain, exact)}


def refused() -> dict[str, str]:
    """What a step of small models says where it is not made."""
    try:
        whole("linear")
    except ValueError as error:
        return {"said": str(error)}
    return {"said": ""}


UPDATES: dict[str, tuple[Optimiser, str]] = {
    "adam": (Adam(1e-3), "wide"),
    "adagrad": (AdaGrad(1e-3), "wide"),
    "adamw": (AdamW(1e-3, clip=1e-3), "wide"),
    "noise": (Adam(1e-3), "learned noise"),
    "factor": (Adam(1e-3), "wide"),
}


def updates(name: str, precision: str) -> dict[str, float]:
    """Four steps by kernels and by PyTorch: distances; the second model fails in the first, and stays.

    ``rows`` of gradients are kept where updates are not made inside.
    """
    optimiser, kind = UPDATES[name]
    members, data = members_of(SynthNonLin(), *LAYERS[kind], (2, 2, 2), 9, 0), SynthNonLin().load()
    objective = FactorVAE(width=24, depth=3, learning_rate=1e-3) if name == "factor" else OBJECTIVES[LAYERS[kind][0]]()
    members = arrange([replace(one, optimiser=optimiser, objective=objective) for one in members.experiments])
    template, source = template_of(members, data.shape), source_of(members.experiments, data)
    went, good = [], [0, 2]
    for engine in (portable(template), dense_kernels(template, precision)):
        fleet = new_fleet(members, engine, len(data), data.shape)
        fleet.parameters[1, :] = float("inf")
        fleet.weights[1, :] = float("inf")
        start, steps = fleet.parameters.clone(), Stepper(fleet, source, print)
        for step in range(4):
            steps(step, record=step == 3)
        moments = {part: tensor for part, tensor in fleet.optimiser_state.items() if part != "weights"}
        stacks = {"parameters": fleet.parameters - start} | moments
        views = {part: engine.layout.views(row) for part, row in stacks.items()}
        for network in fleet.groups[0].networks.values():
            assert (network.stack is not None) == (engine.name == "kernels")
            views |= {f"discriminator's {part}": network.layout.views(row) for part, row in network.state.items()}
        went.append({f"{part} {key}": view[good] for part, parts in views.items() for key, view in parts.items()})
        assert torch.equal(fleet.parameters[1], start[1]), (name, engine.name)
    return {
        "far": max(_far(went[1][key], other) for key, other in went[0].items()),
        "rows": float(len(engine.rows)),
        "rounded": _far(fleet.weights[good], fleet.parameters[good]),
        "moved": (fleet.parameters - start)[good].abs().amax().item(),
        "failed": float(fleet.failed_at[1]),
        "healthy": float(fleet.failed_at[2]),
    }


def _set(name: str) -> str:
    """The case, after the constants of the small kernel that words before it stand for were set."""
    words = {"known": ("KNOWN", 1), "shared": ("SHARED", 1), "eight": ("WARPS", 8), "three": ("PRODUCT", "three")}
    while (word := name.partition(" ")[0]) in words:
        setattr(small, *words[word])
        name = name.partition(" ")[2]
    return name


if __name__ == "__main__":
    asked = _set(sys.argv[1])
    name, _, precision = asked.partition(" in ")
    others: dict[str, Callable[[], Mapping[str, float | str]]] = {"adagrad": adagrad, "failing": failing}
    others |= {"resuming": resuming, "refused": refused}
    others |= {f"updates {kind}": partial(updates, kind, precision or "fp32") for kind in UPDATES}
    others |= {f"products {way}": partial(products, way) for way in ("tf32x3", "three", "six")}
    with watched():
        if name in others:
            found = others[name]()
        else:
            found = whole(name) if name in WHOLE else layers(name, precision or "fp32")
    print(json.dumps(found))
