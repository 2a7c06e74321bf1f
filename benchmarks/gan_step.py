"""A step of the weakly supervised GAN on a GPU: what its ways to be tried give, alone and together.

    python benchmarks/gan_step.py all                        # everything below, in about 110 s on an H200
    python benchmarks/gan_step.py check --way all            # gradients beside float64, bits by the size of a fleet
    python benchmarks/gan_step.py times --models 4           # ms a step, in turns
    python benchmarks/gan_step.py warm                       # compile a share of all kernels, without a card
    python benchmarks/gan_step.py tiles                      # upward convolutions and weight gradients alone
    python benchmarks/gan_step.py profile                    # kernels of a step

Steps are those of the published model: 64 pairs of dSprites, so that the discriminator sees 256 images. Ways are names
in UNWEAVE_TRY, read when a fleet is made and when its graph is captured.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from compiled import _Card  # beside this file
from methods import experiment_of
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.data.world import Data, World
from unweave.models.kernels.copies import TRY, failure
from unweave.models.layers import fresh_of
from unweave.models.networks import Conv
from unweave.models.objectives import WSGAN, Context, new_networks
from unweave.training.batches import Drawing, batch_of_one, source_of
from unweave.training.experiment import Experiment, form_of
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.mapped import MappedFleet

EVERY = "taps,first,norms,up,aside,pairs,generator,beside,dense,pixels,spectral"
WAYS = {
    "old": "",
    "taps": "taps",
    "first": "first",
    "norms": "norms",
    "up": "up",
    "aside": "aside",
    "pairs": "pairs",
    "generator": "pairs,generator,taps,norms",
    "beside": "beside",
    "dense": "dense",
    "pixels": "pixels",
    "spectral": "spectral",
    "all but pixels": "taps,first,norms,up,aside,pairs,generator,beside,dense,spectral",
    "all but beside": "taps,first,norms,up,aside,pairs,generator,dense,pixels,spectral",
    "all but streams": "taps,first,norms,up,pairs,generator,dense,pixels,spectral",
    "all but generator": "taps,first,norms,up,aside,pairs,beside,dense,pixels,spectral",
    "all but up": "taps,first,norms,aside,pairs,generator,beside,dense,pixels,spectral",
    "all": EVERY,
}
"""What stands in the environment, by the name of a way."""
SHARES = 14
"""Processes that compile side by side."""

OUT = Path(os.environ.get("OUT", "."))
Engines = dict[str, FleetEngine]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", "warm", "check", "times", "tiles", "profile"])
    parser.add_argument("--way", choices=list(WAYS), default="all")
    parser.add_argument("--models", type=int, nargs="+", default=[4, 1, 8])
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"), help="cpu: to see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=int, default=0)
    parser.add_argument("--skip", nargs="*", default=[], help="ways that failed")
    given = parser.parse_args()
    if given.what == "all":
        everything()
    elif given.what == "warm":
        warm(given.share)
    elif given.what == "check":
        check(given.way, given.device)
    elif given.what == "times":
        times(given.models, given.rounds, given.device, given.skip)
    elif given.what == "tiles":
        tiles(given.rounds)
    else:
        profile()


def everything() -> None:
    """Checks side by side, which compile most kernels; then times, one process after the other; the table last."""
    begin, me = time.monotonic(), [sys.executable, __file__]
    os.environ.setdefault("TRITON_CACHE_DIR", "/tmp/kernels")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _side_by_side([[*me, "warm", "--share", str(share)] for share in range(SHARES)], 35)
    print(f"compiled after {time.monotonic() - begin:.0f} s", flush=True)
    bad = _side_by_side([*([*me, "check", "--way", way] for way in WAYS), [*me, "tiles", "--rounds", "0"]], 50)
    print(f"checked after {time.monotonic() - begin:.0f} s", flush=True)
    skip = ["--skip", *(way for way in WAYS if f"check-{way}".replace(" ", "-") in bad)]
    for call, most in ((["times", *skip], 45), (["profile"], 12), (["tiles"], 12)):
        left = min(most, 119 - (time.monotonic() - begin))
        _side_by_side([[*me, *call]], max(left, 1))
        print(f"{call[0]} after {time.monotonic() - begin:.0f} s", flush=True)
    for name in ("tiles", "profile", "times"):
        told = (OUT / f"gan-{name}.log").read_text() if (OUT / f"gan-{name}.log").exists() else ""
        print(told[-3500:], flush=True)


def _side_by_side(calls: list[list[str]], most: float) -> set[str]:
    """Tells their last lines, or why there are none; the names of those that failed."""
    running, bad = [], set()
    for call in calls:
        named = call[2:3] if "--skip" in call else call[2:]
        name = "-".join(part for part in named if not part.startswith("--")).replace(" ", "-")
        log = OUT / f"gan-{name}.log"
        with log.open("w") as file:
            running.append((name, log, subprocess.Popen(call, stdout=file, stderr=subprocess.STDOUT)))
    until = time.monotonic() + most
    for name, log, process in running:
        try:
            process.wait(max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()  # slow, which is not wrong
            process.wait()
            print(f"{name}: stopped after {most:.0f} s", flush=True)
            continue
        lines = log.read_text().splitlines() or [""]
        if name.startswith("check") or process.returncode:
            print(f"{name}: {'' if process.returncode == 0 else process.returncode} {lines[-1][:300]}", flush=True)
        if process.returncode:
            bad.add(name)
    return bad


@contextmanager
def tried(way: str) -> Iterator[None]:
    """Inside, fleets are made and captured this way."""
    os.environ[TRY] = WAYS[way]
    try:
        yield
    finally:
        os.environ[TRY] = ""


def experiments(n: int, device: str, *, still: bool = False, pairs: int = 64) -> list[Experiment]:
    """Models of the published kind; with ``still`` their weights hardly move."""
    world: World = DSprites() if device == "cuda" else Micro()
    first = experiment_of("ws_gan", device, world)
    method = WSGAN(learning_rate=1e-30, critic_rate=1e-30) if still else WSGAN()
    first = replace(first, objective=method, batch_size=pairs if device == "cuda" else 4)
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


def check(way: str, device: str) -> None:
    """A step's gradients of two models beside float64, then the bits of a model in fleets of 1, 2 and 4."""
    data = data_of(device)
    still = experiments(2, device, still=True)
    wanted = exact_gradients(still[1], data)
    with tried(way):
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
        same, four = dict[str, list[bool]](), dict[str, torch.Tensor]()
        if way in ("old", "all", "all but streams"):
            for kind, sizes in (("filled to 4", [(1, 4), (2, 4), (4, 4)]), ("own size", [(1, 1), (2, 2)])):
                weights = [bits(n, at_once, data, device) for n, at_once in sizes]
                four = weights[-1] if kind == "filled to 4" else four
                same[kind] = [all(torch.equal(one[part], four[part]) for part in one) for one in weights]
    told = ", ".join(f"{name} {one:.1e}" for name, one in away.items())
    print(f"from float64: {told}; same bits in 1 and 2 as in 4: {same}; copies: {failure() or 'yes'}", flush=True)


