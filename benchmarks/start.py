"""Where the time of a whole `unweave train` goes that is not in its steps: seconds from the start of the process.

    python benchmarks/start.py dsprites --seeds 0:128 --steps 2000 --folder /tmp/runs --quiet
    python benchmarks/start.py micro --seeds 0:128 --steps 40 --network linear --folder /tmp/runs --quiet --one-thread

What follows is given to `unweave train`. With ``--one-thread`` folders are written one after the other, so that a
profile (python -m cProfile) blames whom it should.
"""

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

MARKS: list[tuple[str, float]] = []


def main() -> int:
    """Train, and say how long each part took."""
    mark("Python is there", started())
    words = [word for word in sys.argv[1:] if word != "--one-thread"]
    import torch

    mark("torch is imported")
    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
        mark("the GPU is there")
    from unweave.cli import main as command
    from unweave.cli import train as cli_train
    from unweave.training import checkpoint, loop, many, results
    from unweave.training.fleet import choice, engine

    mark("unweave is imported")
    if "--one-thread" in sys.argv:
        many.for_all = loop.for_all = results.for_all = lambda work, items: [work(item) for item in items]
    marked(cli_train, "load_watched", "data is loaded", "the command is understood")
    marked(many, "check_structure", "members are checked")
    marked(many, "_parts", "fleets are planned")
    marked(choice, "choose_backend", "kernels are chosen and tried")
    marked(engine, "arranged", "members are arranged")
    marked(engine, "new_fleet", "initial weights are drawn")
    marked(engine.FleetEngine, "__init__", "the engine is built")
    marked(engine.FleetEngine, "close", "the engine is closed", "results are kept")
    marked(many, "drive", "results are written", "folders are claimed")
    marked(checkpoint.Checkpoints, "save", "a checkpoint is written", "steps so far")
    marked(loop, "_keep_snapshots", "snapshots are kept", "steps are made")
    marked(many, "_disband", "the fleet is disbanded")
    first_steps(engine.FleetEngine)
    done = command(["train", *words])
    mark("the command is done")
    for (_, before), (name, at) in pairwise(MARKS):
        print(f"{at - before:8.2f} s until {at - MARKS[0][1]:7.2f}: {name}", flush=True)
    return int(done or 0)


def started() -> float:
    """When this process began, by the clock of marks."""
    if not Path("/proc/self/stat").exists():
        return time.perf_counter()
    import os

    ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    running = float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    begin = time.perf_counter() - running
    MARKS.append(("", begin))
    return time.perf_counter()


def mark(name: str, at: float = 0.0) -> None:
    """Something is done."""
    MARKS.append((name, at or time.perf_counter()))


def marked(place: Any, name: str, after: str, before: str = "") -> None:
    """Mark the end of every call, and perhaps its begin."""
    plain: Callable[..., Any] = getattr(place, name)

    def timed(*given: Any, **named: Any) -> Any:
        if before:
            mark(before)
        found = plain(*given, **named)
        mark(after)
        return found

    setattr(place, name, timed)


def first_steps(kind: Any, count: int = 4) -> None:
    """Mark the first steps: kernels are loaded and graphs captured there."""
    plain, made = kind.advance, [0]

    def advance(self: Any, step: int, *, record: bool) -> None:
        plain(self, step, record=record)
        made[0] += 1
        if made[0] <= count:
            import torch

            if torch.cuda.is_available():
                torch.cuda.synchronize()
            mark(f"step {step} is made")

    kind.advance = advance


if __name__ == "__main__":
    sys.exit(main())
