"""Searches for a number of latents, as questions of an adaptive study (Bonheme, 2023, ch. 8)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unweave.algorithms.fondue import METHODS, Fondue, Reading, fondue
from unweave.studies.adaptive import Ask, Waiting, adaptive_study, replay, telling
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.measures.measure import Measure
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

    @cached_property
    def measure(self) -> FondueReading:
        return FondueReading(METHODS[self.method].criterion, self.n_samples)

    def __call__(self, ask: Ask) -> Fondue:
        def read(n: int) -> Reading:
            found = ask(replace(self.base, latents=n), self.measure)[self.measure.criterion]
            return Reading(found["first"], found["second"])

        return fondue(read, method=self.method, start=self.start, most=self.most)


def search_study(name: str, searches: Sequence[Search], title: str = "") -> Study:
    """A study that trains the first model of every search, and then whatever the searches ask for."""
    measures = {search.measure.file: search.measure for search in searches}
    return adaptive_study(name, searches, tuple(measures.values()), title=title, tells=_tells)


def outcomes(searches: Sequence[Search], results: Results) -> list[Fondue | None]:
    """How each search ended; None for one whose next model failed or is not there."""
    ended = (replay(search, telling(results.found, _tells)) for search in searches)
    return [None if isinstance(found, Waiting) else found for found in ended]


def _tells(measure: Measure, told: Mapping[str, Any]) -> bool:
    """What is no number decides nothing: such a model has failed."""
    reading = told[getattr(measure, "criterion", "")]
    return all(reading[side] is not None and math.isfinite(reading[side]) for side in ("first", "second"))
