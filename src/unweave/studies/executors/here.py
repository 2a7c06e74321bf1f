"""One pack after the other, in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.outage import noted_fault
from unweave.studies.pack import Pack
from unweave.studies.train_and_measure import train_and_measure
from unweave.training.loop import say
from unweave.training.running import GpuFailed, Interrupted, RunOptions


@dataclass(frozen=True)
class Here(Executor):
    """Nothing is started, unless a GPU fails; a crash of this process ends the study, and the same call goes on."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        waiting = list(packs)
        while waiting:
            if how.stop():
                raise Interrupted("stopped; the same command goes on")
            try:
                train_and_measure(waiting[0], root, how)
            except GpuFailed as error:
                from unweave.studies.executors.local import Local

                say(f"{error} in a new process")
                noted_fault(Path(root) / ".unweave", waiting[0])
                # this process cannot use its GPU again
                Local(1)(waiting, root, how, ended)
                return
            waiting += ended(waiting.pop(0)) or ()
