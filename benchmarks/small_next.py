"""Small dense models compiled for their sizes, beside the usual ones (benchmarks/small_next.sh calls all of it).

python benchmarks/small_next.py check "4 three"     # gradients of a step beside float64, bits in fleets of 1, 7 and 64
python benchmarks/small_next.py times               # µs a fleet step of 64 and 256 models, in turns

A gradient's distance is ‖g − g′‖ / ‖g′‖, g′ in float64.
"""

import json
import os
import sys
from pathlib import Path

import torch
from dense import advance, begun, change, timed  # beside this file

from unweave.models.kernels.layout import layout_of
from unweave.training.batches import draw, images
from unweave.training.fleet.fleet import template_of, total_loss_of
from unweave.training.fleet.portable import Portable
from unweave.training.fleet.whole_steps import BLOCK

USUAL = "small.KNOWN=0 small.TILE=64 small.SHARED=0 small.PRODUCT=tf32x3"
WAYS = {
    "usual": "",
    "4": "small.KNOWN=1",
    "narrow": "small.KNOWN=1 small.TILE=32",
    "4 three": "small.KNOWN=1 small.PRODUCT=three",
    "4 three shared": "small.KNOWN=1 small.PRODUCT=three small.SHARED=1",
    "narrow three": "small.KNOWN=1 small.PRODUCT=three small.TILE=32",
}
"""What each changes of the usual settings."""


def main() -> None:
    if sys.argv[1] == "check":
        check(sys.argv[2])
        return
    found = times()
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "small.json").write_text(json.dumps(found, indent=1))


def go(way: str) -> None:
    change([*USUAL.split(), *WAYS[way].split()])


def check(way: str, steps: int = 40) -> None:
    """Gradients of a first step beside float64, and bits of fleets after some steps; this compiles the kernel."""
    go(way)
    fleets = {n: begun("tanh", "tanh-epochs", n, "usual", "") for n in (1, 7, 64)}
    stepper = fleets[7].stepper
    fleet, source = stepper.fleet, stepper.source
    start = fleet.parameters.double()
    template = template_of(fleet.members, fleet.members.experiments[0].world.load().shape)
    draws = {key: drawn[0] for key, drawn in draw(source, torch.arange(1, device="cuda")).items()}
    noise = fleet.groups[0].method.posterior_noise(draws).double()
    with torch.device("cuda"):
        exact, _ = Portable(template, layout_of(template)).gradients(
            start, start, images(source, draws, "images").double(), noise, total_loss_of(fleet, draws)
        )
    advance(fleets[7], 0, 1)
    stepper.catch_up()
    # m = 0.1 g
    away = ((fleet.optimiser_state["first"] / 0.1 - exact).norm() / exact.norm()).item()
    for n, engine in fleets.items():
        advance(engine, int(n == 7), steps - int(n == 7))
        engine.stepper.catch_up()
    parameters = {n: engine.stepper.fleet.parameters for n, engine in fleets.items()}
    same = all(torch.equal(parameters[n][:n], parameters[64][:n]) for n in (1, 7))
    alive = all(bool(engine.stepper.fleet.alive.all()) for engine in fleets.values())
    print(f"{way}: same bits at 1, 7, 64: {same}; gradients from float64: {away:.1e}; all alive: {alive}")


def times(sizes: tuple[int, ...] = (64, 256), rounds: int = 3) -> dict[str, dict[str, list[float]]]:
    """µs a fleet step, in turns: blocks of steps that are drawn together, their draws included."""
    report: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        engines, first = {}, {}
        for way in WAYS:
            go(way)
            engines[way] = begun("tanh", "tanh-epochs", n, "usual", "")
            first[way] = advance(engines[way], BLOCK - 60, 60)
        report[str(n)] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, engine in engines.items():
                go(way)
                report[str(n)][way].append(1e6 * timed(engine, first[way], BLOCK))
                first[way] += BLOCK
        told = ", ".join(f"{way} {min(spans):.1f}" for way, spans in report[str(n)].items())
        print(f"{n} models, µs a fleet step, least of {rounds}: {told}", flush=True)
    return report


if __name__ == "__main__":
    main()
