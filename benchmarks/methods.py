"""What a step of every method costs: beside a plain PyTorch loop on the CPU, and beside a β-VAE's in a fleet on a GPU.

    python benchmarks/methods.py                                  # CPU: ours and the plain loop, interleaved
    python benchmarks/methods.py --device cuda --models 64        # GPU: µs a model-step, and the ratio to β-VAE

The plain loop calls the same networks and the same loss with torch.optim, `backward()` and random numbers of PyTorch's
own, and keeps the loss of every step; ours keeps every term and five statistics of every latent. Rounds are
interleaved in one process: the ratio of medians is what holds on a shared machine.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.data.world import Data, World
from unweave.models.objectives import OBJECTIVES, BetaVAE, Context, FactorVAE, Method, new_networks
from unweave.training.alone import Alone
from unweave.training.batches import Drawing, batch_of_one, source_of
from unweave.training.experiment import Experiment, Plan, form_of
from unweave.training.fleet.engine import FleetEngine
from unweave.training.history import Recording

WORLDS: dict[str, World] = {"micro": Micro(), "dsprites": DSprites()}
LEFT_OUT = ("perturbation",)
"""Begins with runs."""

AS_MANY_AS_FACTORS = ("ws_gan", "label_gan", "known_factors")
"""Methods whose latents are the factors."""


def experiment_of(name: str, device: str, world: World = Micro()) -> Experiment:
    method: Method = FactorVAE(width=200) if name == "factor_vae" and device == "cpu" else OBJECTIVES[name]()
    pairs = 32 if method.pairing is not None else 64
    plan = Plan(device, 1 if device == "cpu" else 0)
    return Experiment(
        world, method, latents=_latents(name, world), batch_size=pairs, history_every=1, plan=plan
    ).resolve()


def _latents(name: str, world: World) -> int:
    space = world.card().space
    assert space is not None
    return len(space.sizes) if name in AS_MANY_AS_FACTORS else 10


def ours(experiment: Experiment, data: Data) -> Callable[[int], None]:
    """Our step, with everything that a run keeps."""
    engine, recording, place = Alone(experiment, data), Recording(), [0]

    def run(steps: int) -> None:
        for step in range(place[0], place[0] + steps):
            engine.advance(step, record=True)
            recording.add(step, engine.rows())
        place[0] += steps

    return run


def plain(experiment: Experiment, data: Data) -> Callable[[int], None]:
    """A loop as one writes it. The parts of a batch that are not images or noise are drawn beforehand, for free."""
    method, form = experiment.objective, form_of(experiment.objective, data)
    networks = new_networks(method, experiment.architecture(form.shape, form.labels), "pytorch", 0)
    optimisers = [
        torch.optim.Adam([p for name in phase.updates for p in networks[name].parameters()], lr=1e-4)
        for phase in method.phases()
    ]
    drawn = batch_of_one(source_of([experiment], data), Drawing(source_of([experiment], data))(0))
    losses = []

    def run(steps: int) -> None:
        for step in range(steps):
            batch = dict(drawn)
            for part, like in drawn.items():
                if part.endswith("images"):
                    batch[part] = data.examples(torch.randint(len(data), (len(like),)))
                elif part.endswith("noise"):
                    batch[part] = torch.randn_like(like)
            code = None
            for phase, optimiser in zip(method.phases(), optimisers):
                terms, made = phase.loss(batch, Context(step, len(data), 0, networks, code))
                code = made.detach() if made is not None else code
                optimiser.zero_grad()
                terms[phase.minimises].backward()
                optimiser.step()
                losses.append(terms[phase.minimises].item())

    return run


def on_cpu(names: list[str], steps: int, rounds: int) -> list[dict[str, float | str]]:
    torch.set_num_threads(1)
    data, rows = Micro().load(), []
    for name in names:
        experiment = experiment_of(name, "cpu")
        ways = {"ours": ours(experiment, data), "plain": plain(experiment, data)}
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(rounds + 1):
            for way, run in ways.items():
                begin = time.process_time()
                run(steps)
                if turn:  # the first warms up
                    taken[way].append((time.process_time() - begin) / steps * 1e3)
        middle = {way: statistics.median(values) for way, values in taken.items()}
        rows.append({"method": name, **middle, "speedup": middle["plain"] / middle["ours"]})
        print(
            f"{name:15} ours {middle['ours']:7.2f} ms  plain {middle['plain']:7.2f} ms  × {rows[-1]['speedup']:.2f}",
            flush=True,
        )
    return rows


def on_gpu(names: list[str], world: World, given: argparse.Namespace) -> list[dict[str, float | str]]:
    data, rows, base = world.load().to("cuda"), [], 0.0
    steps, models, profile = given.steps, given.models, given.profile
    for name in ("beta_vae", *(name for name in names if name != "beta_vae")):
        first = experiment_of(name, "cuda", world)
        first = replace(first, plan=replace(first.plan, precision=given.precision)).resolve()
        type(first.objective).at_once = given.at_once or type(first.objective).at_once
        try:
            engine = FleetEngine([replace(first, seed=seed) for seed in range(models)], data, print)
            for step in range(3):
                engine.advance(step, record=False)
            engine.wait()
        except RuntimeError as error:  # one method that fails must not hide the others
            print(f"{name:15} failed: {error}", flush=True)
            continue
        begin = time.perf_counter()
        for step in range(3, 3 + steps):
            engine.advance(step, record=False)
        engine.wait()
        each = (time.perf_counter() - begin) / steps / models * 1e6
        base = base or each
        rows.append({"method": name, "engine": engine.name, "µs": each, "times β-VAE": each / base})
        print(f"{name:15} {engine.name:10} {each:8.1f} µs a model-step, {each / base:.2f} × β-VAE", flush=True)
        if profile:
            print(kernels_of(engine, profile), flush=True)
        del engine
        torch.cuda.empty_cache()
    return rows


def kernels_of(engine: FleetEngine, most: int) -> str:
    """Where a step's time goes on the GPU: one step without a graph."""
    engine.stepper.graphed = False
    engine.advance(4, record=False)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        engine.advance(5, record=False)
        torch.cuda.synchronize()
    table: str = seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=most, max_name_column_width=70)
    wanted = (line.split() for line in table.splitlines()[3:])
    return "\n".join("   ".join([" ".join(line[:-9])[:60], *line[-4:]]) for line in wanted if len(line) > 9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--methods", help="names, with commas between them (default: all)")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--world", default="micro", choices=("micro", "dsprites"))
    parser.add_argument("--at-once", type=int, help="on a GPU: models of mapped fleets that step together, to try")
    parser.add_argument("--precision", default="auto", help="on a GPU")
    parser.add_argument("--profile", type=int, default=0, help="on a GPU: show so many kernels of a step")
    parser.add_argument("--json")
    given = parser.parse_args()
    chosen = given.methods.split(",") if given.methods else [name for name in OBJECTIVES if name not in LEFT_OUT]
    assert isinstance(OBJECTIVES["beta_vae"](), BetaVAE)
    found = (
        on_cpu(chosen, given.steps, given.rounds)
        if given.device == "cpu"
        else on_gpu(chosen, WORLDS[given.world], given)
    )
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)
