"""Studies whose next models depend on the last ones.

What is asked is a plain function, written as if every model were there: it asks what a measure says of a model, and
ends with an answer. It is called again and again, from its beginning; where it asks for a model that is not there yet,
it stops, and that model is trained next. Nothing is remembered anywhere else, so that a study that was killed goes on
by itself, and questions that come to the same model share it.

A question that can say which answers a model may give (``guesses``) is also asked what it would need after each of
them, so that models it may need can be trained together. What it is told in the end is always what was measured.
"""

from collections import deque
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

Tells = Callable[[Measure, Mapping[str, Any]], bool]
"""Whether what a measure says of a model can answer a question; a model of which it cannot has failed."""


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
    name: str,
    questions: Sequence[Question[Any]],
    measures: Sequence[Measure],
    *,
    title: str = "",
    ahead: int = 1,
    tells: Tells = lambda measure, told: True,
) -> Study:
    """A study that trains the first model of every question, and then whatever the questions ask for.

    With ``ahead`` up to so many models of a question are trained at a time: the one it needs, and those it may need
    after that. A question that comes to a model of which nothing ``tells`` asks for no more.
    """
    first = _asked(questions, lambda experiment, measure: None, ahead)
    return Study(name, first, tuple(measures), title, partial(_next, tuple(questions), ahead, tells))


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


def may_need(question: Question[Any], known: Known, ahead: int) -> list[Experiment]:
    """The model that a question needs to go on, and others it may need after it, the nearest first; ``ahead`` in all.

    Only models as long as the first: others would train by themselves.
    """
    found: dict[str, Experiment] = {}
    futures: deque[dict[str, Mapping[str, Any]]] = deque([{}])
    while futures and len(found) < ahead:
        assumed = futures.popleft()

        def told(experiment: Experiment, measure: Measure, assumed: Any = assumed) -> Mapping[str, Any] | None:
            return known(experiment, measure) or assumed.get(identity_of_asked(experiment) + measure.file)

        waiting = replay(question, told)
        if isinstance(waiting, Waiting) and waiting.experiment.steps == _steps(found, waiting):
            key = identity_of_asked(waiting.experiment)
            found[key] = waiting.experiment
            guesses = getattr(question, "guesses", ())
            futures.extend(assumed | {key + waiting.measure.file: guess} for guess in guesses)
    return list(found.values())


def _steps(found: Mapping[str, Experiment], waiting: Waiting) -> int:
    return next(iter(found.values()), waiting.experiment).steps


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


def telling(known: Known, tells: Tells) -> Known:
    """What is known, without what cannot answer a question."""

    def told(experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
        found = known(experiment, measure)
        return found if found and tells(measure, found) else None

    return told


def _next(questions: Sequence[Question[Any]], ahead: int, tells: Tells, results: Results) -> tuple[Experiment, ...]:
    known, tried = telling(results.found, tells), {identity(experiment) for experiment in results.experiments}
    waiting = [(question, found) for question in questions if isinstance(found := replay(question, known), Waiting)]
    # a model that was trained and says nothing has failed: nothing after it is needed
    stuck = [found.experiment for _, found in waiting if _id(found) in tried]
    return _once(stuck) + _asked([question for question, found in waiting if _id(found) not in tried], known, ahead)


def _id(waiting: Waiting) -> str:
    return identity_of_asked(waiting.experiment)


def _asked(questions: Sequence[Question[Any]], known: Known, ahead: int) -> tuple[Experiment, ...]:
    asked = [experiment for question in questions for experiment in may_need(question, known, ahead)]
    return _once(asked)


def _once(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    return tuple({identity_of_asked(experiment): experiment for experiment in experiments}.values())
