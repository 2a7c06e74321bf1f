"""Run a study to its end: plan, perform what is missing, ask for follow-ups, until nothing is asked for."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.runs.fleets import fleets_in, members_of
from unweave.runs.folder import LEFT_WEIGHTS
from unweave.studies.between import take_all
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.failures import forget_outages
from unweave.studies.measures.measure import Measure
from unweave.studies.pack import Pack, measuring, pack
from unweave.studies.plan import plan
from unweave.studies.record import Progress, record_of, write_record
from unweave.studies.repair import CheckedFolders, repair
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.train_and_measure import settled, without_weights, words_without_weights
from unweave.training.experiment import Experiment, usable_cores
from unweave.training.loop import say
from unweave.training.running import RunOptions

Tell = Callable[[int, int], None]
"""Called with (runs that are settled, runs in all)."""


def run_study(
    study: Study,
    root: Path | str = "runs",
    *,
    execute: Executor = Here(),
    how: RunOptions = RunOptions(),
    tell: Tell = lambda done, total: None,
    options: Mapping[str, Any] | None = None,
) -> Results:
    """Bring every run of a study to its end and return what was found. The same call twice trains nothing twice.

    ``execute`` says where, ``how`` when to save and to stop; ``options`` are kept for ``unweave study resume``.

    >>> import unweave as uw
    >>> from unweave.data.micro import Micro
    >>> small = {"network": uw.MLP((16,), (16,)), "latents": 3, "steps": 5, "plan": uw.Plan("cpu", 1)}
    >>> study = uw.Study("two-seeds", tuple(uw.Experiment(Micro(), seed=seed, **small) for seed in range(2)))
    >>> uw.run_study(study, "runs").table["seed"].to_list()
    [0, 1]
    """
    for measure in study.measures:
        measure.check()
    store = Store(root).prepare()
    asked = plan(study.experiments, needs_data=not execute.elsewhere)
    progress = Progress(store.home, study.name)
    try:
        while True:
            write_record(store.home, record_of(study, asked, options or {}))
            repair_all(store, asked)
            forget_ends(store, asked.values(), study.measures)
            _round(study, asked, store, (execute, how, tell, progress))
            take_all(study, tuple(asked.values()), store, execute, how)
            results = Results(study, store, tuple(asked.values()))
            following = () if study.follow_up is None else study.follow_up(results)
            more = plan(following, needs_data=not execute.elsewhere)
            if not more.keys() - asked.keys():
                return results
            asked |= more
    finally:
        progress.close()


def repair_all(store: Store, asked: Mapping[str, Experiment]) -> list[str]:
    """Repair every damaged run of a study; one sentence each, also said on standard error."""
    running = store.running()
    folders = [store.folder(run_id) for run_id in asked if run_id not in running]
    said = []
    for run_id, problems in CheckedFolders(store.home).problems(folders).items():
        repair(store.folder(run_id), asked[run_id], problems)
        words = ", ".join(f"{name} ({problem})" for name, problem in sorted(problems.items()))
        said.append(f"{run_id} was damaged: {words}; what is missing is done again")
        print(said[-1], file=sys.stderr, flush=True)
    return said


def forget_ends(store: Store, asked: Iterable[Experiment], measures: Sequence[Measure]) -> None:
    """Let runs be trained that met an outage, or came without the weights that their measures need; it is said."""
    asked = list(asked)
    if outages := forget_outages(store.folder(experiment.id) for experiment in asked):
        said = (
            "a run failed because of a GPU alone, and is"
            if outages == 1
            else f"{outages} runs failed because of a GPU alone, and are"
        )
        say(f"{said} tried again")
    if lacking := without_weights(store, asked, measures):
        say(f"{words_without_weights(len(lacking))}: trained again")
    for folder in lacking:
        folder.remove(LEFT_WEIGHTS)


def _round(
    study: Study, asked: Mapping[str, Experiment], store: Store, way: tuple[Executor, RunOptions, Tell, Progress]
) -> None:
    """Perform all that is asked for so far. Fleets on a GPU are measured on the cores, while the next ones train."""
    execute, how, tell, progress = way
    n_done, workers = [0], execute.workers or usable_cores()

    def ended(pack: Pack) -> Sequence[Pack]:
        if on_gpu and pack.trains and study.measures:
            return measuring(pack.experiments, study.measures, workers=workers)
        n_done[0] += len(pack.experiments)
        progress.add(len(pack.experiments))
        tell(n_done[0], len(asked))
        return ()

    def left(measures: Sequence[Any]) -> list[Experiment]:
        return [e for e in asked.values() if not settled(store.folder(e.id), Pack((e,), tuple(measures)))]

    on_gpu = any(experiment.plan.device.startswith("cuda") for experiment in asked.values())
    todo = left(study.measures)
    n_done[0] = len(asked) - len(todo)
    tell(n_done[0], len(asked))
    if not todo:
        return
    trained, untrained = ([e for e in todo if (on_gpu and store.folder(e.id).trained) is it] for it in (True, False))
    spread = {"workers": workers, "gpus": execute.n_gpus() if on_gpu else 1}
    packs = pack(untrained, () if on_gpu else study.measures, **spread, begun=begun_fleets(store))
    execute(packs + measuring(trained, study.measures, workers=workers), store.root, how, ended)


def begun_fleets(store: Store) -> list[list[str]]:
    """The ids of the members of every fleet that was interrupted."""
    found = []
    for home in fleets_in(store.root):
        with contextlib.suppress(OSError, ValueError):
            found.append([path.name for path in members_of(home)])
    return found
