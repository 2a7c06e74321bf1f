"""Train the models of studies and nothing else: for a GPU machine that has PyTorch but neither tables nor trees.

The run folders are measured afterwards, wherever they are carried to (:mod:`unweave.studies.measure_only`).
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unweave.runs.folder import RunFolder
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.plan import plan
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.checkpoint import in_bits
from unweave.training.running import Interrupted, RunOptions


@dataclass(frozen=True)
class Trained:
    """What has been trained of some studies, by id, and what has not."""

    done: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float


def train_only(
    studies: Sequence[Study],
    root: Path | str,
    *,
    execute: Executor = Here(),
    how: RunOptions = RunOptions(),
    seconds: float | int | None = None,
    compact: bool = False,
) -> Trained:
    """Train every experiment that these studies begin with; what would follow from their results is left out.

    After ``seconds`` training stops and is saved: the same call goes on. ``compact`` rounds the weights of finished
    runs to 16 bits, half the bytes to carry.
    """
    begin = time.monotonic()

    def stop() -> bool:
        return how.stop() or (seconds is not None and time.monotonic() - begin >= seconds)

    for study in studies:
        if stop():
            break
        bare = replace(study, measures=(), follow_up=None)
        try:
            run_study(bare, root, execute=execute, how=replace(how, stop=stop))
        except Interrupted as stopped:
            print(stopped, file=sys.stderr, flush=True)
    ids = [name for study in studies for name in plan(study.experiments, needs_data=False)]
    folders = {name: RunFolder(Path(root) / name) for name in ids}
    done = tuple(name for name, folder in folders.items() if folder.has("model.safetensors"))
    for name in done if compact else ():
        make_compact(folders[name])
    return Trained(done, tuple(name for name in folders if name not in done), time.monotonic() - begin)


def make_compact(folder: RunFolder) -> None:
    """Round a run's weights to 16 bits, and say so in its environment; what 16 bits cannot hold stays as it is."""
    before = folder.read("model.safetensors")
    try:
        rounded = in_bits(before, 16, folder.path)
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        return
    if rounded == before:
        return
    environment = folder.read_json("environment.json") if folder.has("environment.json") else {}
    folder.write_json("environment.json", environment | {"weights": "rounded to float16 after training"})
    folder.write("model.safetensors", rounded)
