"""What a worker does: train what a pack has unfinished, then measure it. Done twice, it does nothing twice."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unweave.studies.measures.measure import Measure
from unweave.studies.store import Store
from unweave.train.experiment import Experiment
from unweave.train.fleet_run import train_fleet
from unweave.train.loop import Manner, NotFinite, train


@dataclass(frozen=True)
class Pack:
    """Runs that are trained together, and what is measured of each."""

    experiments: tuple[Experiment, ...]
    measures: tuple[Measure, ...]


def perform(pack: Pack, root: Path | str, how: Manner = Manner()) -> None:
    """Train and measure everything in a pack that is not there yet."""
    store = Store(root)
    if len(pack.experiments) == 1:
        _train_one(pack.experiments[0], store, how)
    else:
        train_fleet(pack.experiments, store.root, how=how)
    for experiment in pack.experiments:
        take(pack.measures, experiment.id, store)


def take(measures: Sequence[Measure], run_id: str, store: Store) -> None:
    """Take the measures of a finished run that it does not have yet."""
    folder = store.folder(run_id)
    missing = [measure for measure in measures if not folder.has(measure.file)]
    if not missing or not folder.has("model.safetensors"):
        return
    run = store.run(run_id)
    with folder.locked():
        for measure in missing:
            folder.write_json(measure.file, dict(measure(run)))


def _train_one(experiment: Experiment, store: Store, how: Manner) -> None:
    folder = store.folder(experiment.id)
    if folder.has("model.safetensors") or folder.has("failure.json"):
        return
    with contextlib.suppress(NotFinite):  # its failure.json tells
        train(experiment, folder.path, how=how)
