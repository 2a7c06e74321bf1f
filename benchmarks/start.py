"""Where the time of a whole `unweave train` goes that is not in its steps: seconds from the start of the process.

    python benchmarks/start.py dsprites --seeds 0:128 --steps 2000 --folder /tmp/runs --quiet
    python benchmarks/start.py micro --seeds 0:128 --steps 40 --network linear --folder /tmp/runs --quiet --one-thread
    python benchmarks/start.py --folders /tmp/runs      # what the disk says to 128 runs, some at a time

What follows is given to `unweave train`. With ``--one-thread`` folders are written one after the other, so that a
profile (python -m cProfile) blames whom it should. What is done beside the main thread has lines of its own, and the
last line has the seconds until the first step is made, of the loop from there to the last step, and of everything.
"""

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

MARKS: list[tuple[str, float]] = []
BESIDE: list[tuple[str, float, float]] = []
"""What other threads did: its name, begin and end."""


def main() -> int:
    """Train, and say how long each part took."""
    if "--folders" in sys.argv:
        folders(Path(sys.argv[-1]))
        return 0
    mark("Python is there", started())
    words = [word for word in sys.argv[1:] if word != "--one-thread"]
    from unweave.cli import _imported
    from unweave.cli import main as command

    _imported("torch", alone=True)
    mark("torch is imported")
    cli_train = _imported("unweave.cli.train", alone=True)
    from unweave.training import checkpoint, loop, many, results, wake
    from unweave.training.fleet import choice, engine, stepper

    mark("unweave is imported")
    beside(wake, "_wake", "the GPU and Triton")
    beside(many, "_claim_all", "claims of folders")
    beside(checkpoint.Checkpoints, "_write", "a checkpoint on its way to the disk")
    if "--one-thread" in sys.argv:
        many.for_all = loop.for_all = results.for_all = lambda work, items: [work(item) for item in items]
    marked(cli_train, "load_watched", "data is loaded", "the command is understood")
    marked(many, "check_structure", "members are checked")
    marked(many, "_parts", "fleets are planned")
    marked(many, "kept_kernels", "folders are locked")
    marked(choice, "_kernels", "kernels are imported")
    marked(choice, "choose_backend", "kernels are chosen and tried")
    marked(engine, "arranged", "members are arranged")
    marked(engine, "new_fleet", "initial weights are drawn")
    marked(engine.FleetEngine, "__init__", "the engine is built", "Triton is imported")
    marked(engine.FleetEngine, "close", "the engine is closed", "results are kept")
    marked(many, "drive", "results are written", "everything is ready")
    marked(checkpoint.Checkpoints, "save", "a checkpoint is written", "steps so far")
    marked(loop, "_keep_snapshots", "snapshots are kept", "steps are made")
    marked(many, "_disband", "the fleet is disbanded")
    first_of(stepper.Stepper, "_pack", "draws are made")
    first_of(stepper.torch.cuda, "empty_cache", "memory is given back", count=2)
    first_of(stepper.Stepper, "_advance_placed", "a step is made to load kernels, or captured", count=4)
    first_steps(engine.FleetEngine)
    done = command(["train", *words])
    mark("the command is done")
    for (_, before), (name, at) in pairwise(MARKS):
        print(f"{at - before:8.2f} s until {at - MARKS[0][1]:7.2f}: {name}", flush=True)
    for name, begin, end in BESIDE:
        print(f"{end - begin:8.2f} s until {end - MARKS[0][1]:7.2f}: {name}, beside", flush=True)
    print(summary())
    return int(done or 0)


def summary() -> str:
    """Seconds until the first step is made, of the loop after it, of everything, and what that is of the loop."""
    at = {name: when - MARKS[0][1] for name, when in reversed(MARKS)}
    first, last, done = at.get("step 0 is made"), at.get("steps are made"), MARKS[-1][1] - MARKS[0][1]
    if first is None or last is None:
        return f"{done:.2f} s, no step of them"
    return f"first step {first:.2f} loop {last - first:.2f} all {done:.2f} ratio {done / (last - first):.3f}"


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


def folders(root: Path, n_runs: int = 128) -> None:
    """Seconds to claim folders, to keep results of 2 MB in them, and to let them go, some at a time."""
    import os
    import shutil
    from concurrent.futures import ThreadPoolExecutor

    from unweave.runs.folder import RunFolder

    weights, history = os.urandom(2 << 20), b"0.1," * 40_000
    work: dict[str, Callable[[RunFolder], None]] = {
        "claimed": lambda run: run.write_new(dict.fromkeys(("config.json", "environment.json", "member.json"), "{}")),
        "results kept": lambda run: run.write_new({"history.csv": history, "model.safetensors": weights}),
        "let go": lambda run: run.remove("member.json"),
    }
    for at_a_time in (16, 64, 16):
        shutil.rmtree(root, ignore_errors=True)
        runs, told = [RunFolder(root / str(place)) for place in range(n_runs)], []
        with ThreadPoolExecutor(at_a_time) as pool:
            for name, done in work.items():
                begin = time.perf_counter()
                list(pool.map(done, runs))
                told.append(f"{name} {time.perf_counter() - begin:.2f}")
        print(f"{n_runs} folders, {at_a_time} at a time: {', '.join(told)} s", flush=True)


def beside(place: Any, name: str, what: str) -> None:
    """Keep when every call begins and ends, in whatever thread."""
    plain: Callable[..., Any] = getattr(place, name)

    def timed(*given: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        found = plain(*given, **named)
        BESIDE.append((what, begin, time.perf_counter()))
        return found

    setattr(place, name, timed)


def first_of(place: Any, name: str, what: str, count: int = 1) -> None:
    """Mark the end of the first calls."""
    plain, made = getattr(place, name), [0]

    def timed(*given: Any, **named: Any) -> Any:
        found = plain(*given, **named)
        made[0] += 1
        if made[0] <= count:
            mark(what)
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
