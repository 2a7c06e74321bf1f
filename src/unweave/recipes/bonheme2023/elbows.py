"""What Figures 8.5 to 8.8 and 8.12 share: does a search stop where loss and accuracy stop improving?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unweave.algorithms.elbow import elbow
from unweave.models.objectives import Objective
from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.results import Measured, measured, notes
from unweave.recipes.bonheme2023.rows import EXTENTS, NO_INFORMATION, Row, base_of, searches_of, shown
from unweave.recipes.bonheme2023.searches import outcomes, search_study
from unweave.recipes.bonheme2023.tables import reading
from unweave.recipes.controls import Alter, Invented, altered
from unweave.recipes.extent import Extent, check_size
from unweave.recipes.reproduction import Control, Judge
from unweave.recipes.strength import STRENGTHS, strength_of
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.elbow import ElbowPoint
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.statistics.variance_explained import variance_explained
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_mean
from unweave.training.experiment import Experiment

if TYPE_CHECKING:
    import numpy as np

SIZES = (3, 6, 8, 10, 12, 18, 24, 32)
MORE = {"celeba": (42, 52, 62, 100, 150, 200)}
FEW = (1, 2, 3, 4, 6, 8)
"""Numbers of latents: of the source (Table D.1), and at smoke."""

CURVES = {"smoke": Extent(5, steps=1_000), "small": Extent(5, steps=60_000), "paper": Extent(5, steps=300_000)}
"""Seeds and steps of the models of a curve."""
NEAR = 0.5
"""Doublings between a search and an elbow that still count as consistent: 1.4 times as many or as few latents. The
source finds 19 beside 15 on SymSol."""
MOST = 0.5
"""Of a curve's variance that its numbers of latents explain at least, by the lower end of the interval."""


@dataclass(frozen=True)
class Panel:
    """One curve and the searches whose answers are marked in it."""

    rows: tuple[Row, ...]
    objective: Objective | None = None
    """Of the curve's models, where it is not that of the searches: deterministic autoencoders."""

    def name(self, size: str) -> str:
        """The objective of the curve, its strength where it is not a plain VAE's, and its world."""
        objective = self.objective or self.rows[0].objective
        strength = strength_of(objective) if objective.name in STRENGTHS else 1.0
        words = objective.name if strength == 1.0 else f"{objective.name} {strength:g}"
        return f"{words} on {shown(self.rows[0].world, size)}"

    def curve(self, size: str) -> tuple[Experiment, ...]:
        """The models of the curve: every number of latents, five seeds."""
        row = self.rows[0]
        base = replace(base_of(row, size), steps=CURVES[size].steps)
        if self.objective is not None:
            base = replace(base, objective=self.objective)
        return tuple(
            replace(base, latents=n, seed=seed) for n in sizes(row.world, size) for seed in range(CURVES[size].n_seeds)
        )


def sizes(world: str, size: str) -> tuple[int, ...]:
    """Numbers of latents of a curve."""
    return FEW if size == "smoke" else (*SIZES, *MORE.get(world, ()))


def panels_at(panels: Sequence[Panel], size: str) -> tuple[Panel, ...]:
    """The panels whose worlds a size covers, two at smoke; at least one."""
    check_size(size)
    worlds = EXTENTS[size].worlds[:2] if size == "smoke" else EXTENTS[size].worlds
    kept = tuple(panel for panel in panels if panel.rows[0].world in worlds)
    return kept or tuple(panels[:1])


def point_measure(size: str) -> ElbowPoint:
    """Loss, and accuracy where factors are classes."""
    return ElbowPoint(EXTENTS[size].n_samples, accuracy=size != "smoke")


def study_of(name: str, panels: Sequence[Panel], size: str) -> Study:
    """Every curve and every search of a figure."""
    chosen = panels_at(panels, size)
    searches = [search for panel in chosen for row in panel.rows for search in searches_of(row, size)]
    study = search_study(f"{name}-{size}", searches)
    curves = tuple(experiment for panel in chosen for experiment in panel.curve(size))
    # a search may begin with a model of the curve: asked once, so that none is counted as missing
    asked = {identity_of_asked(experiment): experiment for experiment in study.experiments + curves}
    # of the curves alone: what the searches trained may be carried without its weights
    return replace(study, experiments=tuple(asked.values()), between=partial(_points_of, curves, size))


def _points_of(
    curves: tuple[Experiment, ...], size: str, experiments: Sequence[Experiment]
) -> list[tuple[Experiment, Measure]]:
    mine = {*curves}
    return [(experiment, point_measure(size)) for experiment in experiments if experiment in mine]


