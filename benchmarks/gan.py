"""The weakly supervised GAN in a fleet on a GPU, in one call: kernels right, best tiles, steps with kernels on and off.

    PYTHONPATH=src python3 benchmarks/gan.py                   # about 85 s on an H200; $OUT/gan.json has all

First, in processes of their own: the test of a mapped discriminator, and every candidate of the wide layers compiled
and compared with float64. Then candidates at 2 and 16 models, and steps of 16 GANs with 2, 8 and 16 at a time, with
PyTorch's routes (tf32) and with discriminators' and encoders' convolutions in bf16, in turns.
"""

# ruff: noqa: E402
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "variants")]

import checks
import shared_columns
import torch
from methods import experiment_of, kernels_of
from way import Way

from unweave.data.dsprites import DSprites
from unweave.models.kernels import convolutions, correlation, encoder, mapped_layers
from unweave.models.kernels.convolutions import Join
from unweave.models.objectives.ws_gan import WSGAN
from unweave.training.fleet.engine import FleetEngine

LAYERS = {(64, 64): 16, (64, 128): 8, (128, 128): 4}
IMAGES, MODELS = 128, 16
Key = tuple[str, int, int]
CANDIDATES: dict[str, dict[tuple[int, int], list[Way]]] = {
    "down": {
        (64, 64): [Way(128, 64, 4, 3), Way(64, 64, 4, 3)],
        (64, 128): [Way(64, 64, 4, 2), Way(128, 64, 8, 3), Way(64, 64, 4, 3)],
        (128, 128): [Way(64, 64, 4, 2), Way(128, 64, 8, 3), Way(64, 128, 8, 2)],
    },
    "up": {
        (64, 64): [Way(128, 1, 4, 1), Way(64, 1, 4, 1), Way(64, 4, 8, 2)],
        (64, 128): [Way(64, 1, 4, 1), Way(64, 1, 8, 1), Way(64, 4, 8, 2)],
        (128, 128): [Way(64, 1, 4, 1), Way(64, 1, 8, 1)],
    },
    "up shared": {
        (64, 64): [Way(64, 0, 4, 2), Way(64, 0, 8, 2)],
        (64, 128): [Way(64, 0, 8, 2), Way(64, 0, 8, 1)],
        (128, 128): [Way(64, 0, 8, 1), Way(64, 0, 8, 1, 168)],
    },
    "taps": {
        (64, 64): [Way(32, 0, 4, 3), Way(64, 0, 4, 3), Way(64, 0, 4, 2)],
        (64, 128): [Way(32, 0, 8, 3), Way(64, 0, 8, 3), Way(64, 0, 4, 2)],
        (128, 128): [Way(32, 0, 8, 3), Way(64, 0, 8, 2), Way(64, 0, 8, 3)],
    },
}
"""Tiles; the first of ``down``, ``up`` and ``taps`` is what the package does. ``run`` as in ``convolutions.py``."""


def choose(key: Key, way: Way) -> None:
    """Let the kernels divide their work so."""
    name, sizes = key[0], key[1:]
    if name == "taps":
        correlation.TUNED[sizes] = way
    elif name == "up shared":
        shared_columns.WAYS["up", *sizes] = way
    else:
        convolutions.TUNED[key] = way


def runner(key: Key, n: int) -> Callable[[], Any]:
    """A call on random images for n models, as the discriminator's step back makes it."""
    name, n_big, n_small = key
    height = LAYERS[n_big, n_small]
    join = Join(height, height, n_big, n_small, 4, 512, 0)
    big, small = (torch.randn(n, IMAGES, size, size, channels, device="cuda").bfloat16()
                  for size, channels in ((2 * height, n_big), (height, n_small)))  # fmt: skip
    weights = (torch.randn(n, 512 + 16 * n_big * n_small, device="cuda") * 0.05).bfloat16()
    sums = torch.zeros(n, n_big, device="cuda")
    if name == "down":
        return lambda: convolutions.down(join, big, weights, "ieee", activate=True, leak=0.2)
    if name == "taps":
        return lambda: correlation.correlate_taps(big, small, 4, "ieee")
    function = shared_columns.up if name == "up shared" else shared_columns.PLAIN["up"]
    return lambda: function(join, small, weights, "ieee", like=big, leak=0.2, bias_gradient=sums)


