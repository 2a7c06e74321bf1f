"""Convolutional models on a CPU: members side by side, each alone in a single-threaded process.

A stack loses there: PyTorch's stacked convolutions are slower than its plain ones (docs/performance.md).
"""

import contextlib
import math
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from unweave.data.world import Data
from unweave.runs.folder import RunFolder
from unweave.runs.state import saved_step
from unweave.training.experiment import Experiment, usable_cores
from unweave.training.memory import keep_freed_memory
from unweave.training.running import Interrupted, NotFinite, RunOptions, StepReport

_HELD: dict[str, Any] = {}


@dataclass(frozen=True)
class _Job:
    experiment: Experiment
    folder: Path
    save_every: float
    trackers: tuple[str, ...]
    stop_file: Path
    place: int


def train_side_by_side(
    experiments: Sequence[Experiment],
    folders: Sequence[Path],
    *,
    data: Data,
    how: RunOptions = RunOptions(),
    processes: int = 0,
) -> list[str]:
    """Train every experiment in a process of its own, as many at a time as there are cores. Returns failures' words.

    Whether to stop is asked twice a second; then all members save themselves and end, and resume with the same call.
    """
    stop_file = folders[0].parent / f".stop-{os.getpid()}"
    jobs = [
        _Job(experiment, folder, how.save_every, how.trackers, stop_file, place)
        for place, (experiment, folder) in enumerate(zip(experiments, folders))
    ]
    failures: list[str] = []
    context = get_context("spawn")
    seen = _Seen(context.Array("d", 2 * len(jobs)))
    seen.begin_at([saved_step(RunFolder(folder)) for folder in folders])
    total = experiments[0].n_updates
    with ProcessPoolExecutor(processes or usable_cores(), context, _prepare, (data, seen.held)) as pool:
        with _deaf_to_ctrl_c():
            waiting = {pool.submit(_train_one, job) for job in jobs}
        while waiting:
            ended, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            failures += [words for words in (future.result() for future in ended) if words]
            for watch in how.watchers:
                watch(StepReport(seen.mean_step(), total, True, seen, len(jobs)))
            if how.stop() and not stop_file.exists():
                stop_file.parent.mkdir(parents=True, exist_ok=True)
                stop_file.touch()
    stop_file.unlink(missing_ok=True)
    return failures


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that begin meanwhile never hear Ctrl-C: it is for their parent, who asks them to save and end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Seen:
    """How far every member is and what its loss was, in memory that all processes share."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def begin_at(self, steps: Sequence[int]) -> None:
        """Where interrupted members go on: what was done before is no part of the pace."""
        for place, step in enumerate(steps):
            self.held[2 * place : 2 * place + 2] = [float(step), math.nan]

    def mean_step(self) -> int:
        return int(sum(self.held[0::2]) / (len(self.held) // 2))

    def terms(self) -> list[dict[str, float]]:
        begun = zip(self.held[0::2], self.held[1::2])
        return [{"loss": loss} for step, loss in begun if step and math.isfinite(loss)]


def _prepare(data: Data, seen: Any) -> None:
    import torch

    keep_freed_memory()
    torch.set_num_threads(1)
    _HELD.update(data=data, seen=seen)


def _train_one(job: _Job) -> str:
    from unweave.training.loop import train

    def watch(report: StepReport) -> None:
        if report.recorded:
            _HELD["seen"][2 * job.place : 2 * job.place + 2] = [float(report.done), report.mean_loss()[0]]

    how = RunOptions((watch,), job.save_every, job.stop_file.exists, job.trackers)
    try:
        train(job.experiment, job.folder, data=_HELD["data"], how=how)
    except Interrupted:
        return ""
    except NotFinite as error:
        return str(error)
    return ""
