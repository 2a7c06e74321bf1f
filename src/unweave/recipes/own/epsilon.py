"""u-epsilon: how strong a manipulation of the images must be before VAEs stop disentangling them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.bands import Band, bands
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import (
    COLUMNS,
    CONDITIONS,
    FIRST_CANDIDATE,
    MODIFIED,
    NOISE,
    ORIGINAL,
    REVERSED,
    SAME,
    Asked,
    Place,
    about,
    bias_study,
    placed,
    places_of,
    strength_of,
)
from unweave.recipes.zietlow2022.bias_table import any_condition, control_of, undecided, with_effect
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "How strong a change must be before VAEs stop disentangling"

STRENGTHS = (0.25, 0.5, 1.0, 1.5)
"""Multiples of the ε that the manipulation was trained with."""

ASKED = Asked(
    methods=("β-VAE",),
    conditions=CONDITIONS,
    controls=(SAME, REVERSED),
    places=("micro", "dsprites"),
    strengths=STRENGTHS,
)

Scores = Mapping[str, Mapping[float, Mapping[int, float]]]
"""By condition, ε and seed."""


def study(size: str) -> Study:
    """β-VAEs on images altered more and less, with noise as strong, and with both controls."""
    return bias_study("u-epsilon", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """The curve of MIG over ε, and at every ε the drop beside those of noise and of the controls."""
    return judge_with("", results, size)


def judge_with(replaced: str, results: Results, size: str) -> Outcome:
    """The same, with scores on noisy images in the place of those on original or on modified ones."""
    claims: list[Comparison] = []
    figures: dict[str, matplotlib.figure.Figure] = {}
    rows: list[dict[str, Any]] = []
    for place in places_of(size, ASKED):
        scores = scores_of(results, place)
        claims += _claims(place, scores, replaced)
        rows += _rows(place, scores)
        if len(scores) > 1:
            figures[f"MIG of β-VAEs on {place.title} over ε"] = _figure(place, scores)
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    return Outcome(tuple(claims), figures, {"MIG at every ε": rows}, (*NOTES, *about(size)))


NOTES = (
    "The manipulation is trained once, with the ε of the table; weaker and stronger ones are the same network times"
    " another ε. Bands are 95 % intervals of the mean over seeds.",
    "Whether more is more is not a matter of course: what is added makes two directions alike first, and then the added"
    " one the stronger.",
)


def scores_of(results: Results, place: Place) -> Scores:
    """MIG of every β-VAE that is compared."""
    rows = {row["id"]: row for row in results.table.to_dicts()}
    found: dict[str, dict[float, dict[int, float]]] = {}
    for one in results.experiments:
        known, score = placed(one, results), rows.get(one.id, {}).get(COLUMNS["MIG"])
        if known is None or known[:2] != (place.title, "β-VAE") or one.seed >= FIRST_CANDIDATE or score is None:
            continue
        found.setdefault(known[2], {}).setdefault(round(strength_of(one), 6), {})[one.seed] = score
    return found


def _claims(place: Place, scores: Scores, replaced: str = "") -> list[Comparison]:
    def at(condition: str, epsilon: float) -> Mapping[int, float]:
        if condition == replaced:
            return scores.get(NOISE, {}).get(epsilon, {})
        return scores.get(condition, {}).get(0.0 if condition == ORIGINAL else epsilon, {})

    found = []
    for epsilon in (round(strength * place.epsilon, 6) for strength in STRENGTHS):
        for words, first in (
            ("original", at(ORIGINAL, epsilon)),
            ("noisy", at(NOISE, epsilon)),
            ("exchanged", at(REVERSED, epsilon)),
        ):
            what = f"{place.title}, ε = {epsilon:g}: MIG on {words} beside modified images"
            second = at(MODIFIED, epsilon)
            found.append(with_effect(compare_difference(what, first, second, 1), first, second))
    return found


def _rows(place: Place, scores: Scores) -> list[dict[str, Any]]:
    return [
        {
            "world": place.title,
            "images": condition,
            "ε": epsilon,
            "models": len(values),
            "MIG": float(np.mean(list(values.values()))),
            "deviation": float(np.std(list(values.values()), ddof=1)) if len(values) > 1 else None,
        }
        for condition, by_strength in scores.items()
        for epsilon, values in sorted(by_strength.items())
    ]


def _figure(place: Place, scores: Scores) -> "matplotlib.figure.Figure":
    """Every line begins at the original images, ε = 0."""
    original = scores.get(ORIGINAL, {})
    lines = {
        condition: _band(dict(original) | dict(by_strength))
        for condition, by_strength in scores.items()
        if condition != ORIGINAL
    }
    return bands({place.title: lines}, "ε", "MIG")


def _band(by_strength: Mapping[float, Mapping[int, float]]) -> Band:
    x = sorted(by_strength)
    values = [np.array(list(by_strength[epsilon].values())) for epsilon in x]
    ends = [mean_interval(one) if len(one) > 1 else (np.nan, np.nan) for one in values]
    return Band(x, [one.mean() for one in values], [low for low, _ in ends], [high for _, high in ends])


SOURCE = "unweave, beyond Zietlow (2022), chapter 4"

CONTROLS = (
    any_condition(judge),
    control_of(judge_with, "noise", "noisy images of the same ε", "on original beside modified images"),
)

REPRODUCTION = Reproduction("u-epsilon", TITLE, SOURCE, study, judge, CONTROLS)