def bits(n: int, at_once: int, data: Data, device: str) -> dict[str, torch.Tensor]:
    """What the last model of a fleet, always the same, is after four steps."""
    usual = experiments(5, device)
    engine = fleet([*usual[: n - 1], usual[4]], data, at_once)
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


def warm(share: int) -> None:
    """Compile a share of the kernels of a step, as for a card, from tensors on the CPU; the cache keeps them."""
    from unweave.models.kernels import adam, mapped_layers
    from unweave.training.batches import draw
    from unweave.training.fleet.mapped import new_mapped_fleet
    from unweave.training.fleet.members import arrange

    plain, seen = JITFunction.run, set()

    def compiled(self: Any, *given: Any, grid: Any, warmup: bool, **named: Any) -> None:
        sizes = [(one.dtype, one.data_ptr() % 16) if isinstance(one, torch.Tensor) else one for one in given]
        key = repr((self.fn.__name__, sizes, named))
        if key not in seen and zlib.crc32(key.encode()) % SHARES == share:
            plain(self, *given, grid=grid, warmup=True, **named)
        seen.add(key)

    store = torch.zeros(737_280, 512, dtype=torch.uint8)
    data = Data(store, (1, 64, 64), "bits", space=DSprites().card().space)
    given = [replace(one, batch_size=64, network=Conv()) for one in experiments(2, "cpu")]
    given = [replace(one, world=DSprites(), latents=5).resolve() for one in given]
    WSGAN.at_once = 2
    with (
        patch.object(driver, "_active", _Card()),
        patch.object(JITFunction, "run", compiled),
        patch.object(mapped_layers, "_by_kernels", lambda one, *n: all(c >= 16 and c & (c - 1) == 0 for c in n)),
    ):
        for way in ("all", "old"):
            with tried(way):
                members = arrange(given)
                made = new_mapped_fleet(members, len(data), form_of(given[0].objective, data))
                mapped_layers.map_convolutions(made.losses, "tf32", "bf16")
                source = source_of(members.experiments, data)
                draws = {name: drawn[0] for name, drawn in draw(source, torch.arange(1)).items()}
                made.advance(source, draws, record=False, step=0)
        one, rate = torch.zeros(2, 4096), torch.ones(2)
        adam.adam_stack(one, one, one, one, None, rate, rate[0], rate[0], rate > 0, 0.5, 0.999, 1e-8)