def far(key: Key) -> float:
    """The distance from what PyTorch makes in float64 of the same numbers."""
    name, n_big, n_small = key
    height = LAYERS[n_big, n_small]
    torch.manual_seed(0)
    weight = (torch.randn(2, n_small, n_big, 4, 4) * 0.05).bfloat16()
    big, small = torch.randn(2, 6, n_big, 2 * height, 2 * height), torch.randn(2, 6, n_small, height, height)
    big, small = big.bfloat16(), small.bfloat16()
    rows = torch.zeros(2, 512 + weight[0].numel(), dtype=torch.bfloat16)
    rows[:, 512:] = checks._flat(weight)
    join = Join(height, height, n_big, n_small, 4, 512, 0)
    found: dict[str, float] = {}
    for model in range(2):
        w, b, s = (one[model].double() for one in (weight, big, small))
        if name == "down":
            made = convolutions.down(join, checks._stored(big), rows, "ieee", activate=True, leak=0.2)
            exact = torch.nn.functional.leaky_relu(torch.nn.functional.conv2d(b, w, stride=2, padding=1), 0.2)
            checks._worse(found, name, made[model].movedim(-1, 1), exact)
        elif name == "taps":
            made = correlation.correlate_taps(checks._stored(big), checks._stored(small), 4, "ieee").sum(1)
            exact = torch.nn.grad.conv2d_weight(b, w.shape, s, stride=2, padding=1)
            checks._worse(found, name, made[model], checks._flat(exact[None])[0])
        else:
            function = shared_columns.up if name == "up shared" else shared_columns.PLAIN["up"]
            made = function(join, checks._stored(small), rows, "ieee", like=checks._stored(big), leak=0.2)
            exact = torch.nn.functional.conv_transpose2d(s, w, stride=2, padding=1) * torch.where(b > 0, 1.0, 0.2)
            checks._worse(found, name, made[model].movedim(-1, 1), exact)
    return found[name]


def try_out(jobs: list[tuple[Key, Way]]) -> list[tuple[Key, Way, str]]:
    """Compile candidates and compare them with float64; what went wrong with each."""
    found = []
    for key, way in jobs:
        choose(key, way)
        try:
            with torch.device("cuda"):
                distance = far(key)
            for n in (2, MODELS):
                runner(key, n)()
            torch.cuda.synchronize()
            found.append((key, way, "" if distance < 6e-3 else f"distance {distance:.1e}"))
        except Exception as error:
            found.append((key, way, (str(error).strip().splitlines() or [repr(error)])[-1][:100]))
            if "CUDA error" in str(error) or "illegal" in str(error):
                break
    return found


def warm_up(kernels: bool) -> str:
    """Compile what a whole step needs."""
    try:
        with settings(kernels, 2, {}):
            engine_of(2).advance(0, record=False)
        torch.cuda.synchronize()
    except Exception as error:
        return repr(error)[:300]
    return "right"


@contextmanager
def settings(kernels: bool, at_once: int, best: dict[Key, Way]) -> Iterator[None]:
    """Inside, GANs step so."""
    for key, way in best.items():
        choose(key, way)
    with ExitStack() as stack:
        stack.enter_context(patch.object(mapped_layers, "DISCRIMINATORS", kernels))
        stack.enter_context(patch.object(WSGAN, "at_once", at_once))
        if any(name == "up shared" for name, *_ in best):
            stack.enter_context(patch.object(encoder, "up", shared_columns.up))
        yield


def engine_of(n: int) -> FleetEngine:
    world = DSprites()
    first = experiment_of("ws_gan", "cuda", world)
    return FleetEngine([replace(first, seed=seed) for seed in range(n)], world.load().to("cuda"), print)


