"""Dense fleets and small conv fleets on a GPU: µs of a whole fleet step, before and after in turns; or where they go.

    python benchmarks/dense.py                                  # every case, these sources
    python benchmarks/dense.py --cases linear wide --before OLD/src --rounds 2
    python benchmarks/dense.py --cases conv-1 --profile         # every kernel of a step: calls, µs
    python benchmarks/dense.py --cases linear --agree 64        # do both engines train the same models?

Every measurement is a process of its own. A row of history every 50 steps, as usual.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
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
    "conv-1": ("conv", [1]),
    "conv-16": ("conv", [16]),
    "conv-64": ("conv", [64]),
    "conv-256": ("conv", [256]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--before", type=Path, help="a src folder to measure too, in turns")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="that one measurement takes")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--agree", type=int, default=0, help="models trained by both engines")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given)
        return
    here = Path(__file__).resolve().parents[1] / "src"
    for case in given.cases:
        for _ in range(given.rounds):
            for name, sources in (("before", given.before), ("now", here)):
                if sources is not None:
                    environment = os.environ | {"PYTHONPATH": str(sources.resolve()), "OMP_NUM_THREADS": "1"}
                    options = ["--profile"] if given.profile else []
                    options += ["--agree", str(given.agree), "--seconds", str(given.seconds)]
                    command = [sys.executable, __file__, "--work", case, *options]
                    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                    print("\n".join(f"{case:14s} {name:6s} {line}" for line in done.stdout.splitlines()), flush=True)
                    if done.returncode:
                        print(f"{case:14s} {name:6s} FAILED {done.stderr[-1500:]}", flush=True)


def work(case: str, given: argparse.Namespace) -> None:
    """One case in this process."""
    kind, sizes = CASES[case]
    if given.agree:
        agree(kind, case, given.agree)
        return
    for n in sizes:
        begin = time.perf_counter()
        engine = begun(kind, case, n)
        if given.profile:
            profile(engine)
            continue
        first = advance(engine, 0, 120)
        started = time.perf_counter() - begin
        count = max(100, int(given.seconds / max(timed(engine, first, 60), 1e-6)) // 50 * 50)
        spans = [timed(engine, first + 60 + turn * count, count) for turn in range(3)]
        shown = ", ".join(f"{1e6 * span:.1f}" for span in spans)
        print(f"{n:4d} models: {shown} µs a fleet step; ready after {started:.1f} s", flush=True)


def begun(kind: str, case: str, n: int, precision: str = "") -> Any:
    """A fleet of n models."""
    from unweave.data.micro import Micro
    from unweave.data.synthetic import SynthLin, SynthNonLin
    from unweave.models.likelihoods import Bernoulli, Gaussian, SquaredError
    from unweave.models.networks import MLP, Conv, Linear
    from unweave.models.objectives.beta_vae import BetaVAE, BetaVAEFull
    from unweave.models.optimisers import AdaGrad, Adam
    from unweave.recipes.pace import pictures
    from unweave.training.experiment import Experiment, Plan
    from unweave.training.fleet.engine import FleetEngine

    points, tanh = SquaredError("identity"), MLP((60, 40, 20), (60, 40, 20), "tanh", "tanh")
    optimiser = AdaGrad(1e-2) if case == "wide" else Adam(1e-3)
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
    order = "epochs" if case.endswith("epochs") else "iid"
    chosen = precision or ("bf16" if kind == "conv" else "fp32")
    experiments = [
        Experiment(
            world, objective, network, likelihood, optimiser, latents=latents, steps=1_000_000, seed=seed, order=order,
            holdout=0.2 if kind in ("linear", "tanh") else 0.0, plan=Plan("cuda", 1, chosen),
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


def profile(engine: Any) -> None:
    """Every kernel of 48 plain steps, by the time it takes."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    first = advance(engine, 0, 131)
    with profiler(activities=[ProfilerActivity.CUDA]) as seen:
        for step in range(first, first + 48):
            engine.advance(step, record=False)
        engine.wait()
    kernels = [event for event in seen.events() if event.device_type.name == "CUDA"]
    calls, spent = Counter[str](), Counter[str]()
    for event in kernels:
        name = event.name.replace("void at::native::", "").split("<")[0][:60]
        calls[name] += 1
        spent[name] += event.device_time_total / 48
    whole = (max(e.time_range.end for e in kernels) - min(e.time_range.start for e in kernels)) / 48
    print(f"{len(kernels) / 48:.1f} kernels a step, {sum(spent.values()):.1f} µs in them, {whole:.1f} µs in all")
    for name, span in spent.most_common(22):
        print(f"   {name:60s} {calls[name] / 48:6.2f} calls {span:9.2f} µs a step")


def agree(kind: str, case: str, n: int) -> None:
    """Losses of the same models after 3,000 steps, to be compared between sources."""
    import torch

    engine = begun(kind, case, n)
    advance(engine, 0, 3000)
    terms = engine.terms()
    told = {name: torch.tensor([one[name] for one in terms]) for name in ("reconstruction", "kl")}
    shown = {name: [round(values.mean().item(), 6), round(values.std().item(), 6)] for name, values in told.items()}
    print(json.dumps({"engine": engine.name, "mean and deviation after 3,000 steps": shown}))


if __name__ == "__main__":
    main()
