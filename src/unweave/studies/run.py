"""Run a study to its end: plan, perform what is missing, ask for follow-ups, until nothing is asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path

from unweave.studies.perform import Pack, perform
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.train.experiment import Experiment

Execute = Callable[[Sequence[Pack], Path], None]
"""Performs packs somewhere: in this process, in others, on a cluster; returns when all have ended."""


def run_study(study: Study, root: Path | str = "runs", *, execute: Execute | None = None) -> Results:
    """Bring every run of a study to its end and return what was found. The same call twice trains nothing twice."""
    execute = execute or in_process
    asked = _resolved(study.experiments)
    while True:
        packs = [Pack((experiment,), study.measures) for experiment in asked.values()]
        execute(packs, Path(root))
        results = Results(study, Store(root), tuple(asked.values()))
        more = {} if study.follow_up is None else _resolved(study.follow_up(results))
        if not more.keys() - asked.keys():
            return results
        asked |= more


def in_process(packs: Sequence[Pack], root: Path) -> None:
    """One pack after the other, here."""
    for pack in packs:
        perform(pack, root)


def _resolved(experiments: Sequence[Experiment]) -> dict[str, Experiment]:
    return {resolved.id: resolved for resolved in (experiment.resolve() for experiment in experiments)}
