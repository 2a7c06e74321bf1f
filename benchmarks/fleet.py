"""Eager loop, CUDA graph and fleet, interleaved: µs per model-step, 300,000-step models a day, share of the floor.

``PYTHONPATH=src python benchmarks/fleet.py`` uses whatever device there is; ``$OUT/fleet.json`` gets all numbers.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models import OBJECTIVES
from unweave.models.networks import NETWORKS
from unweave.train.batches import batches
from unweave.train.experiment import Experiment, Plan
from unweave.train.fleet import new_fleet
from unweave.train.fleet_batches import source_of
from unweave.train.fleet_engine import choose_engine, least_group
from unweave.train.fleet_members import arrange
from unweave.train.fleet_stepper import Stepper
from unweave.train.step import new_learner, update

Run = Callable[[int], int]
"""Does so many steps and returns how many model-steps those were."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--models", type=int, default=256 if torch.cuda.is_available() else 8)
    parser.add_argument("--objective", default="beta_vae")
    parser.add_argument("--network", default="conv")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=None, help="eager, graph, fleet")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    base = Experiment(
        Micro(),
        OBJECTIVES[given.objective](),
        NETWORKS[given.network](),
        steps=1_000_000,
        plan=Plan(given.device, given.threads, given.precision),
    )
    data = examples(given.channels).to(given.device)
    table = compare(base, data, given)
    print(json.dumps(table))
    if "OUT" in os.environ:
        name = f"fleet-{given.objective}-{given.network}-{given.channels}-{given.precision}.json"
        Path(os.environ["OUT"], name).write_text(json.dumps(table, indent=1))


def compare(base: Experiment, data: Data, given: Any) -> dict[str, Any]:
    """All ways in turn, several times; the median of each."""
    cuda = given.device.startswith("cuda")
    floor = floor_of(base, data, given.device)
    ways = given.ways or (["eager", "graph", "fleet"] if cuda else ["eager", "fleet"])
    makers = {"eager": eager, "graph": graphed, "fleet": lambda b, d: fleet(b, d, given.models)}
    runs: dict[str, Run] = {way: makers[way](base, data) for way in ways}
    counts = {way: _enough(run, cuda) for way, run in runs.items()}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(given.rounds):
        for way, run in runs.items():
            spent[way].append(_timed(run, counts[way], cuda))
    table: dict[str, Any] = {"device": torch.cuda.get_device_name() if cuda else "cpu", "models": given.models}
    print(f"{'way':8s} {'µs a model-step':>16s} {'models a day':>13s} {'of the floor':>13s}   spread")
    for way, times in spent.items():
        middle = sorted(times)[len(times) // 2]
        share = floor / middle if floor else None
        table[way] = {"us": middle, "all": times, "models_a_day": 86400e6 / 300_000 / middle, "share_of_floor": share}
        shown = f"{share:.1%}" if share else "–"
        numbers = f"{middle:16.1f} {table[way]['models_a_day']:13.0f} {shown:>13s}"
        print(f"{way:8s} {numbers}   {min(times):.1f}–{max(times):.1f}")
    return table | {"floor_us": floor}


def eager(base: Experiment, data: Data) -> Run:
    """The plain loop over one model."""
    learner = new_learner(base, data.shape, len(data))
    stream = enumerate(batches(base, data, 0, base.steps))

    def run(count: int) -> int:
        for _ in range(count):
            step, batch = next(stream)
            update(learner, batch, step)
        return count

    return run


def graphed(base: Experiment, data: Data) -> Run:
    """One model, its step captured as a CUDA graph; the batch is copied in."""
    learner = new_learner(base, data.shape, len(data))
    stream = batches(base, data, 0, base.steps)
    held = next(stream)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            update(learner, held, 0)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update(learner, held, 0)

    def run(count: int) -> int:
        for _ in range(count):
            batch = next(stream)
            for name, target in vars(held).items():
                if target is not None:
                    target.copy_(getattr(batch, name))
            graph.replay()
        return count if learner else 0  # keeps the learner: the graph writes into its tensors

    return run


def fleet(base: Experiment, data: Data, n: int) -> Run:
    """n seeds in lockstep, with a row of history every 50 steps."""
    members = arrange([replace(base, seed=seed) for seed in range(n)], least=least_group(base))
    stack = new_fleet(members, choose_engine(members, data, print), len(data), data.shape)
    stepper, done = Stepper(stack, source_of(members, data), print), [0]

    def run(count: int) -> int:
        for _ in range(count):
            stepper(done[0], record=done[0] % 50 == 0)
            done[0] += 1
        return count * n

    return run


def examples(channels: int, n: int = 20_000) -> Data:
    """Random pictures of 64×64, as bits (one channel) or bytes: their content does not matter for time."""
    generator = torch.Generator().manual_seed(0)
    shape = (n, 512) if channels == 1 else (n, channels, 64, 64)
    store = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return Data(store, (channels, 64, 64), "bits" if channels == 1 else "bytes")


def floor_of(base: Experiment, data: Data, device: str) -> float:
    """µs to move the bytes of a layer-fused bf16 step at this device's copy rate; 0 for a CPU, where arithmetic binds.

    An activation is written and read forward, read again and its slope written once and read twice backward: 14 bytes
    with the mask's read; a parameter's update moves seven fp32 numbers.
    """
    if not device.startswith("cuda"):
        return 0.0
    sizes: list[int] = []
    model = new_learner(base, data.shape, len(data)).model
    for module in model.modules():
        if not list(module.children()):
            module.register_forward_hook(lambda _m, _i, out: sizes.append(out.numel()))
    with torch.no_grad():
        model(
            data.examples(torch.arange(base.batch_size, device=device)),
            torch.zeros(base.batch_size, base.latents, device=device),
        )
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    source = torch.randn(1 << 29, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    rate = 2 * source.nbytes / _timed(lambda _: bool(target.copy_(source) is target), 1, True)
    return (14 * sum(sizes) + 28 * n_parameters) / rate


def _enough(run: Run, cuda: bool) -> int:
    """Steps for about a second, after a warm-up."""
    _timed(run, 3, cuda)
    begin = time.perf_counter()
    _timed(run, 3, cuda)
    return max(3, int(3.0 / max(time.perf_counter() - begin, 1e-3)))


def _timed(run: Run, count: int, cuda: bool) -> float:
    """µs per model-step."""
    if cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    done = run(count)
    if cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / done


if __name__ == "__main__":
    main()
