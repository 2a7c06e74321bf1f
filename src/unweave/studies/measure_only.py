"""Take over runs that were trained elsewhere: the same experiments, on another device or with other threads."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unweave.runs.folder import RunFolder
from unweave.studies.between import take_all
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.failures import FAILURE
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.pack import measuring
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.train_and_measure import missing_measures, without_weights, words_without_weights
from unweave.training.experiment import Experiment, read_experiment
from unweave.training.loop import say
from unweave.training.running import RunOptions


def measure_only(
    study: Study, root: Path | str, *, execute: Executor = Here(), how: RunOptions = RunOptions()
) -> Results:
    """Measure the runs of a store that are a study's, whatever their plan, and train nothing.

    A plan (device, threads, precision) changes the last bits of a run and its id, not what it is an example of.
    Experiments that the store has no finished run of are missing from the results; so are those whose run came without
    weights and lacks a measure.
    """
    store = Store(root).prepare()
    finished = _experiments(store, lambda folder: folder.trained)
    without = {folder.path.name for folder in without_weights(store, finished.values(), study.measures)}
    known = {name: one for name, one in finished.items() if one.id not in without}
    asked = _known(study.experiments, known)
    while True:
        found = tuple(asked.values())
        todo = [e for e in found if missing_measures(store.folder(e.id), study.measures)]
        if todo:
            execute(measuring(todo, study.measures), store.root, how, lambda pack: None)
        take_all(study, found, store, execute, how)
        results = Results(study, store, found)
        # a search asks for one model after the other
        following = () if study.follow_up is None else study.follow_up(results)
        more = _known(following, known)
        if not more.keys() - asked.keys():
            lacking = _known((*study.experiments, *following), finished).keys() - known.keys()
            if lacking:
                say(f"{words_without_weights(len(lacking))}: train {'it' if len(lacking) == 1 else 'them'} again")
            return results
        asked |= more


def missing(study: Study, results: Results) -> int:
    """How many experiments of a study, its search included, neither are in these results nor have failed."""
    failed = _experiments(results.store, lambda folder: folder.has(FAILURE))
    settled = failed.keys() | {identity(experiment) for experiment in results.experiments}
    follow_up = study.follow_up(results) if study.follow_up and results.experiments else ()
    return len({identity_of_asked(e) for e in (*study.experiments, *follow_up)} - settled)


def _known(experiments: Sequence[Experiment], known: Mapping[str, Experiment]) -> dict[str, Experiment]:
    """Those of the experiments that there are runs of, by what they are."""
    asked = (identity_of_asked(experiment) for experiment in experiments)
    return {name: known[name] for name in asked if name in known}


def _experiments(store: Store, kept: Callable[[RunFolder], bool]) -> dict[str, Experiment]:
    """The experiments of a store's runs by what they are, of runs that are to be kept."""
    folders = [folder for folder in map(store.folder, store.ids()) if kept(folder)]
    return {identity(e): e for e in (read_experiment(folder) for folder in folders)}
