"""Measures of several runs at once: which run keeps which, and when they can be taken."""

from collections.abc import Mapping, Sequence

from unweave.runs.folder import WEIGHTS
from unweave.studies.executors.executor import Executor
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.measure import Measure
from unweave.studies.pack import Pack
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.train_and_measure import missing_measures
from unweave.training.experiment import Experiment
from unweave.training.running import RunOptions


def kept_by(study: Study) -> dict[str, tuple[Measure, ...]]:
    """The measures between runs of a study, by what the run is an example of that keeps them."""
    found: dict[str, dict[Measure, None]] = {}
    for experiment, measure in study.between(study.experiments) if study.between else ():
        found.setdefault(identity_of_asked(experiment), {})[measure] = None
    return {name: tuple(measures) for name, measures in found.items()}


def ready(measures: Mapping[str, Sequence[Measure]], experiments: Sequence[Experiment], store: Store) -> list[Pack]:
    """The next measure of each of these runs that lacks some, all of whose models are here: one at a time is kept."""
    here = {identity(one) for one in experiments if store.folder(one.id).has(WEIGHTS)}
    packs = []
    for one in experiments:
        lacking = missing_measures(store.folder(one.id), measures.get(identity(one), ()))
        now = [measure for measure in lacking if here.issuperset((identity(one), *measure.others))]
        packs += [Pack((one,), (measure,), trains=False) for measure in now[:1]]
    return packs


def take_all(study: Study, experiments: Sequence[Experiment], store: Store, execute: Executor, how: RunOptions) -> None:
    """Take the measures between these runs whose models are all here, until none is left to be taken."""
    wanted = kept_by(study)
    while packs := ready(wanted, experiments, store):
        execute(packs, store.root, how, lambda pack: None)