def times(sizes: list[int], rounds: int, device: str, skip: list[str]) -> None:
    """ms a step, in turns: every way with four models, the old and all together with others, and with 32 pairs."""
    data, report = data_of(device), dict[str, dict[str, list[float]]]()
    steps = 60 if device == "cuda" else 1
    for n, pairs in [*((n, 64) for n in sizes), (sizes[0], 32)]:
        ways = list(WAYS) if (n, pairs) == (4, 64) else ["old", "all"]
        engines: Engines = {}
        for way in (way for way in ways if way not in skip):
            try:
                with tried(way):
                    engines[way] = fleet(experiments(n, device, pairs=pairs), data, n)
                    for step in range(3):
                        engines[way].advance(step, record=False)
                    engines[way].wait()
            except Exception as error:  # one way that fails must not hide the others
                print(f"{n} models of {pairs} pairs, {way}: {type(error).__name__} {str(error)[:200]}", flush=True)
                engines.pop(way, None)
        found: dict[str, list[float]] = {way: [] for way in engines}
        for turn in range(rounds):
            for way, engine in engines.items():
                found[way].append(1e3 * timed(engine, 3 + turn * steps, steps))
        report[f"{n} of {pairs}"] = own = {way: sorted(spans) for way, spans in found.items()}
        old = own.get("old", [float("nan")])[0]
        for way, spans in own.items():
            line = f"{n} models of {pairs} pairs, {way:18s} {spans[0]:6.3f} ms a step ({spans[-1]:.3f})"
            minutes = spans[0] * 500 / 60
            print(f"{line}, {spans[0] - old:+.3f}, 500,000 steps {minutes:.1f} min", flush=True)
        for engine in engines.values():
            engine.close()
        (OUT / "gan-times.json").write_text(json.dumps(report, indent=1))


def timed(engine: FleetEngine, first: int, steps: int) -> float:
    """Seconds a step."""
    engine.wait()
    begin = time.perf_counter()
    for step in range(first, first + steps):
        engine.advance(step, record=False)
    engine.wait()
    return (time.perf_counter() - begin) / steps


