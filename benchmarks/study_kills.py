"""Kill a study with SIGKILL at random moments, resume it, and compare every byte with the undisturbed study.

python benchmarks/study_kills.py --moments 100 --runs 60
python benchmarks/study_kills.py --moments 40 --runs 60 --executor ray

Each moment kills the main process, or one of its workers; on Ray also a node, with its workers or without them. A store
is killed and resumed until its study is through; then it is compared with the study that one process does undisturbed,
and the next store begins, until the asked number of kills has happened. Reported are runs that were lost, runs that
were trained again although they were done, files that differ, and calls that failed or came to no end by themselves.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import torch
from ray_cluster import PLACES, RayCluster, living

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.executors.local import Local
from unweave.studies.executors.on_ray import OnRay
from unweave.studies.leases import Holders
from unweave.studies.measures import Polarised
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.running import RunOptions

COMPARED = ("config.json", "model.safetensors", "history.", "measures/")

PATIENCE = 600.0
"""Seconds until a call counts as one that comes to no end."""

Kills = dict[str, list[partial[None]]]
"""How to kill whoever can be killed now, by kind."""


@dataclass
class Tally:
    """What the kills have done."""

    kills: int = 0
    killed: dict[str, int] = field(default_factory=dict)
    stores: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    failed: int = 0
    hung: int = 0


@dataclass(frozen=True)
class Setting:
    """Where a study is done, and who can be killed there."""

    execute: Executor
    victims: Callable[[int, Path], Kills]
    """Given the main process and the store."""

    longest: float
    rng: random.Random


def small_study(n_runs: int, n_steps: int = 40) -> Study:
    """Tiny dense networks on the micro-world; every fifth is convolutional, so that both engines are met."""
    plan = uw.Plan("cpu", 1)
    networks = [uw.MLP((8,), (8,))] * 4 + [uw.Conv((2, 2), (2, 2), 4)]
    given = [
        uw.Experiment(Micro(), network=networks[n % 5], latents=2, steps=n_steps, batch_size=8, seed=n, plan=plan)
        for n in range(n_runs)
    ]
    return Study("kills", tuple(given), (Polarised(64),))


def kill_until(moments: int, study: Study, folder: Path, setting: Setting) -> Tally:
    """Kill and resume, store after store, until so many kills have happened."""
    wanted, tally = contents(finished(study, folder / "undisturbed", Here())), Tally()
    while tally.kills < moments:
        root, seen = folder / f"store-{tally.stores}", dict[str, tuple[int, int]]()
        work = partial(run, study, root, setting.execute)
        while tally.kills < moments and not _one_kill(work, root, setting, tally, seen):
            pass
        found = contents(finished(study, root, setting.execute))
        tally.doubled += _trained_again(root, seen)
        tally.stores += 1
        tally.lost += len({name.partition("/")[0] for name in wanted.keys() - found.keys()})
        tally.different += sum(wanted.get(name) != content for name, content in found.items())
        print(json.dumps(asdict(tally)), file=sys.stderr, flush=True)
    return tally


def run(study: Study, root: Path, execute: Executor) -> None:
    """The study, saving often."""
    torch.set_num_threads(1)
    run_study(study, root, execute=execute, how=RunOptions((), 0.02))


def finished(study: Study, root: Path, execute: Executor) -> Path:
    """The store after an undisturbed call."""
    if (status := status_of(forked(partial(run, study, root, execute)))) != 0:
        raise RuntimeError(f"the undisturbed study ended with status {status}")
    return root


def contents(root: Path) -> dict[str, str]:
    """Checksums of all results, by run and file."""
    found = {}
    for config in sorted(root.glob("*/config.json")):
        for path in sorted(p for p in config.parent.rglob("*") if p.is_file()):
            name = path.relative_to(config.parent).as_posix()
            if name.startswith(COMPARED):
                found[f"{config.parent.name}/{name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def processes(main: int, root: Path) -> Kills:
    """The main process and its children."""
    found = {"main": [partial(os.kill, main, signal.SIGKILL)]}
    workers = [partial(os.kill, pid, signal.SIGKILL) for pid, parent, _ in living() if parent == main]
    return found | ({"worker": workers} if workers else {})


def nodes(cluster: RayCluster, main: int, root: Path) -> Kills:
    """The main process, workers that hold runs, whole nodes, and nodes whose workers outlive them for a while."""
    found = {"main": [partial(os.kill, main, signal.SIGKILL)]}
    held = {holder["pid"] for holder in Holders(root / ".unweave").running().values()}
    if held:
        found["worker"] = [partial(os.kill, pid, signal.SIGKILL) for pid in sorted(held)]
    for kind, with_workers in (("node", True), ("node without its workers", False)):
        found[kind] = [partial(cluster.replace, place, with_workers) for place in PLACES]
    return found


def _one_kill(
    work: Callable[[], None], root: Path, setting: Setting, tally: Tally, seen: dict[str, tuple[int, int]]
) -> bool:
    """Start, wait for a random moment, kill whoever was killed least often. True when the study came to its end."""
    main = forked(work)
    time.sleep(setting.rng.uniform(0.0, setting.longest))
    victims = setting.victims(main, root)
    kind = min(victims, key=lambda kind: (tally.killed.get(kind, 0), setting.rng.random()))
    tally.doubled += _trained_again(root, seen)
    if os.waitpid(main, os.WNOHANG) != (0, 0):
        return True
    with contextlib.suppress(ProcessLookupError):  # a worker that has just ended by itself
        setting.rng.choice(victims[kind])()
        tally.kills += 1
        tally.killed[kind] = tally.killed.get(kind, 0) + 1
    status = status_of(main)  # unless it was the main process, the study goes on by itself
    tally.hung += status is None
    tally.failed += bool(status) and kind != "main"
    tally.doubled += _trained_again(root, seen)
    return status == 0


def _trained_again(root: Path, seen: dict[str, tuple[int, int]]) -> int:
    """How many runs that were seen finished have been written again; what is finished now is seen."""
    now = _models(root)
    again = sum(now.get(name) != mark for name, mark in seen.items())
    seen.update(now)
    return again


def _models(root: Path) -> dict[str, tuple[int, int]]:
    """Finished runs: the identity of the file of their weights, which changes when it is written again."""
    found = {}
    for path in root.glob("*/model.safetensors"):
        sums = path.parent / "SHA256SUMS"
        if sums.exists() and "  model.safetensors" in sums.read_text():
            look = path.stat()
            found[path.parent.name] = (look.st_ino, look.st_mtime_ns)
    return found


def forked(work: Callable[[], None]) -> int:
    """A copy of this process, with everything imported already, that does the work and ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        work()
        status = 0
    finally:
        os._exit(status)


def status_of(pid: int) -> int | None:
    """How a child ended; None where it did not, and had to be killed."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if (ended := os.waitpid(pid, os.WNOHANG)) != (0, 0):
            return ended[1]
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@contextlib.contextmanager
def setting_of(given: argparse.Namespace) -> Iterator[Setting]:
    """Where the study is done: one process, worker processes, or a Ray cluster that is started for it."""
    rng = random.Random(given.seed)
    if given.executor == "ray":
        with RayCluster() as cluster:
            yield Setting(OnRay(2, cluster.address), partial(nodes, cluster), given.longest, rng)
    else:
        yield Setting(Local(given.workers) if given.workers else Here(), processes, given.longest, rng)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--executor", choices=("local", "ray"), default="local")
    parser.add_argument("--workers", type=int, default=2, help="of local; 0 for one process only")
    parser.add_argument("--longest", type=float, default=12.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place, setting_of(given) as setting:
        told = kill_until(given.moments, small_study(given.runs), Path(place), setting)
    print(json.dumps(asdict(told)))
    sys.exit(1 if told.lost or told.doubled or told.different or told.failed or told.hung else 0)
