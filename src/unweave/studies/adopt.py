"""Take over runs that were trained elsewhere: the same experiments, on another device or with other threads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from unweave.config import fingerprint
from unweave.studies.execute import Executor
from unweave.studies.executors.here import Here
from unweave.studies.pack import measuring
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.train.experiment import Experiment, Plan, experiment_from, experiment_to
from unweave.train.loop import Manner


def adopt(study: Study, root: Path | str, *, execute: Executor = Here(), how: Manner = Manner()) -> Results:
    """Measure the runs of a store that are a study's, whatever their plan, and train nothing.

    A plan (device, threads, precision) changes the last bits of a run and its id, not what it is an example of.
    Experiments that the store has no finished run of are missing from the results.
    """
    store = Store(root).prepare()
    known = {_essence(e): e for e in (_experiment(store, name) for name in store.ids()) if e is not None}
    asked = _known(study.experiments, known)
    while True:
        found = tuple(asked.values())
        todo = [e for e in found if not all(store.folder(e.id).has(measure.file) for measure in study.measures)]
        if todo and study.measures:
            execute(measuring(todo, study.measures), store.root, how, lambda pack: None)
        results = Results(study, store, found)
        # a search asks for one model after the other
        more = {} if study.follow_up is None else _known(study.follow_up(results), known)
        if not more.keys() - asked.keys():
            return results
        asked |= more


def _known(experiments: Sequence[Experiment], known: Mapping[str, Experiment]) -> dict[str, Experiment]:
    """Those of the experiments that there are runs of, by what they are."""
    asked = (_essence(replace(experiment, world=experiment.world.resolve())) for experiment in experiments)
    return {essence: known[essence] for essence in asked if essence in known}


def _experiment(store: Store, name: str) -> Experiment | None:
    folder = store.folder(name)
    return experiment_from(folder.read_json("config.json")) if folder.trained else None


def _essence(experiment: Experiment) -> str:
    # through JSON and back, as resolve does: BetaVAE(6) and BetaVAE(6.0) are one
    return fingerprint(experiment_from(experiment_to(replace(experiment, plan=Plan()))))