def measure(call: Callable[[], Any]) -> float:
    """The median of seven calls, in µs."""
    times = []
    for turn in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times += [begin.elapsed_time(end) * 1000] if turn > 1 else []
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--until", type=float, default=75, help="seconds after which nothing more is begun")
    parser.add_argument("--steps", type=int, default=8)
    given = parser.parse_args()
    begin, report = time.monotonic(), {}

    def tell(*words: object) -> None:
        print(f"[{time.monotonic() - begin:4.0f} s]", *words, flush=True)
        if "OUT" in os.environ:
            Path(os.environ["OUT"], "gan.json").write_text(json.dumps(report, indent=1))

    test = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir=.", "--noconftest", "-p", "no:cacheprovider",
         "-q", "tests/models/test_mapped_layers.py", "-k", "discriminator or trunk"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    jobs = [
        ((name, *sizes), way) for name, table in CANDIDATES.items() for sizes, ways in table.items() for way in ways
    ]
    pools = [ProcessPoolExecutor(1, mp_context=get_context("spawn")) for _ in range(14)]
    warming = [pools[place].submit(warm_up, bool(place)) for place in (0, 1)]
    waiting = [pool.submit(try_out, jobs[i::12]) for i, pool in enumerate(pools[2:])]
    found = []
    for place, future in enumerate(waiting):
        try:
            found += future.result(timeout=60)
        except Exception as error:
            tell("LOST", jobs[place::12], repr(error)[:150])
    for kernels, future in zip(("off", "on"), warming):
        try:
            tell(f"a step with kernels {kernels}:", future.result(timeout=60))
        except Exception as error:
            tell(f"a step with kernels {kernels}: LOST", repr(error)[:150])
    for pool in pools:
        pool.shutdown(wait=False, cancel_futures=True)
    said, _ = test.communicate(timeout=60)
    tell("test:", said.strip().splitlines()[-1])
    report["test"] = said[-2000:]
    good = [(key, way) for key, way, wrong in found if not wrong]
    for key, way, wrong in found:
        if wrong:
            tell("LEFT OUT", key, way, wrong)
    best: dict[Key, Way] = {}
    for key in dict.fromkeys(key for key, _ in good):
        ways = [way for other, way in good if other == key]
        taken: dict[Way, list[float]] = {way: [] for way in ways}
        for n in (2, MODELS):
            call = runner(key, n)
            for way in ways:
                choose(key, way)
                taken[way].append(measure(call) / n)
        best[key] = min(ways, key=lambda way: taken[way][1])
        choose(key, best[key])
        report[str(key)] = {str(tuple(vars(way).values())): times for way, times in taken.items()}
        shown = " | ".join(f"{two:.1f}, {many:.1f} {tuple(vars(way).values())}" for way, (two, many) in taken.items())
        tell(f"{' '.join(map(str, key)):18s} µs a model of 2, 16:", shown)
    for sizes in LAYERS:  # of the two ways up, the faster
        plain, shared = (report.get(str((name, *sizes)), {}) for name in ("up", "up shared"))
        if shared and plain and min(t[1] for t in shared.values()) >= min(t[1] for t in plain.values()):
            best.pop(("up shared", *sizes), None)
            shared_columns.WAYS.pop(("up", *sizes), None)
    cases = [(False, 16), (True, 16), (True, 2), (False, 2), (True, 8)]
    for kernels, at_once in cases:
        if time.monotonic() - begin > given.until:
            break
        name = f"kernels {'on' if kernels else 'off'}, {at_once} at once"
        try:
            with settings(kernels, at_once, best if kernels else {}):
                engine = engine_of(MODELS)
                for step in range(3):
                    engine.advance(step, record=False)
                engine.wait()
                start = time.perf_counter()
                for step in range(3, 3 + given.steps):
                    engine.advance(step, record=False)
                engine.wait()
                report[name] = (time.perf_counter() - start) / given.steps / MODELS * 1e6
                tell(f"{name}: {report[name]:.0f} µs a model-step")
                if kernels and at_once == 16:
                    report["profile"] = kernels_of(engine, 25)
                    print(report["profile"], flush=True)
                del engine
        except Exception as error:
            tell(f"{name}: failed, {error!r}"[:300])
        torch.cuda.empty_cache()
    tell("done")


if __name__ == "__main__":
    main()
