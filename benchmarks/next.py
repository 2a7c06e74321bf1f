"""Small dense models compiled for their sizes beside the usual ones.

python benchmarks/next.py small --way 4             # bits by the size of a fleet, how far away
python benchmarks/next.py times                     # µs a fleet step, in turns
"""

import argparse
import json
import os
from pathlib import Path

import torch
from dense import advance, begun, change, timed  # beside this file

SMALL = {
    "usual": "small.KNOWN=0 small.WARPS=4 small.TILE=64",
    "4": "small.KNOWN=1 small.WARPS=4 small.TILE=64",
    "8": "small.KNOWN=1 small.WARPS=8 small.TILE=64",
    "narrow": "small.KNOWN=1 small.WARPS=4 small.TILE=32",
    "tight": "small.KNOWN=1 small.WARPS=8 small.TILE=32 small.LIMIT=128",
}
"""Numbers in a module of the kernels, by the way that they stand for."""
Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["small", "times"])
    parser.add_argument("--way", choices=list(SMALL), default="4")
    given = parser.parse_args()
    if given.what == "small":
        small(given.way)
        return
    found = times()
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "times.json").write_text(json.dumps(found, indent=1))


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
