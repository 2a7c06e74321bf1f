"""Dense fleets and small conv fleets on a GPU: µs of a whole fleet step by either engine, in turns; or where they go.

    python benchmarks/dense.py                                  # every case, mapped and by kernels
    python benchmarks/dense.py --cases linear wide --rounds 2
    python benchmarks/dense.py --cases conv-1 --profile         # every kernel of a step: calls, µs
    python benchmarks/dense.py --cases linear tanh-epochs --agree 64    # do both engines train the same models?

    python benchmarks/dense.py --cases conv --ways before usual --sources OLD/src      # against other sources
    python benchmarks/dense.py --cases conv --ways usual changed --set first_two.FEW=0 last.run=8

Every measurement is a process of its own. A row of history every 50 steps, as usual. Of convolutions, ``kernels`` means
weight gradients in streams of their own for any number of models (`unweave.models.kernels.aside`), ``mapped`` for none,
``usual`` as it is, ``before`` the same with other sources, ``changed`` with other numbers in modules of the kernels.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

CASES: dict[str, tuple[str, list[int]]] = {
    "linear": ("linear", [1, 32, 256]),
    "linear-epochs": ("linear", [32, 256]),
    "tanh-epochs": ("tanh", [64, 256]),
    "table": ("table", [64, 256]),
    "full": ("full", [32]),
    "wide": ("wide", [64]),
    "wide-adam": ("wide", [64]),
    "digits": ("digits", [64]),
    "conv": ("conv", [1, 16, 256]),
    "conv-1": ("conv", [1]),
    "conv-16": ("conv", [16]),
    "conv-64": ("conv", [64]),
    "conv-256": ("conv", [256]),
}
WAYS = ("mapped", "kernels")
OTHERS = ("usual", "before", "changed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=(*WAYS, *OTHERS))
    parser.add_argument("--sources", help="a folder with the sources of ``before``")
    parser.add_argument("--set", nargs="+", default=[], metavar="MODULE.NAME=VALUE", help="what ``changed`` changes")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="that one measurement takes; 0 only compiles")
    parser.add_argument("--precision", default="", help="of dense models (default fp32)")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--agree", type=int, default=0, help="models trained by both engines")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work, given)
        return
    for case in given.cases:
        for _ in range(given.rounds):
            for way in given.ways:
                options = ["--profile"] if given.profile else []
                options += ["--agree", str(given.agree), "--seconds", str(given.seconds)]
                options += ["--precision", given.precision] if given.precision else []
                options += ["--set", *given.set] if way == "changed" else []
                command = [sys.executable, __file__, "--work", case, way, *options]
                environment = os.environ | {"OMP_NUM_THREADS": "1"}
                environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1] / "src")
                if way == "before":
                    environment["PYTHONPATH"] = given.sources
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                print("\n".join(f"{case:14s} {way:8s} {line}" for line in done.stdout.splitlines()), flush=True)
                if done.returncode:
                    print(f"{case:14s} {way:8s} FAILED {done.stderr[-1500:]}", flush=True)


def work(case: str, way: str, given: argparse.Namespace) -> None:
    """One case in this process."""
    kind, sizes = CASES[case]
    change(given.set)
    if given.agree:
        agree(begun(kind, case, given.agree, way, given.precision))
        return
    for n in sizes:
        begin = time.perf_counter()
        engine = begun(kind, case, n, way, given.precision)
        if given.profile:
            profile(engine)
            continue
        first = advance(engine, 0, 60)
        started = time.perf_counter() - begin
        each = timed(engine, first, 20)
        count = max(10, int(given.seconds / each))
        spans = [timed(engine, first + 20 + turn * count, count) for turn in range(3)] if given.seconds else []
        shown = ", ".join(f"{1e6 * span:.1f}" for span in spans)
        loss = sum(terms["loss"] for terms in engine.terms()) / n
        print(
            f"{n:4d} models: {shown} µs a fleet step ({type(engine.stepper).__name__}, {engine.name}); ready after"
            f" {started:.1f} s; loss {loss:.5g}; {int(engine.fleet.alive.sum())} alive",
            flush=True,
        )
        engine.close()


def change(settings: list[str]) -> None:
    """Give constants in modules of the kernels other values."""
    from importlib import import_module

    for setting in settings:
        place, _, value = setting.partition("=")
        module, _, name = place.partition(".")
        found = import_module(f"unweave.models.kernels.{module}")
        if name == "run":
            key = "last" if module == "last" else (32, 32)
            found.TUNED[key] = replace(found.TUNED[key], run=int(value))
        else:
            setattr(found, name, int(value) if value.lstrip("-").isdigit() else value)


def begun(kind: str, case: str, n: int, way: str, precision: str) -> Any:
    """A fleet of n models."""
    from unweave.data.micro import Micro
    from unweave.data.synthetic import SynthLin, SynthNonLin
    from unweave.models.kernels import aside
    from unweave.models.likelihoods import Bernoulli, Gaussian, SquaredError
    from unweave.models.networks import MLP, Conv, Linear
    from unweave.models.objectives.beta_vae import BetaVAE, BetaVAEFull
    from unweave.models.optimisers import AdaGrad, Adam
    from unweave.recipes.pace import pictures
    from unweave.training.experiment import Experiment, Plan
    from unweave.training.fleet.engine import FleetEngine

    points, tanh = SquaredError("identity"), MLP((60, 40, 20), (60, 40, 20), "tanh", "tanh")
    settings: dict[str, Any] = {
        "linear": (SynthLin(), Linear(), points, BetaVAE(1e-2), 2),
        "tanh": (SynthNonLin(), tanh, points, BetaVAE(1e-3), 2),
        "full": (SynthNonLin(), tanh, points, BetaVAEFull(1e-3), 2),
        "table": (SynthNonLin(), MLP((128, 128), (128, 128)), Gaussian(0.025), BetaVAE(4.0), 10),
        "wide": (Micro(), MLP(), Bernoulli(), BetaVAE(4.0), 5),
        "digits": (Micro(), MLP((400,), (500, 500)), Bernoulli(), BetaVAE(1.0), 6),
        "conv": (Micro(), Conv(), Bernoulli(), BetaVAE(4.0), 10),
    }
    world, network, likelihood, objective, latents = settings[kind]
    plan = Plan("cuda", 1, precision or "fp32", way if way in WAYS else "kernels")
    if kind == "conv":
        aside.MOST, plan = {"kernels": 1_000_000, "mapped": 0}.get(way, aside.MOST), Plan("cuda", 1, "bf16")
    experiments = [
        Experiment(
            world, objective, network, likelihood, AdaGrad(1e-3) if case == "wide" else Adam(1e-3), latents=latents,
            steps=1_000_000, seed=seed, order="epochs" if case.endswith("epochs") else "iid",
            holdout=0.2 if kind in ("linear", "tanh") else 0.0, plan=plan,
        ).resolve()
        for seed in range(n)
    ]  # fmt: skip
    data = (pictures(1) if kind in ("wide", "digits", "conv") else world.load()).to("cuda")
    return FleetEngine(experiments, data, lambda line: print(line, flush=True))


def advance(engine: Any, first: int, count: int) -> int:
    for step in range(first, first + count):
        record = step % 50 == 0
        engine.advance(step, record=record)
        if record:
            engine.rows()
    engine.wait()
    return first + count


def timed(engine: Any, first: int, count: int) -> float:
    """Seconds a step."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    advance(engine, first, count)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def profile(engine: Any, steps: int = 12) -> None:
    """Every kernel of a few plain steps, by the time it takes; then those of one step in their order."""
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    first = advance(engine, 0, 71)
    with profiler(activities=[ProfilerActivity.CUDA]) as seen:
        for step in range(first, first + steps):
            engine.advance(step, record=False)
        engine.stepper.catch_up()
        torch.cuda.synchronize()
    kernels = [event for event in seen.events() if str(event.device_type).endswith("CUDA")]
    kernels.sort(key=lambda event: event.time_range.start)
    calls, spent = Counter[str](), Counter[str]()
    for event in kernels:
        name = event.name.replace("void at::native::", "")[:70]
        calls[name] += 1
        spent[name] += (event.time_range.end - event.time_range.start) / steps
    whole = (max(e.time_range.end for e in kernels) - kernels[0].time_range.start) / steps
    print(f"{len(kernels) / steps:.1f} kernels a step, {sum(spent.values()):.1f} µs in them, {whole:.1f} µs in all")
    for name, span in spent.most_common(25):
        print(f"   {name:70s} {calls[name] / steps:6.2f} calls {span:9.2f} µs a step")
    last = kernels[-(len(kernels) // steps) :]
    print(", ".join(f"{e.time_range.start - last[0].time_range.start:.0f} {e.name[:24]}" for e in last))


def agree(engine: Any) -> None:
    """Losses of some models after 1,000 steps, to be compared between engines."""
    import torch

    advance(engine, 0, 1000)
    terms = engine.terms()
    told = {name: torch.tensor([one[name] for one in terms]) for name in ("reconstruction", "kl")}
    shown = {name: [round(values.mean().item(), 6), round(values.std().item(), 6)] for name, values in told.items()}
    print(json.dumps({"stepper": type(engine.stepper).__name__, "mean and deviation": shown}))


if __name__ == "__main__":
    main()
