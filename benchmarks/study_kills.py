"""Kill a study with SIGKILL at random moments, resume it, and compare every byte with the undisturbed study.

python benchmarks/study_kills.py --moments 100 --runs 60

Each moment kills the main process, or one of its workers. A store is killed and resumed until its study is through;
then it is compared, and the next store begins, until the asked number of kills has happened. Reported are runs that
were lost, runs that were trained again although they were done, and files that differ.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.execute import Executor
from unweave.studies.executors.here import Here
from unweave.studies.executors.local import Local
from unweave.studies.measures import Polarised
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.train.loop import Manner

COMPARED = ("config.json", "model.safetensors", "history.", "measures/")


@dataclass
class Tally:
    """What 100 kills have done."""

    kills: int = 0
    killed_workers: int = 0
    stores: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0


def small_study(n_runs: int, n_steps: int = 40) -> Study:
    """Tiny dense networks on the micro-world; every fifth is convolutional, so that both engines are met."""
    plan = uw.Plan("cpu", 1)
    networks = [uw.MLP((8,), (8,))] * 4 + [uw.Conv((2, 2), (2, 2), 4)]
    given = [
        uw.Experiment(Micro(), network=networks[n % 5], latents=2, steps=n_steps, batch_size=8, seed=n, plan=plan)
        for n in range(n_runs)
    ]
    return Study("kills", tuple(given), (Polarised(64),))


def kill_until(
    moments: int, study: Study, folder: Path, execute: Executor, rng: random.Random, longest: float
) -> Tally:
    """Kill and resume, store after store, until so many kills have happened."""
    wanted, tally = contents(finished(study, folder / "undisturbed", execute), study), Tally()
    while tally.kills < moments:
        root = folder / f"store-{tally.stores}"
        while True:
            before = _models(root)
            through = _one_kill(partial(run, study, root, execute), rng, longest, tally)
            tally.doubled += sum(_models(root).get(name) != mark for name, mark in before.items())
            if through or tally.kills >= moments:
                break
        before = _models(root)
        found = contents(finished(study, root, execute), study)
        tally.doubled += sum(_models(root).get(name) != mark for name, mark in before.items())
        tally.stores += 1
        tally.lost += len(wanted.keys() - found.keys())
        tally.different += sum(found[name] != wanted[name] for name in found if name in wanted)
    return tally


def run(study: Study, root: Path, execute: Executor) -> None:
    """The study, saving often."""
    torch.set_num_threads(1)
    run_study(study, root, execute=execute, how=Manner((), 0.02))


def finished(study: Study, root: Path, execute: Executor) -> Path:
    """The store after an undisturbed call."""
    if (status := os.waitpid(_forked(partial(run, study, root, execute)), 0)[1]) != 0:
        raise RuntimeError(f"the undisturbed study ended with status {status}")
    return root


def contents(root: Path, study: Study) -> dict[str, str]:
    """Checksums of all results, by run and file."""
    found = {}
    for config in sorted(root.glob("*/config.json")):
        for path in sorted(p for p in config.parent.rglob("*") if p.is_file()):
            name = path.relative_to(config.parent).as_posix()
            if name.startswith(COMPARED):
                found[f"{config.parent.name}/{name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(list(root.glob("*/model.safetensors"))) == len(study.experiments), "a run was lost or invented"
    return found


def _one_kill(work: Callable[[], None], rng: random.Random, longest: float, tally: Tally) -> bool:
    """Start, wait for a random moment, kill the main process or a worker. True when the work was through before."""
    main = _forked(work)
    time.sleep(rng.uniform(0.0, longest))
    workers = _children(main)
    victim = rng.choice([main, *workers])
    if os.waitpid(main, os.WNOHANG) != (0, 0):
        return True
    os.kill(victim, signal.SIGKILL)
    tally.kills += 1
    if victim != main:  # the study goes on by itself; then it is through
        tally.killed_workers += 1
        return os.waitpid(main, 0)[1] == 0
    os.waitpid(main, 0)
    return False


def _forked(work: Callable[[], None]) -> int:
    """A copy of this process, with everything imported already, that does the work and ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
        status = 0
    finally:
        os._exit(status)


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def _models(root: Path) -> dict[str, tuple[int, int]]:
    """Finished runs: the identity of the file of their weights, which changes when it is written again."""
    found = {}
    for path in root.glob("*/model.safetensors"):
        sums = path.parent / "SHA256SUMS"
        if sums.exists() and "  model.safetensors" in sums.read_text():
            look = path.stat()
            found[path.parent.name] = (look.st_ino, look.st_mtime_ns)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2, help="0 for one process only")
    parser.add_argument("--longest", type=float, default=12.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    executor = Local(given.workers) if given.workers else Here()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        told = kill_until(
            given.moments, small_study(given.runs), Path(place), executor, random.Random(given.seed), given.longest
        )
    print(json.dumps(vars(told)))
    sys.exit(1 if told.lost or told.doubled or told.different else 0)
