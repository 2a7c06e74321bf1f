"""Kernels that wait for a card beside those that they would replace (benchmarks/next.sh calls all of it).

python benchmarks/next.py loss --models 256 16      # µs a model alone, in turns, then µs a model-step
python benchmarks/next.py small --way 4             # small dense models: bits by the size of a fleet, how far away
python benchmarks/next.py times                     # small dense models: µs a fleet step, in turns
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
from dense import advance, begun, change, timed  # beside this file
from kernels import examples, experiments, fleet_of

from unweave.models.kernels.copies import TRY, WAITING, Shares, failure
from unweave.models.kernels.join import Join
from unweave.models.kernels.last import last_forward
from unweave.models.kernels.pixels import MASKS, Frame
from unweave.training.fleet.stepper import Stepper

WAYS: dict[str, Shares | None] = {
    "present": None,
    "264 programs of 8 warps, 5 portions of 128": Shares(264, 128, 5, 8),
    "264 of 4, 5 of 128": Shares(264, 128, 5, 4),
    "264 of 8, 4 of 128": Shares(264, 128, 4, 8),
    "264 of 8, 2 of 256": Shares(264, 256, 2, 8),
    "264 of 4, 8 of 64": Shares(264, 64, 8, 4),
}
SMALL = {
    "usual": "small.KNOWN=0 small.WARPS=4 small.TILE=64",
    "4": "small.KNOWN=1 small.WARPS=4 small.TILE=64",
    "8": "small.KNOWN=1 small.WARPS=8 small.TILE=64",
    "narrow": "small.KNOWN=1 small.WARPS=4 small.TILE=32",
    "tight": "small.KNOWN=1 small.WARPS=8 small.TILE=32 small.LIMIT=128",
}
"""Numbers in a module of the kernels, by the way that they stand for."""
BATCH, BEGIN, JOIN, FRAME = 64, 64, Join(32, 32, 1, 32, 4, 64, 0), Frame(MASKS, 1, 64, 64, 0, 0)
Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["loss", "small", "times"])
    parser.add_argument("--models", type=int, nargs="+", default=[256, 16])
    parser.add_argument("--rounds", type=int, default=5, help="0 only compiles")
    parser.add_argument("--way", choices=list(SMALL), default="4", help="of small dense models")
    given = parser.parse_args()
    if given.what == "small":
        small(given.way)
        return
    found = loss(given.models, given.rounds) if given.what == "loss" else times()
    if "OUT" in os.environ and given.rounds:
        Path(os.environ["OUT"], f"{given.what}.json").write_text(json.dumps(found, indent=1))


@contextmanager
def chosen(shares: Shares | None) -> Iterator[None]:
    """Inside, the loss is made this way; what a CUDA graph holds stays as it was chosen."""
    before = WAITING["loss"]
    os.environ[TRY], WAITING["loss"] = ("", before) if shares is None else ("loss", shares)
    try:
        yield
    finally:
        os.environ[TRY], WAITING["loss"] = "", before


def loss(sizes: list[int], rounds: int) -> dict[str, Any]:
    """Alone by every division; in whole steps by the present kernel and the quickest division."""
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for n in sizes:
        alone = of_loss(n, max(rounds, 1))
        for way, times in alone.items():
            print(f"{n} models, loss: {middle(times):.3f} ({times[0]:.3f}) µs a model, {way}", flush=True)
        best = min((way for way in WAYS if WAYS[way]), key=lambda way: middle(alone[way]))
        steps = of_steps(n, ["present", best], rounds)
        for way, times in steps.items():
            print(f"{n} models, whole steps: {[round(t, 2) for t in times]} µs a model-step, {way}", flush=True)
        report[str(n)] = {"alone": alone, "steps": steps}
    assert failure() is None, failure()
    return report


def middle(times: list[float]) -> float:
    return times[len(times) // 2]


def of_loss(n: int, rounds: int, repeats: int = 4) -> Times:
    """µs a model, sorted, after all outputs were compared."""
    masks = torch.randint(0, 2**16, (n, BATCH, 1024), device="cuda", dtype=torch.int32)
    small = torch.randn(n, BATCH, 32, 32, 32, device="cuda", dtype=torch.bfloat16).relu()
    weights = 0.1 * torch.randn(n, BEGIN + 512, device="cuda").bfloat16()

    def call() -> tuple[torch.Tensor, ...]:
        return last_forward(JOIN, FRAME, masks, small, weights, "ieee")

    graphs, outputs = {}, {}
    for way, shares in WAYS.items():
        with chosen(shares):
            outputs[way] = call()
            torch.cuda.synchronize()
            graphs[way] = captured(call, repeats)
    told, slopes, sums = outputs["present"]
    for way, (own_told, own_slopes, own_sums) in outputs.items():
        away = ((own_told - told).norm() / told.norm()).item()
        summed = ((own_sums - sums)[..., :4].norm() / sums[..., :4].norm()).item()
        other = (own_slopes != slopes).float().mean().item()
        print(f"{n} models, from the present: losses {away:.1e}, sums {summed:.1e}, slopes {other:.1e} differ, {way}")
    found: Times = {way: [] for way in WAYS}
    for turn in range(2 * rounds):
        for way, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                found[way].append(begin.elapsed_time(end) * 1000 / (repeats * n))
    return {way: sorted(times) for way, times in found.items()}


def captured(call: Callable[[], object], repeats: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    return graph


def of_steps(n: int, ways: list[str], rounds: int) -> Times:
    """µs a model-step, as a CUDA graph, a row of history every 50 steps."""
    data, steppers = examples(), {}
    for way in ways:
        fleet, source = fleet_of(experiments(n), data, "bf16")
        steppers[way] = Stepper(fleet, source, print)
        with chosen(WAYS[way]):
            for step in range(3):
                steppers[way](step, record=step == 0)
        torch.cuda.synchronize()
    found: Times = {way: [] for way in ways}
    for turn in range(rounds):
        for way, stepper in steppers.items():
            begin = time.perf_counter()
            for step in range(3 + 40 * turn, 3 + 40 * (turn + 1)):
                stepper(step, record=step % 50 == 0)
            torch.cuda.synchronize()
            found[way].append((time.perf_counter() - begin) / (40 * n) * 1e6)
    return {way: sorted(times) for way, times in found.items()}


def small(way: str, steps: int = 60) -> None:
    """Bits of small dense models in fleets of 1, 7 and 256, and how far they are from those of the usual kernel."""
    usual, start = trained(7, steps), trained(7, 0)
    switch(way)
    fleets = {n: trained(n, steps) for n in (1, 7, 256)}
    same = all(torch.equal(one, fleets[256][:n]) for n, one in fleets.items())
    away = ((fleets[7] - usual).norm() / (usual - start).norm()).item()
    print(f"small models, {SMALL[way]}: same bits at 1, 7, 256: {same}; {away:.1e} of the way from the usual")


def switch(way: str) -> None:
    change(["small.LIMIT=0", *SMALL[way].split()])


def times(sizes: tuple[int, ...] = (64, 256), rounds: int = 3) -> dict[str, Times]:
    """µs a fleet step of small MLPs, in turns, sorted."""
    report: dict[str, Times] = {}
    for n in sizes:
        engines, first = {}, {}
        for way in SMALL:
            switch(way)
            engines[way] = begun("tanh", "tanh-epochs", n, "usual", "")
            first[way] = advance(engines[way], 0, 60)
        found: Times = {way: [] for way in SMALL}
        for _ in range(rounds):
            for way, engine in engines.items():
                switch(way)
                found[way].append(1e6 * timed(engine, first[way], 400))
                first[way] += 400
        report[str(n)] = {way: sorted(spans) for way, spans in found.items()}
        for way, spans in report[str(n)].items():
            kind = type(engines[way].stepper).__name__
            print(
                f"{n} small models: {[round(t, 1) for t in spans]} µs a fleet step, {SMALL[way]} ({kind})", flush=True
            )
    return report


def trained(n: int, steps: int) -> torch.Tensor:
    """Parameters of a fleet of small MLPs."""
    engine = begun("tanh", "tanh-epochs", n, "usual", "")
    advance(engine, 0, steps)
    engine.stepper.catch_up()
    return engine.stepper.fleet.parameters[:n].clone()  # a fleet of one has a second model beside it


if __name__ == "__main__":
    main()