def profile() -> None:
    """The kernels of a step of four models, the old way and all together."""
    data = data_of("cuda")
    for way in ("old", "all"):
        with tried(way):
            engine = fleet(experiments(4, "cuda"), data, 4)
            engine.stepper.graphed = False  # type: ignore[union-attr]
            for step in range(2):
                engine.advance(step, record=False)
            engine.wait()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
                engine.advance(2, record=False)
                torch.cuda.synchronize()
        rows = sorted(seen.key_averages(), key=lambda row: -row.self_device_time_total)
        total, calls = sum(row.self_device_time_total for row in rows), sum(row.count for row in rows)
        lines = [f"{way}: {calls} launches, {total / 1e3:.3f} ms in kernels"]
        lines += [f"{row.self_device_time_total / 1e3:7.3f} ms {row.count:4d} × {row.key[:70]}" for row in rows]
        (OUT / f"gan-kernels-{way}.txt").write_text("\n".join(lines))
        print("\n".join(lines[:16]), flush=True)


def tiles(rounds: int) -> None:
    """The discriminator's slopes and weight gradients alone, four models of 256 images; without rounds all once."""
    from unweave.models.kernels import convolutions, correlation
    from unweave.models.kernels.convolutions import Join, Tiles, up

    n, batch = 4, 256
    for big, small, size in ((64, 64, 16), (64, 128, 8), (128, 128, 4)):
        join = Join(size, size, big, small, 4, 0, 16 * big * small)
        slope = torch.randn(n, batch, size, size, small, device="cuda", dtype=torch.bfloat16)
        image = torch.randn(n, batch, 2 * size, 2 * size, big, device="cuda", dtype=torch.bfloat16)
        weights = 0.05 * torch.randn(n, 16 * big * small + 128, device="cuda").bfloat16()
        sums = torch.zeros(n, big, device="cuda")

        upwards = partial(up, join, slope, weights, "ieee", like=image, leak=0.2, bias_gradient=sums)
        correlated = partial(_summed, image, slope)
        wanted = None
        for run in ("old", *RUN_TILES):
            os.environ[TRY] = "" if run == "old" else "up"
            if run != "old":
                convolutions.RUNS[big, small] = Tiles(*run)  # type: ignore[misc]
            wanted = _one(f"up {big} {small} {run}", upwards, rounds, wanted)
        wanted = None
        for taps in ("old", *TAP_TILES):
            os.environ[TRY] = "" if taps == "old" else "taps"
            correlation.CHOSEN = {} if taps == "old" else {(big, small): Tiles(*taps[1:])}  # type: ignore[misc]
            if taps != "old":
                correlation.LEAST_SPAN, correlation.PARTS = taps[0], 8  # type: ignore[assignment]
            wanted = _one(f"taps {big} {small} {taps}", correlated, rounds, wanted)
    os.environ[TRY] = ""


RUN_TILES = ((128, 64, 4, 3), (128, 64, 8, 3), (128, 32, 4, 4), (64, 64, 4, 3), (256, 64, 8, 3), (128, 64, 4, 4))
"""Pixels, channels in a run, warps, stages."""
TAP_TILES = (
    (512, 64, 1, 4, 3),
    (512, 64, 1, 8, 3),
    (512, 64, 2, 8, 3),
    (512, 64, 4, 8, 2),
    (512, 128, 1, 4, 2),
    (1024, 64, 2, 8, 3),
)
"""Least pixels of a part, pixels at a time, taps, warps, stages."""


def _summed(image: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    from unweave.models.kernels.correlation import correlate_taps

    return correlate_taps(image, slope, 4, "ieee").sum(1)


def _one(name: str, call: Callable[[], torch.Tensor], rounds: int, wanted: torch.Tensor | None) -> torch.Tensor | None:
    try:
        made = call().float()
        torch.cuda.synchronize()
    except Exception as error:  # too large for the card, or not compiled
        print(f"{name}: {type(error).__name__} {str(error)[:60]}", flush=True)
        return wanted
    away = 0.0 if wanted is None else float((made - wanted).norm() / wanted.norm())
    if rounds:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(10):
                call()
        spans = []
        for _ in range(rounds + 1):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            spans.append(begin.elapsed_time(end) * 100)
        print(f"{name}: {min(spans):.1f} µs, {away:.0e} from the old", flush=True)
    return made if wanted is None else wanted


if __name__ == "__main__":
    main()
