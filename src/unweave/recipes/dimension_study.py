"""The search for a dimension as an adaptive study: which models it asks for, and what is measured of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unweave import rng
from unweave.algorithms.elbow import Elbow, elbow
from unweave.algorithms.fondue import METHODS, Fondue, Reading, fondue
from unweave.config import fingerprint
from unweave.data.world import Data
from unweave.metrics.dimension.mle import NEIGHBOURS, mle
from unweave.recipes.dimension_search import DimensionSearch, ahead_of, threshold_of, value_of
from unweave.studies.adaptive import Ask, Waiting, adaptive_study, replay, why_waiting
from unweave.studies.measures.elbow import ElbowPoint
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, experiment_to

MOST_ROUNDS = 6
"""Searches, each with twice the training of the one before, until an answer that is waited for is given up."""

SIZES = (3, 6, 8, 10, 12, 18, 24, 32)
"""Numbers of latents of the thesis's elbow curves."""

Rounds = tuple[tuple[int, float | int], ...]
"""Steps of a model and the answer they gave."""

RunSearch = Callable[[Study], Results]
"""Brings the study of a search to its end."""


@dataclass(frozen=True)
class Searched:
    """How a search ended."""

    fondue: Fondue
    rounds: Rounds
    """More than one when the answer was waited for."""

    @property
    def steps(self) -> int:
        """Of the models of the last round."""
        return self.rounds[-1][0]


@dataclass(frozen=True)
class DimensionQuestion:
    """The largest number that passes, as a question of an adaptive study."""

    base: Experiment
    search: DimensionSearch
    start: int
    least: int
    most: int
    steps: int
    """Of the models of the first round."""

    @property
    def measure(self) -> FondueReading:
        return reading_of(self.search)

    @property
    def guesses(self) -> tuple[Mapping[str, Any], ...]:
        """What a model may say: that it passes, or that it does not."""
        far = 1e9
        answers = ({"first": 0.0, "second": far}, {"first": far, "second": 0.0})
        return tuple({self.measure.criterion: answer} for answer in answers)

    def __call__(self, ask: Ask) -> Searched:
        rounds: list[tuple[int, float | int]] = []
        for doubled in range(MOST_ROUNDS if self.search.until_stable else 1):
            steps = self.steps * 2**doubled
            found = self._round(ask, steps)
            rounds.append((steps, value_of(self.search, found.n)))
            if settled(rounds):
                break
        return Searched(found, tuple(rounds))

    def model(self, n: int, steps: int) -> Experiment:
        """The experiment of the n-th value."""
        return model_of(self.base, self.search, n, steps)

    def _round(self, ask: Ask, steps: int) -> Fondue:
        search = self.search

        def read(n: int) -> Reading:
            found = ask(self.model(n, steps), self.measure)[self.measure.criterion]
            return Reading(found["first"], found["second"])

        limits = {"start": self.start, "least": self.least, "most": self.most}
        return fondue(read, method=search.method, threshold=search.threshold, **limits)


@dataclass(frozen=True)
class Curves:
    """Reconstruction loss, and downstream accuracy where there are factors or labels, over numbers of latents."""

    sizes: tuple[int, ...]
    values: dict[str, tuple[float, ...]]
    elbows: dict[str, Elbow]


class ModelMissing(ValueError):
    """A model that a search needs has failed."""


def ask_search(question: DimensionQuestion, run: RunSearch) -> tuple[Searched, Callable[[int], Mapping[str, Any]]]:
    """How the search ends, and what was read of the n-th model of its last round."""
    name, ahead = search_name(question.base, question.search), ahead_of(question.search, question.base)
    study = adaptive_study(name, [question], [question.measure], ahead=ahead)
    results = run(study)
    known = results.found
    found = replay(question, known)
    if isinstance(found, Waiting):
        raise ModelMissing(f"the search cannot go on, since a model is missing: {why_waiting(found, results)}")

    def read(n: int) -> Mapping[str, Any]:
        told = known(question.model(n, found.steps), question.measure)
        return {} if told is None else told[question.measure.criterion]

    return found, read


def elbow_curves(base: Experiment, search: DimensionSearch, steps: int, run: RunSearch) -> Curves:
    """A model for each of the numbers of latents that are asked for, and where each curve bends."""
    sizes = tuple(sorted(set(search.elbow or SIZES)))
    models = tuple(replace(base, latents=n, steps=steps) for n in sizes)
    measure = ElbowPoint(search.examples)
    results = run(Study(search_name(base, replace(search, method="elbow")), models, (measure,)))
    known, points = results.found, []
    for model in models:
        point = known(model, measure)
        if point is None:
            reason = why_waiting(Waiting(model, measure), results)
            raise ValueError(f"the curves lack the model with {model.latents} latents: {reason}")
        points.append(point)
    values = {name: tuple(point[name] for point in points) for name in points[0]}
    return Curves(sizes, values, {name: elbow(sizes, heights) for name, heights in values.items()})


def model_of(base: Experiment, search: DimensionSearch, n: int, steps: int) -> Experiment:
    """The experiment of the n-th value of a search."""
    if search.over == "latents":
        return replace(base, latents=n, steps=steps)
    changed = replace(base.objective, **{search.over: value_of(search, n)})  # type: ignore[type-var]
    return replace(base, objective=changed, steps=steps)


def reading_of(search: DimensionSearch) -> FondueReading:
    """The measure that a search decides by; of one that draws curves only, the usual one."""
    criterion = METHODS[search.method].criterion if search.method in METHODS else "trace"
    return FondueReading(criterion, search.examples)


def search_name(base: Experiment, search: DimensionSearch) -> str:
    """The name of a search's study: its method, and everything that its models share."""
    plain = experiment_to(base)
    for shared in (plain, plain["objective"]):
        shared.pop(search.over, None)
    del plain["steps"]
    return f"dimension-{base.world.name}-{base.objective.name}-{fingerprint(plain)}-{search.method}"


def run_search(search: DimensionSearch, root: Any, **how: Any) -> RunSearch:
    """Runs the studies of a search in a store; their records say what is searched for."""
    return partial(run_study, root=root, options={"search": plain_search(search)}, **how)


def plain_search(search: DimensionSearch) -> dict[str, Any]:
    """What whoever looks at a search has to know of it."""
    plain = {"method": search.method, "over": search.over, "examples": search.examples}
    return plain | {"threshold": threshold_of(search)}


def settled(rounds: Sequence[tuple[int, float | int]]) -> bool:
    """Whether two rounds agree; twice nothing is no answer that stays, but models that have not learned yet."""
    return len(rounds) > 1 and rounds[-1][1] == rounds[-2][1] > 0


def intrinsic_dimension(data: Data, n_examples: int, seed: int, device: str = "cpu") -> float:
    """Of up to so many examples, by maximum likelihood over the stable range of neighbours."""
    order = rng.words(seed, rng.Purpose.EVALUATE, 0, len(data), 1)[:, 0].argsort(stable=True)[:n_examples]
    points = data.examples(order.to(data.store.device), seed=seed).flatten(1).to(device)
    neighbours = [k for k in NEIGHBOURS if k < len(points)]
    if not neighbours:
        raise ValueError(f"{len(points)} examples are too few for an intrinsic dimension; say where to --start")
    return mle(points, neighbours=neighbours).score
