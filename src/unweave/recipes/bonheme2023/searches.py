"""Searches for a number of latents as an adaptive study (Bonheme, 2023, ch. 8).

Each search is replayed from the models that are there and asks for the next one; searches that come to the same
number of latents share its model. Nothing is remembered anywhere else, so a study that was killed goes on by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from unweave.algorithms.fondue import METHODS, Fondue, Reading, fondue
from unweave.recipes.bonheme2023.results import measured
from unweave.studies.essence import asked_essence, essence
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.training.experiment import Experiment


@dataclass(frozen=True)
class Search:
    """One run of one algorithm. The number of latents of ``base`` does not matter; its seed is the search's."""

    base: Experiment
    method: str
    start: int
    most: int
    n_samples: int

    @property
    def measure(self) -> FondueReading:
        return FondueReading(METHODS[self.method].criterion, self.n_samples)


Known = Mapping[tuple[str, str], Mapping[int, Reading]]
"""Readings by number of latents, for each pair of a base experiment and a criterion."""


class _Missing(LookupError):
    def __init__(self, n: int) -> None:
        super().__init__(f"no model with {n} latents yet")
        self.n = n


def search_study(name: str, searches: Sequence[Search], title: str = "") -> Study:
    """A study that trains the first model of every search, and then whatever the searches ask for."""
    measures = {search.measure.file: search.measure for search in searches}
    first = _asked(searches, {})
    follow_up = partial(_next, tuple(searches))
    return Study(name, first, tuple(measures.values()), title=title, follow_up=follow_up)


def replay(search: Search, known: Mapping[int, Reading]) -> Fondue | int:
    """The end of a search, or the number of latents whose model it needs to go on."""

    def look_up(n: int) -> Reading:
        if n not in known:
            raise _Missing(n)
        return known[n]

    try:
        return fondue(look_up, method=search.method, start=search.start, most=search.most)
    except _Missing as missing:
        return missing.n


def outcomes(searches: Sequence[Search], results: Results) -> list[Fondue | None]:
    """How each search ended; None for one whose next model failed or is not there."""
    known = readings(searches, results)
    ended = (replay(search, known.get(_key(search), {})) for search in searches)
    return [found if isinstance(found, Fondue) else None for found in ended]


def readings(searches: Sequence[Search], results: Results) -> Known:
    """Everything that is known about models of any of these searches."""
    known: dict[tuple[str, str], dict[int, Reading]] = {}
    for measure in {search.measure.file: search.measure for search in searches}.values():
        for row in measured(results, measure):
            found = row.found[measure.criterion]
            place = known.setdefault((essence(replace(row.experiment, latents=1)), measure.criterion), {})
            place[row.experiment.latents] = Reading(found["first"], found["second"])
    return known


def _next(searches: Sequence[Search], results: Results) -> tuple[Experiment, ...]:
    return _asked(searches, readings(searches, results))


def _asked(searches: Sequence[Search], known: Known) -> tuple[Experiment, ...]:
    ended = ((search, replay(search, known.get(_key(search), {}))) for search in searches)
    asked = [replace(search.base, latents=found) for search, found in ended if isinstance(found, int)]
    return tuple({asked_essence(experiment): experiment for experiment in asked}.values())


def _key(search: Search) -> tuple[str, str]:
    return asked_essence(replace(search.base, latents=1)), METHODS[search.method].criterion
