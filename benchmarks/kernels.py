"""Check the fleet's GPU kernels against float64 and time them, in one call: ``PYTHONPATH=src python benchmarks/kernels.py``.

Prints the relative error of every parameter's gradient for each precision, whether a model's bits depend on its
partners, and how long each kernel takes per model. Full numbers go to ``$OUT/kernels.json`` where OUT is set.
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
from unweave.models.kernels.conv_stack import conv_stack
from unweave.models.networks import NETWORKS
from unweave.rng import Purpose
from unweave.train.experiment import Experiment, Plan
from unweave.train.fleet import Fleet, advance, judge_with, new_fleet, template_of
from unweave.train.fleet_batches import Source, draw, images, source_of, stored
from unweave.train.fleet_engine import LEAST_ON_GPU
from unweave.train.fleet_members import arrange
from unweave.train.fleet_portable import portable
from unweave.train.fleet_stepper import Stepper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--skip", nargs="*", default=[], help="errors, bits, profile, steps")
    chosen = parser.parse_args()
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    parts: dict[str, Callable[[], Any]] = {
        "errors": errors,
        "bits": bits,
        "profile": lambda: profile(chosen.models[-1]),
        "steps": lambda: steps(chosen.models),
    }
    for name, part in parts.items():
        if name not in chosen.skip:
            begin = time.monotonic()
            report[name] = part()
            print(f"[{name}: {time.monotonic() - begin:.1f} s]", flush=True)
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "kernels.json").write_text(json.dumps(report, indent=1))


def experiments(n: int, *, objective: str = "beta_vae", network: str = "conv", steps: int = 1000) -> list[Experiment]:
    """n seeds of the standard model."""
    return [
        Experiment(Micro(), OBJECTIVES[objective](), NETWORKS[network](), seed=seed, steps=steps, plan=Plan("cuda", 1))
        for seed in range(n)
    ]


def examples(channels: int = 1, n: int = 20_000) -> Data:
    """Random pictures of 64×64, as bits (one channel) or bytes: their content does not matter for time."""
    generator = torch.Generator().manual_seed(0)
    shape = (n, 512) if channels == 1 else (n, channels, 64, 64)
    store = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return Data(store.cuda(), (channels, 64, 64), "bits" if channels == 1 else "bytes")


def fleet_of(given: list[Experiment], data: Data, precision: str) -> tuple[Fleet, Source]:
    """A fleet on the kernels, before its first step."""
    members = arrange(given, least=LEAST_ON_GPU)
    engine = conv_stack(template_of(members, data.shape), precision)
    return new_fleet(members, engine, len(data), data.shape), source_of(members, data)


def errors() -> dict[str, float]:
    """‖g − g64‖ / ‖g64‖ of the worst parameter, per network, channels and precision."""
    found = {}
    for network, channels in (("conv", 1), ("conv", 3), ("conv_2x2", 1)):
        data = examples(channels)
        given = [replace(e, init="pytorch") for e in experiments(2, network=network)]
        members = arrange(given)
        template = template_of(members, data.shape)
        source = source_of(members, data)
        draws = {name: drawn[0] for name, drawn in draw(source, torch.arange(1, device="cuda")).items()}
        reference = portable(template)
        fleet = new_fleet(members, reference, len(data), data.shape)
        pictures = images(source, draws["places"], draws["steps"], Purpose.NUISANCE)
        judge = judge_with(fleet, draws["steps"])
        exact, _ = reference.gradients(fleet.parameters.double(), pictures.double(), draws["noise"].double(), judge)
        truth = reference.layout.views(exact)
        for precision in ("bf16", "tf32", "fp32"):
            engine = conv_stack(template, precision)
            stack = engine.layout.rows(reference.layout.views(fleet.parameters))
            engine.rows[(2, stack.device)] = torch.full_like(stack, float("nan"))  # poison: all must be written
            rows, _ = engine.gradients(stack, stored(source, draws["places"]), draws["noise"], judge)
            worst = {n: _distance(g, truth[n]) for n, g in engine.layout.views(rows).items()}
            name = max(worst, key=lambda n: worst[n] if worst[n] == worst[n] else float("inf"))
            found[f"{network} {channels} {precision}"] = worst[name]
            print(f"{network} {channels} channels {precision}: worst {worst[name]:.2e} in {name}", flush=True)
            if worst[name] != worst[name] or worst[name] > 0.05:
                print({n: f"{e:.1e}" for n, e in worst.items()})
    return found


def bits() -> dict[str, bool]:
    """Whether seed 0 comes out the same, bit for bit, in fleets of several sizes, after 5 steps."""
    found = {}
    data = examples()
    for objective in ("beta_vae", "beta_tcvae", "dip_vae_i", "factor_vae", "beta_vae_full"):
        results = {}
        for n in (1, 2, 7, 64):
            fleet, source = fleet_of(experiments(n, objective=objective)[::-1], data, "bf16")
            draws = draw(source, torch.arange(5, device="cuda"))
            for place in range(5):
                with torch.device("cuda"):
                    advance(fleet, source, {name: d[place] for name, d in draws.items()}, record=True)
            mine = fleet.members.given.index(n - 1)
            row = fleet.groups[0].row
            assert row is not None
            results[n] = (fleet.parameters[mine].clone(), row[mine].clone())
        for part, place in (("weights", 0), ("history", 1)):
            same = all(torch.equal(result[place], results[64][place]) for result in results.values())
            found[f"{objective} {part}"] = same
        print(f"{objective}: same bits in fleets of 1, 2, 7, 64:", found[f"{objective} weights"], found[f"{objective} history"])
    return found


def profile(n: int) -> dict[str, float]:
    """µs per model and step of every kernel."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    fleet, source = fleet_of(experiments(n), examples(), "bf16")
    stepper = Stepper(fleet, source, print, graph=False)
    for step in range(3):
        stepper(step, record=False)
    torch.cuda.synchronize()
    with profiler(activities=[ProfilerActivity.CUDA]) as seen:
        for step in range(3, 6):
            stepper(step, record=False)
        torch.cuda.synchronize()
    spent = {}
    for event in seen.key_averages():
        spent[event.key] = (event.device_time_total / (3 * n), event.count // 3)
    print(f"µs per model and step of {sum(t for t, _ in spent.values()):.1f} in all, {n} models")
    for name, (time_each, count) in sorted(spent.items(), key=lambda item: -item[1][0])[:30]:
        print(f"{time_each:8.3f}  ×{count:<3d} {name[:110]}")
    calls = [(e.name, e.device_time / n) for e in seen.events() if e.name.startswith("_")]
    print("calls of one step:", [(name, round(t, 2)) for name, t in calls[: len(calls) // 3]])
    return {name: t for name, (t, _) in spent.items()}


def steps(sizes: list[int]) -> dict[str, float]:
    """µs per model and step of the whole step as a CUDA graph, draws included."""
    found = {}
    cases = [("beta_vae", 1, n, "bf16") for n in sizes]
    last = sizes[-1]
    cases += [("beta_vae", 3, last, "bf16"), ("beta_vae", 1, last, "tf32"), ("factor_vae", 1, min(last, 128), "bf16")]
    for objective, channels, n, precision in cases:
        fleet, source = fleet_of(experiments(n, objective=objective), examples(channels), precision)
        stepper = Stepper(fleet, source, print)
        each = time_steps(stepper, n)
        found[f"{objective} {channels} {n} {precision}"] = each
        memory = torch.cuda.max_memory_allocated() / 2**30
        print(f"{objective}, {channels} channels, {n} models, {precision}: {each:.1f} µs a model-step = "
              f"{86400e6 / (300_000 * each):.0f} models a day; {memory:.1f} GiB", flush=True)  # fmt: skip
        del fleet, source, stepper
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return found


def time_steps(stepper: Stepper, n: int, count: int = 64) -> float:
    """The median of three rounds, in µs per model and step, with a history row every 50 steps."""
    for step in range(3):
        stepper(step, record=step == 0)
    torch.cuda.synchronize()
    rounds = []
    for turn in range(3):
        begin = time.perf_counter()
        for step in range(turn * count, (turn + 1) * count):
            stepper(step, record=step % 50 == 0)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - begin) / (count * n) * 1e6)
    return sorted(rounds)[1]


def _distance(given: torch.Tensor, truth: torch.Tensor) -> float:
    return ((given.double() - truth).norm() / truth.norm()).item()


if __name__ == "__main__":
    main()
