"""Studies whose next models depend on the last ones.

What is asked is a plain function, written as if every model were there: it asks what a measure says of a model, and
ends with an answer. It is called again and again, from its beginning; where it asks for a model that is not there yet,
it stops, and that model is trained next. Nothing is remembered anywhere else, so that a study that was killed goes on
by itself, and questions that come to the same model share it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from unweave.runs.failures import FAILURE, reason_of
from unweave.studies.failures import file_of
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.training.experiment import Experiment

Answer = TypeVar("Answer")

Ask = Callable[[Experiment, Measure], Mapping[str, Any]]
"""What a measure says of an experiment's run; the same may be asked twice."""

Question = Callable[[Ask], Answer]

Known = Callable[[Experiment, Measure], Mapping[str, Any] | None]
"""The same where it has been measured, else None."""


@dataclass(frozen=True)
class Waiting:
    """The model that a question needs before it can go on, and the measure of it."""

    experiment: Experiment
    measure: Measure


class _NotYet(LookupError):
    def __init__(self, waiting: Waiting) -> None:
        super().__init__("a model is not there yet")
        self.waiting = waiting


def adaptive_study(
    name: str, questions: Sequence[Question[Any]], measures: Sequence[Measure], *, title: str = ""
) -> Study:
    """A study that trains the first model of every question, and then whatever the questions ask for."""
    first = _asked(questions, lambda experiment, measure: None)
    return Study(name, first, tuple(measures), title, partial(_next, tuple(questions)))


def replay(question: Question[Answer], known: Known) -> Answer | Waiting:
    """The answer to a question, or the model it needs to go on."""

    def ask(experiment: Experiment, measure: Measure) -> Mapping[str, Any]:
        found = known(experiment, measure)
        if found is None:
            raise _NotYet(Waiting(experiment, measure))
        return found

    try:
        return question(ask)
    except _NotYet as missing:
        return missing.waiting


def why_waiting(waiting: Waiting, results: Results) -> str:
    """Why a question that should have been answered was not: what its model, or the measure of it, failed with."""
    run_id = next((e.id for e in results.experiments if identity(e) == identity_of_asked(waiting.experiment)), None)
    if run_id is None:
        return "it has not been trained"
    folder = results.store.folder(run_id)
    for name in (FAILURE, file_of(waiting.measure)):
        if folder.has(name):
            return f"{reason_of(folder.read_json(name))} (run {run_id})"
    return f"run {run_id} has not been measured"


def _next(questions: Sequence[Question[Any]], results: Results) -> tuple[Experiment, ...]:
    return _asked(questions, results.found)


def _asked(questions: Sequence[Question[Any]], known: Known) -> tuple[Experiment, ...]:
    found = (replay(question, known) for question in questions)
    asked = [one.experiment for one in found if isinstance(one, Waiting)]
    return tuple({identity_of_asked(experiment): experiment for experiment in asked}.values())
