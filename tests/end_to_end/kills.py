"""Kill a command with SIGKILL at random moments, call it again, and compare every byte with the undisturbed one.

python tests/end_to_end/kills.py train --moments 40

Of each kill the folders must open whole. A folder is killed and taken up again until the command comes to its end; then
it is compared, and the next one begins. Studies with workers have a script of their own, benchmarks/study_kills.py.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import torch
from study_kills import forked, status_of

import unweave as uw
from unweave.cli import main
from unweave.data.micro import Micro
from unweave.runs.folder import RunFolder
from unweave.studies.repair import damaged_files
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.running import RunOptions

OFTEN, PLAN = RunOptions((), 0.0), uw.Plan("cpu", 1)
SCORED = "--samples 150 --seeds 2 --metrics mig,dci --interventions table --quiet".split()


@dataclass
class Tally:
    """What the kills have done."""

    kills: int = 0
    folders: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    damaged: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Job:
    """Work in a folder, and whether it begins with a finished run there."""

    work: Callable[[Path], object]
    with_run: bool = True


def _alone(place: Path) -> None:
    train(
        uw.Experiment(Micro(), network=uw.Conv((2, 2), (2, 2), 4), latents=2, steps=60, batch_size=8, plan=PLAN),
        place / "run",
        how=OFTEN,
    )


def _fleet(place: Path) -> None:
    given = [
        uw.Experiment(Micro(), network=uw.MLP((8,), (8,)), latents=2, steps=40, batch_size=8, seed=n, plan=PLAN)
        for n in range(4)
    ]
    train_many(given, place, how=OFTEN)


def _called(*words: str) -> Callable[[Path], object]:
    def work(place: Path) -> None:
        os.chdir(place)
        if main(words):
            raise RuntimeError(f"{words} failed")

    return work


JOBS = {
    "train": Job(_alone, with_run=False),
    "fleet": Job(_fleet, with_run=False),
    "evaluate": Job(_called("evaluate", "run", *SCORED)),
    "report": Job(_called("report", "run")),
    "export": Job(_called("export", "run", "out")),
}
LEFT_OUT = ("environment.json", "SHA256SUMS", ".lock", ".writing", "cost.json")
"""Files that tell when and where; the list is checked against what it lists."""


def kill_until(moments: int, job: Job, folder: Path, rng: random.Random) -> Tally:
    """Kill and call again, folder after folder, until so many kills have happened."""
    tally, before = Tally(), folder / "before"
    before.mkdir()
    if job.with_run:
        assert status_of(forked(partial(_alone, before))) == 0
    shutil.copytree(before, folder / "undisturbed")
    begin = time.monotonic()
    assert status_of(forked(partial(job.work, folder / "undisturbed"))) == 0
    longest, wanted = time.monotonic() - begin, contents(folder / "undisturbed")
    while tally.kills < moments:
        place, seen = folder / f"{tally.folders}", dict[str, tuple[int, int]]()
        shutil.copytree(before, place)
        while tally.kills < moments and not _one_kill(job, place, rng.uniform(0.0, longest * 1.1), tally, seen):
            pass
        tally.failed += status_of(forked(partial(job.work, place))) != 0
        tally.doubled += _again(place, seen)
        found = contents(place)
        tally.folders += 1
        tally.lost += len(wanted.keys() - found.keys())
        tally.doubled += len(found.keys() - wanted.keys())
        tally.different += sum(found.get(name, held) != held for name, held in wanted.items())
        shutil.rmtree(place)
    return tally


def _one_kill(job: Job, place: Path, seconds: float, tally: Tally, seen: dict[str, tuple[int, int]]) -> bool:
    """Begin, wait, kill; True where the work was through before."""
    worker = forked(partial(job.work, place))
    time.sleep(seconds)
    through = os.waitpid(worker, os.WNOHANG)
    if through == (0, 0):
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        tally.kills += 1
    else:
        tally.failed += through[1] != 0
    tally.damaged += sum(bool(damaged_files(RunFolder(path))) for path in _folders(place))
    tally.doubled += _again(place, seen)
    return through != (0, 0)


def contents(place: Path) -> dict[str, str]:
    """Checksums of all files that a call leaves, by their names; what kills left half written counts too."""
    paths = [path for path in sorted(place.rglob("*")) if path.is_file() and path.name not in LEFT_OUT]
    return {path.relative_to(place).as_posix(): hashlib.sha256(_timeless(path)).hexdigest() for path in paths}


def _timeless(path: Path) -> bytes:
    """The content of a file, without the seconds that scores took."""
    content = path.read_bytes()
    if path.name != "scores.json":
        return content
    scores = json.loads(content)
    return json.dumps({name: _without_seconds(value) for name, value in scores.items()}).encode()


def _without_seconds(value: object) -> object:
    return {name: held for name, held in value.items() if name != "seconds"} if isinstance(value, dict) else value


def _again(place: Path, seen: dict[str, tuple[int, int]]) -> int:
    """How many models that were seen finished have been written again; what is finished now is seen."""
    done = [path for path in _folders(place) if RunFolder(path).has("model.safetensors") and path.name != "out"]
    looks = {path.name: os.stat(path / "model.safetensors") for path in done}
    now = {name: (look.st_ino, look.st_mtime_ns) for name, look in looks.items()}
    again = sum(now.get(name) != mark for name, mark in seen.items())
    seen.update(now)
    return again


def _folders(place: Path) -> list[Path]:
    return sorted(path.parent for path in place.glob("*/SHA256SUMS"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a kill loses nothing that was written, synced or not
    with tempfile.TemporaryDirectory(dir=memory) as made:
        told = kill_until(given.moments, JOBS[given.job], Path(made), random.Random(given.seed))
    print(json.dumps(asdict(told)))
