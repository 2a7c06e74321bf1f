"""Layers whose images come by a card's copy engine beside the kernels without it, in turns, and whole steps.

``PYTHONPATH=src python3 benchmarks/copies.py --models 16 256`` prints µs a model, alone, the median of nine (and the
least), and µs a model-step of the standard model. It takes about a minute on an H200. ``$OUT/copies.json`` gets all.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from kernels import examples, experiments, fleet_of  # beside this file

from unweave.models.kernels.convolutions import correlate, down, up
from unweave.models.kernels.copies import SWITCH, TUNED, failure
from unweave.models.kernels.join import Join
from unweave.models.kernels.resident import up_forward
from unweave.training.fleet.stepper import Stepper

COPY_RATE = 4.3e12
"""Bytes a second, read and written, as measured on an H200."""
BATCH, BEGIN = 64, 64
WAYS = {"present": "0", "copies": "1"}
Layer = tuple[str, int, int, int, bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--skip", nargs="*", default=[], help="layers, steps")
    chosen = parser.parse_args()
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for n in chosen.models:
        report[str(n)] = {}
        for layer in TUNED if "layers" not in chosen.skip else ():
            report[str(n)][str(layer)] = found = of_layer(layer, n)
            shown = ", ".join(f"{way} {t[len(t) // 2]:.3f} ({t[0]:.3f})" for way, t in found.items())
            print(f"{n} models, {layer}: bytes {n_bytes(layer) / COPY_RATE * 1e6:.2f}, {shown}", flush=True)
        if "steps" not in chosen.skip:
            report[str(n)]["steps"] = steps = of_steps(n)
            print(f"{n} models, whole steps:", {way: [round(t, 2) for t in times] for way, times in steps.items()})
    assert failure() is None, failure()
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "copies.json").write_text(json.dumps(report, indent=1))


@contextmanager
def switched(way: str) -> Iterator[None]:
    """Inside, kernels are chosen this way; what a CUDA graph holds stays as it was chosen."""
    os.environ[SWITCH] = WAYS[way]
    try:
        yield
    finally:
        del os.environ[SWITCH]


def n_bytes(layer: Layer) -> int:
    """The least that must move for a model."""
    what, height, n_big, n_small, back = layer
    big, small = 8 * BATCH * height**2 * n_big, 2 * BATCH * height**2 * n_small
    met = 0 if not back or what == "correlate" else small if what == "down" else big
    return big + small + met + 16 * n_big * n_small * (4 if what == "correlate" else 2)


def of_layer(layer: Layer, n: int, repeats: int = 4) -> dict[str, list[float]]:
    """µs a model of both ways, sorted."""
    call, graphs = _call(layer, n), {}
    for way in WAYS:
        with switched(way):
            call()
            torch.cuda.synchronize()
            graphs[way] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graphs[way]):
                for _ in range(repeats):
                    call()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(10):
        for way, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                found[way].append(begin.elapsed_time(end) * 1000 / (repeats * n))
    return {way: sorted(times) for way, times in found.items()}


def _call(layer: Layer, n: int) -> Callable[[], object]:
    what, height, n_big, n_small, back = layer
    join = Join(height, height, n_big, n_small, 4, BEGIN, 0)
    weights = torch.randn(n, BEGIN + 16 * n_big * n_small, device="cuda").bfloat16()
    big = torch.randn(n, BATCH, 2 * height, 2 * height, n_big, device="cuda").bfloat16()
    small = torch.randn(n, BATCH, height, height, n_small, device="cuda").bfloat16()
    rows = torch.zeros(weights.shape, device="cuda")
    if what == "correlate":
        return lambda: correlate(join, big, small, rows, "ieee")
    if what == "down":
        if back:
            return lambda: down(join, big, weights, "ieee", like=small, bias_gradient=rows[:, :n_small])
        return lambda: down(join, big, weights, "ieee", activate=True)
    if back:
        return lambda: up(join, small, weights, "ieee", like=big, bias_gradient=rows[:, :n_big])
    return lambda: up_forward(join, small, weights, "ieee")


def of_steps(n: int, rounds: int = 5) -> dict[str, list[float]]:
    """µs a model-step of both ways, as a CUDA graph, a row of history every 50 steps."""
    data, steppers = examples(), {}
    for way in WAYS:
        fleet, source = fleet_of(experiments(n), data, "bf16")
        steppers[way] = Stepper(fleet, source, print)
        with switched(way):
            for step in range(3):
                steppers[way](step, record=step == 0)
        torch.cuda.synchronize()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(rounds):
        for way, stepper in steppers.items():
            begin = time.perf_counter()
            for step in range(3 + 40 * turn, 3 + 40 * (turn + 1)):
                stepper(step, record=step % 50 == 0)
            torch.cuda.synchronize()
            found[way].append((time.perf_counter() - begin) / (40 * n) * 1e6)
    return {way: sorted(times) for way, times in found.items()}


if __name__ == "__main__":
    main()
