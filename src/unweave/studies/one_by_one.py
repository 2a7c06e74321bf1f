"""Every model alone in this process, as ``unweave train`` trains it: a stack of one would cost several times more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.failures import is_full, record
from unweave.studies.leases import Holder
from unweave.studies.pack import Pack
from unweave.studies.store import Store
from unweave.studies.train_and_measure import loaded, settled, train_and_measure
from unweave.training.experiment import Experiment
from unweave.training.loop import train
from unweave.training.running import Interrupted, RunOptions


@dataclass(frozen=True)
class OneByOne(Executor):
    """For studies that ask for one model after the other. Its bits are those of ``unweave train``."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        waiting = list(packs)
        while waiting:
            pack = waiting.pop(0)
            for experiment in pack.experiments:
                if how.stop():
                    raise Interrupted("stopped; the same command goes on")
                if pack.trains:
                    _train_alone(experiment, Store(root).prepare(), how)
                train_and_measure(replace(pack, experiments=(experiment,)), root, how)
            waiting += ended(pack) or ()


def _train_alone(experiment: Experiment, store: Store, how: RunOptions) -> None:
    """A run that another process holds is left to it: whoever measures waits for its end."""
    folder = store.folder(experiment.id)
    with Holder(store.home) as holder:
        if settled(folder, Pack((experiment,))) or not holder.take(experiment.id):
            return
        try:
            train(experiment, folder.path, data=loaded(experiment.world), how=how)
        except (Interrupted, BlockingIOError):
            raise
        except Exception as error:
            if is_full(error):
                raise
            record(folder, experiment, error)
        finally:
            holder.release(experiment.id)