def judge_of(panels: Sequence[Panel], results: Results, size: str) -> Outcome:
    """Each curve with the answers in it, and how much of the improvement they reach."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    table = []
    for panel in panels_at(panels, size):
        answers = {row.method: _answers(row, results, size) for row in panel.rows}
        points = _points(panel, results, size)
        means = {method: fmean(ns.values()) for method, ns in answers.items() if ns}
        # below 1 not even one latent passed: no place on this axis
        marks = {method: mean for method, mean in means.items() if mean >= 1}
        for name, curve in _curves(points).items():
            told = f"{panel.name(size)}, {name}"
            figures[told] = line_bands({name: curve}, "latents", name, panel.name(size), marks=marks, even=False)
            comparisons += [*_claims(told, points, name, answers[panel.rows[0].method])]
            table.append({"curve": told, "elbow": _elbow(curve)} | {f"n by {key}": one for key, one in means.items()})
    return Outcome(tuple(comparisons), figures, {"Elbows and answers": table}, notes(size, *_words(size)))


def _claims(told: str, points: Sequence[Measured], name: str, answers: Mapping[int, int]) -> Iterator[Comparison]:
    sign = -1 if name.endswith("loss") else 1
    apart = {}
    for seed, n in answers.items() if _is_curve(points, name) else ():
        bend = _bend(_of_seed(points, name, seed), sign)
        if bend is not None and n > 0:
            apart[seed] = math.log2(n / bend)
    what = f"{told}: FONDUE's n beside the elbow, in doublings"
    yield compare_mean(what, apart, 0.0, tolerance=NEAR)


def _is_curve(points: Sequence[Measured], name: str) -> bool:
    """Whether numbers of latents explain most of the variance: an elbow is found in pure noise too."""
    own = [row for row in points if name in row.found]
    try:
        found = variance_explained([row.found[name] for row in own], [row.experiment.latents for row in own])
    except ValueError:
        return False
    return found.interval[0] >= MOST


def _of_seed(points: Sequence[Measured], name: str, seed: int) -> dict[int, float]:
    own = {row.experiment.latents: float(row.found[name]) for row in points if row.seed == seed and name in row.found}
    return {n: own[n] for n in sorted(own) if math.isfinite(own[n])}


def _bend(curve: Mapping[int, float], sign: int) -> int | None:
    """The elbow of a curve that is the better (``sign``) the more latents up to there; None where there is none."""
    if len(curve) < 3:
        return None
    found = elbow([*curve], [*curve.values()])
    before = [sign * value for n, value in curve.items() if n <= found.size]
    return found.size if found.found and all(right > left for left, right in pairwise(before)) else None


def controls_of(judge: Judge) -> tuple[Control, ...]:
    """A search that always answers 1, and one that answers the most it may."""

    def answering(most: bool) -> Alter:
        def alter(results: Results, generator: "np.random.Generator") -> Results:
            def found(experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
                if isinstance(measure, FondueReading):
                    return reading(measure, most or experiment.latents <= 1)
                return results.found(experiment, measure)

            return Invented.of(results, found)

        return alter

    return (
        altered(judge, "always 1", "a search that always answers 1.", answering(False), draws=1),
        altered(judge, "always the most", "a search that answers the most it may.", answering(True), draws=1),
    )


def _answers(row: Row, results: Results, size: str) -> dict[int, int]:
    searches = searches_of(row, size)
    ended = zip(searches, outcomes(searches, results))
    return {search.base.seed: found.n for search, found in ended if found is not None}


def _points(panel: Panel, results: Results, size: str) -> list[Measured]:
    asked = {identity_of_asked(experiment) for experiment in panel.curve(size)}
    found = measured(results, point_measure(size))
    return [row for row in found if row.found and identity(row.experiment) in asked]


def _curves(points: Sequence[Measured]) -> dict[str, dict[float, list[float]]]:
    curves: dict[str, dict[float, list[float]]] = {}
    for row in points:
        for name, value in row.found.items():
            curves.setdefault(name, {}).setdefault(float(row.experiment.latents), []).append(value)
    return curves


def _elbow(curve: Mapping[float, Sequence[float]]) -> str:
    at = sorted(curve)
    if len(at) < 3:
        return "too few points"
    found = elbow([int(one) for one in at], [fmean(curve[one]) for one in at])
    return str(found.size) if found.found else "no clear elbow"


def _words(size: str) -> Iterator[str]:
    curves = CURVES[size]
    yield (
        f"Curves: {curves.n_seeds} seeds, {curves.steps:,} steps (published: 5 and 300,000). The elbow is where a curve"
        f" lies farthest from its chord; within {NEAR:g} doublings of it counts as consistent, since sizes are coarse."
        f" Only curves are judged of which the number of latents explains at least {MOST:g} of the variance, and elbows"
        " up to which every further latent helps."
    )
    if size == "smoke":
        yield "Factors of the stand-ins are continuous, so that there is no accuracy of classes to draw."
        yield NO_INFORMATION


PLAIN = tuple(Panel((one, other)) for one, other in zip(published.FONDUE_ROWS, published.IB_ROWS))
"""VAEs as in Table 8.1."""
