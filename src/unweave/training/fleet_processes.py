"""Convolutional models on a CPU: members side by side, each alone in a single-threaded process.

A stack loses there: PyTorch's stacked convolutions are slower than its plain ones (docs/performance.md).
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from unweave.data.world import Data
from unweave.models.objectives import Terms
from unweave.training.experiment import Experiment, usable_cores
from unweave.training.memory import keep_freed_memory

Reached = Callable[[float, float], None]
"""Told how many steps the members have done on average, and the last loss that one of them saw."""

_HELD: dict[str, Any] = {}


@dataclass(frozen=True)
class _Job:
    experiment: Experiment
    folder: Path
    save_every: float
    stop_file: Path


def train_side_by_side(
    experiments: Sequence[Experiment],
    folders: Sequence[Path],
    *,
    data: Data,
    save_every: float = 30.0,
    stop: Callable[[], bool] = lambda: False,
    reached: Reached = lambda steps, loss: None,
    processes: int = 0,
) -> list[str]:
    """Train every experiment in a process of its own, as many at a time as there are cores. Returns failures' words.

    ``stop`` is asked about twice a second; then all members save themselves and end, and resume with the same call.
    """
    from concurrent.futures import FIRST_COMPLETED, wait

    stop_file = folders[0].parent / f".stop-{os.getpid()}"
    jobs = [_Job(e, f, save_every, stop_file) for e, f in zip(experiments, folders)]
    failures: list[str] = []
    context = get_context("spawn")
    seen = context.Array("d", 2)
    with ProcessPoolExecutor(processes or usable_cores(), context, _prepare, (data, seen)) as pool:
        waiting = {pool.submit(_train_one, job) for job in jobs}
        while waiting:
            ended, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            failures += [words for words in (future.result() for future in ended) if words]
            reached(seen[0] / len(jobs), seen[1])
            if stop() and not stop_file.exists():
                stop_file.parent.mkdir(parents=True, exist_ok=True)
                stop_file.touch()
    stop_file.unlink(missing_ok=True)
    return failures


def _prepare(data: Data, seen: Any) -> None:
    import torch

    keep_freed_memory()
    torch.set_num_threads(1)
    _HELD.update(data=data, seen=seen)


def _train_one(job: _Job) -> str:
    from unweave.training.loop import Interrupted, Manner, NotFinite, train

    seen, before = _HELD["seen"], [-1]

    def watch(done: int, total: int, terms: Terms, recorded: bool) -> None:
        if recorded:
            with seen.get_lock():
                # a member that goes on after an interruption begins with what it had done
                seen[0] += done - max(before[0], 0)
                seen[1] = terms["loss"].item()
            before[0] = done

    try:
        train(
            job.experiment, job.folder, data=_HELD["data"], how=Manner((watch,), job.save_every, job.stop_file.exists)
        )
    except Interrupted:
        return ""
    except NotFinite as error:
        return str(error)
    return ""
