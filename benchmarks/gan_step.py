"""A step of the weakly supervised GAN on a GPU.

    python benchmarks/gan_step.py check              # gradients beside float64, bits by the size of a fleet
    python benchmarks/gan_step.py times              # ms a step of 1, 3, 4 and 8 models

Steps are those of the published model: 64 pairs of dSprites, so that the discriminator sees 256 images.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import torch
from methods import experiment_of  # beside this file

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.data.world import Data, World
from unweave.models.kernels.copies import failure
from unweave.models.layers import fresh_of
from unweave.models.networks import Conv
from unweave.models.objectives import WSGAN, Context, new_networks
from unweave.training.batches import Drawing, batch_of_one, source_of
from unweave.training.experiment import Experiment, form_of
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.mapped import MappedFleet

OUT = Path(os.environ.get("OUT", "."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "times"])
    parser.add_argument("--models", type=int, nargs="+", default=[1, 3, 4, 8])
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"), help="cpu: to see that it runs")
    given = parser.parse_args()
    if given.what == "check":
        check(given.device)
    else:
        times(given.models, given.device)


def experiments(n: int, device: str, *, still: bool = False) -> list[Experiment]:
    """Models of the published kind; with ``still`` their weights hardly move."""
    world: World = DSprites() if device == "cuda" else Micro()
    first = experiment_of("ws_gan", device, world)
    method = WSGAN(learning_rate=1e-30, critic_rate=1e-30) if still else WSGAN()
    first = replace(first, objective=method, batch_size=64 if device == "cuda" else 4)
    if device == "cpu":
        first = replace(first, network=Conv((32, 32), (4, 4), 32))
    return [replace(first, seed=seed).resolve() for seed in range(n)]


def data_of(device: str) -> Data:
    """Examples of dSprites' size and factors, of random bits: nobody need render them."""
    if device == "cpu":
        return Micro().load()
    generator = torch.Generator(device).manual_seed(0)
    store = torch.randint(0, 256, (737_280, 512), dtype=torch.uint8, device=device, generator=generator)
    return Data(store, (1, 64, 64), "bits", space=DSprites().card().space)


def fleet(given: list[Experiment], data: Data, at_once: int) -> FleetEngine:
    WSGAN.at_once = at_once
    return FleetEngine(given, data, lambda line: print("said:", line, flush=True))


def check(device: str) -> None:
    """A step's gradients of two models beside float64, then the bits of a model in fleets of 1, 2 and 4."""
    data = data_of(device)
    still = experiments(2, device, still=True)
    wanted = exact_gradients(still[1], data)
    engine = fleet(still, data, 2)
    engine.advance(0, record=False)
    held = engine.fleet
    assert isinstance(held, MappedFleet)
    away = {}
    for name, stack in held.stacks.items():
        found = stack.layout.views(stack.state["first"])  # half of a gradient: β₁ is ½
        own = torch.cat([2.0 * found[part][1].flatten() for part in wanted[name]]).double()
        exact = torch.cat([one.flatten() for one in wanted[name].values()])
        away[name] = float((own - exact).norm() / exact.norm())
    one, two, four = (bits(n, data, device) for n in (1, 2, 4))
    same = [all(torch.equal(own[part], four[part]) for part in own) for own in (one, two)]
    told = ", ".join(f"{name} {one:.1e}" for name, one in away.items())
    print(f"from float64: {told}; same bits in 1 and 2 as in 4: {same}; copies: {failure() or 'yes'}", flush=True)


def bits(n: int, data: Data, device: str) -> dict[str, torch.Tensor]:
    """What the last model of a fleet, always the same, is after four steps, where fleets are filled up to 4."""
    usual = experiments(5, device)
    engine = fleet([*usual[: n - 1], usual[4]], data, 4)
    for step in range(4):
        engine.advance(step, record=False)
    found = {name: tensor.clone() for name, tensor in engine.weights(n - 1).items()}
    engine.close()
    return found


def exact_gradients(experiment: Experiment, data: Data) -> dict[str, dict[str, torch.Tensor]]:
    """Those of the first step in float64, by network and parameter, with PyTorch's own layers and no update."""
    method, form = experiment.objective, form_of(experiment.objective, data)
    networks = new_networks(method, experiment.architecture(form.shape, form.labels), experiment.init, experiment.seed)
    networks = {name: network.to(data.store.device).double() for name, network in networks.items()}
    source = source_of([experiment], data)
    batch = batch_of_one(source, Drawing(source)(0))
    batch = {part: one.double() if one.is_floating_point() else one for part, one in batch.items()}
    found = {}
    for phase in method.phases():
        for network in networks.values():
            network.zero_grad()
        terms, _ = phase.loss(batch, Context(0, len(data), 0, networks))
        terms[phase.minimises].backward()  # type: ignore[no-untyped-call]
        for name in phase.updates:
            own = dict(networks[name].named_parameters())
            found[name] = {part: one.grad.clone() for part, one in own.items() if one.grad is not None}
        for network in networks.values():
            for name, value in fresh_of(network).items():
                network.get_buffer(name).copy_(value)
    return found


def times(sizes: list[int], device: str, rounds: int = 3) -> None:
    """ms a step, in turns, sorted."""
    data, steps = data_of(device), 60 if device == "cuda" else 1
    engines = {n: fleet(experiments(n, device), data, n) for n in sizes}
    for engine in engines.values():
        for step in range(3):
            engine.advance(step, record=False)
    found: dict[int, list[float]] = {n: [] for n in sizes}
    for turn in range(rounds):
        for n, engine in engines.items():
            found[n].append(1e3 * timed(engine, 3 + turn * steps, steps))
    report = {n: sorted(spans) for n, spans in found.items()}
    for n, spans in report.items():
        shown, minutes = ", ".join(f"{span:.3f}" for span in spans), spans[0] * 500 / 60
        print(f"{n} models of 64 pairs: {shown} ms a step, 500,000 steps {minutes:.1f} min", flush=True)
    (OUT / "gan-times.json").write_text(json.dumps(report, indent=1))


def timed(engine: FleetEngine, first: int, steps: int) -> float:
    """Seconds a step."""
    engine.wait()
    begin = time.perf_counter()
    for step in range(first, first + steps):
        engine.advance(step, record=False)
    engine.wait()
    return (time.perf_counter() - begin) / steps


if __name__ == "__main__":
    main()
