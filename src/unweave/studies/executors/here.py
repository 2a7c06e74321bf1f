"""One pack after the other, in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.pack import Pack
from unweave.studies.train_and_measure import train_and_measure
from unweave.training.running import Interrupted, RunOptions


@dataclass(frozen=True)
class Here(Executor):
    """Nothing is started; a crash of this process ends the study, which goes on with the same call."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        for pack in packs:
            if how.stop():
                raise Interrupted("stopped; the same command goes on")
            train_and_measure(pack, root, how)
            ended(pack)
