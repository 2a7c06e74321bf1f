"""SLURM, through submitit: packs as the jobs of an array. Only the store's folder must be shared.

When a job's time ends or it is preempted, SLURM sends a signal; the work is saved, the job requeued, and it goes on
where it stopped. No accounting is needed: what has ended is seen in the store and in the queue.
"""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.outage import Outage, noted_fault
from unweave.studies.pack import Pack, pack_from, pack_to
from unweave.studies.store import Store
from unweave.studies.train_and_measure import give_up, settled, train_and_measure
from unweave.training.running import Interrupted, RunOptions

LOOK_EVERY = 2.0
ATTEMPTS = 3
SAVING = 60.0
"""Seconds between SLURM's signal and the end of a job."""


@dataclass(frozen=True)
class OnSlurm(Executor):
    """``slurm`` are further options of sbatch by submitit's names: ``partition=gpu,time=240,mem=16GB``."""

    elsewhere = True
    workers: int = 32
    """Jobs of an array that run at a time."""
    slurm: str = ""

    def n_gpus(self) -> int:
        return self.workers  # every job of an array has one

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        root, attempts, todo, outage = root.resolve(), 0, list(packs), Outage()
        following: list[Pack] = []

        def told(pack: Pack) -> None:
            following.extend(ended(pack) or ())

        stop_file = root / ".unweave" / f"stop-{os.getpid()}-{time.time_ns()}"
        try:
            while todo:
                todo = self._round(todo, root, how, partial(_told, outage, told), stop_file)
                if how.stop():
                    raise Interrupted("stopped; the same command goes on")
                met, todo = _met_fault(todo, root, outage, how)
                attempts += bool(todo)
                todo = met + _again(todo, root, told, attempts)
                todo, following = todo + following, []
        finally:
            stop_file.unlink(missing_ok=True)

    def _round(self, packs: list[Pack], root: Path, how: RunOptions, ended: Ended, stop_file: Path) -> list[Pack]:
        """Submit packs and wait until none is in the queue; those that have not ended come back."""
        task = Task(str(root), how.save_every, str(stop_file))
        arrays = [self._submit(task, [p for p in packs if p.needs_gpu is gpu], root) for gpu in (True, False)]
        ids = {job_id.partition("_")[0] for array in arrays for job_id in array}
        waiting = {job_id: pack for array in arrays for job_id, pack in array.items()}
        left = []
        try:
            while waiting:
                time.sleep(LOOK_EVERY)
                queued = _queued(ids)
                for job_id in [job_id for job_id in waiting if job_id not in queued]:
                    pack = waiting.pop(job_id)
                    ended(pack) if _is_settled(pack, root) else left.append(pack)
                if how.stop() and not stop_file.exists():
                    stop_file.touch()
                    _scancel(ids, "--state=PENDING")
        except BaseException:
            _scancel(ids)
            raise
        return left

    def _submit(self, task: "Task", packs: list[Pack], root: Path) -> dict[str, Pack]:
        if not packs:
            return {}
        try:
            import submitit
        except ImportError as error:
            raise ImportError("submitit is not installed; run: pip install 'unweave[slurm]'") from error
        executor = submitit.SlurmExecutor(folder=root / ".unweave" / "slurm", max_num_timeout=1000)
        given: dict[str, Any] = {"array_parallelism": self.workers, "cpus_per_task": max(p.threads for p in packs)}
        given |= {"job_name": "unweave", "signal_delay_s": int(SAVING)}
        given |= {"gpus_per_node": 1} if packs[0].needs_gpu else {}
        executor.update_parameters(**given, **_options(self.slurm))
        jobs = executor.map_array(task, [pack_to(pack) for pack in packs])
        return {job.job_id: pack for job, pack in zip(jobs, packs)}


class Task:
    """What a job does. The work is done in a thread, so that SLURM's signal can wait for it to be saved."""

    def __init__(self, root: str, save_every: float, stop_file: str) -> None:
        self.root, self.save_every, self.stop_file = root, save_every, stop_file

    def __call__(self, text: str) -> str:
        self.stop, self.said = threading.Event(), list[BaseException]()
        self.working = threading.Thread(target=self._perform, args=(text,))
        self.working.start()
        while self.working.is_alive():
            self.working.join(0.5)
            if Path(self.stop_file).exists():
                self.stop.set()
        if self.said and not isinstance(self.said[0], Interrupted):
            raise self.said[0]
        return "stopped" if self.said else "ended"

    def checkpoint(self, text: str) -> Any:
        """Called on SLURM's signal: save, and come back later."""
        import submitit

        self.stop.set()
        self.working.join(0.9 * SAVING)
        again = Task(self.root, self.save_every, self.stop_file)
        return submitit.helpers.DelayedSubmission(again, text)

    def _perform(self, text: str) -> None:
        try:
            pack = pack_from(text, Path(self.root) / ".unweave" / "modules")
            train_and_measure(pack, self.root, RunOptions((), self.save_every, self.stop.is_set))
        except BaseException as error:
            self.said.append(error)


def _told(outage: Outage, ended: Ended, pack: Pack) -> None:
    outage.well(pack)
    ended(pack)


def _met_fault(left: list[Pack], root: Path, outage: Outage, how: RunOptions) -> tuple[list[Pack], list[Pack]]:
    """Packs that met a fault of a machine, after a pause, and all others."""
    words = [noted_fault(root / ".unweave", pack) for pack in left]
    met = [pack for pack, said in zip(left, words) if said and not outage.is_own(pack)]
    if met:
        outage.begin(next(filter(None, words)))
        outage.wait(how.stop)
    return met, [pack for pack in left if pack not in met]


def _again(left: list[Pack], root: Path, ended: Ended, attempts: int) -> list[Pack]:
    """What to submit again: at last one run a job, and then no more."""
    if attempts < ATTEMPTS:
        return left
    found = [replace(pack, experiments=(experiment,)) for pack in left for experiment in pack.experiments]
    if attempts == ATTEMPTS and any(len(pack.experiments) > 1 for pack in left):
        return found
    for pack in found:
        give_up(pack, root, f"ended {attempts} times without a result", "see .unweave/slurm for the logs of the jobs\n")
        ended(pack)
    return []


def _is_settled(pack: Pack, root: Path) -> bool:
    store = Store(root)
    return all(settled(store.folder(experiment.id), pack) for experiment in pack.experiments)


def _queued(ids: set[str]) -> set[str]:
    """Jobs of these arrays that SLURM still knows of as waiting, running or ending."""
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={','.join(sorted(ids))}"]
    given = subprocess.run(command, capture_output=True, text=True, check=False)
    if given.returncode and "Invalid job id" not in given.stderr:
        raise OSError(f"squeue does not answer: {given.stderr.strip() or given.returncode}")
    return set(given.stdout.split())


def _scancel(ids: set[str], *options: str) -> None:
    subprocess.run(["scancel", *options, *sorted(ids)], capture_output=True, check=False)


def _options(text: str) -> dict[str, Any]:
    """``partition=gpu,time=240`` as sbatch's parameters."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not part.isprintable():
            raise ValueError(f"--slurm takes NAME=VALUE,…, such as partition=gpu,time=240, not {part!r}")
        found[name.strip()] = int(value) if value.strip().isdigit() else value.strip()
    return found
