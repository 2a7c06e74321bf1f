"""The judge of Figures 4.4 to 4.7: scores on modified images as the main hyperparameter is scaled."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.zietlow2022.bias import (
    AMOUNTS,
    COLUMNS,
    CONDITIONS,
    MODIFIED,
    ORIGINAL,
    VARIATIONAL,
    Asked,
    Place,
    about,
    grouped,
    methods_of,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import Groups, score_words, undecided
from unweave.studies.results import Results
from unweave.studies.statistics.line_search import line_search
from unweave.studies.statistics.settings import column
from unweave.studies.verdicts import Comparison, compare_difference

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

ASKED = Asked(VARIATIONAL, CONDITIONS, searched=True, places=("shapes3d_like", "shapes3d", "micro"))
"""What the four figures ask for: Shapes3D, where a size has it; models on noisy images, unscaled, for a control."""

STRENGTHS = {"β-VAE": "beta", "FactorVAE": "gamma", "TC-VAE": "beta", "SlowVAE": "beta"}


def judge_search(metric: str, results: Results, size: str) -> Outcome:
    """Whether any scale brings the score back, over-pruned runs discarded and counted."""
    groups, places = grouped(results), places_of(size, ASKED)
    methods = methods_of(size, ASKED)
    claims = [_claim(groups, place, method, metric) for place in places for method in methods]
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    figures = {
        f"{score_words(metric)} on modified {place.title}": _figure(groups, place, methods, metric) for place in places
    }
    rows = [row for place in places for method in methods for row in _rows(groups, place, method, metric)]
    scales = ", ".join(f"{scale:g}" for scale in AMOUNTS[size].scales)
    rule = (
        f"The main hyperparameter is scaled by {scales}. Runs with fewer latents in use (mean σ² below 0.8) than"
        " factors are discarded, by the source's rule, and counted in the table. The best scale is"
        " chosen by its own mean, which favours recovery: the claim is tested against its own interest."
    )
    return Outcome(tuple(claims), figures, {"Every scale": rows}, (*about(size), rule))


def _claim(groups: Groups, place: Place, method: str, metric: str) -> Comparison:
    """Original images beside the best scale on modified ones; the best is chosen after the over-pruned are gone."""
    scaled = _kept(groups.get((place.title, method, MODIFIED)), place, method, metric)
    best = max(scaled, key=lambda scale: float(np.mean(list(scaled[scale].values()))), default=None)
    original = _kept(groups.get((place.title, method, ORIGINAL)), place, method, metric).get(1.0, {})
    what = f"{place.title}, {method}: {score_words(metric)} on original images beside the best scale on modified ones"
    return compare_difference(what, original, {} if best is None else scaled[best], 1)


def _kept(part: "pl.DataFrame | None", place: Place, method: str, metric: str) -> dict[float, dict[int, float]]:
    """Scores by scale and seed of the runs that are not over-pruned."""
    found: dict[float, dict[int, float]] = {}
    for scale, seed, score, pruned in _runs(part, place, method, metric):
        if not pruned and math.isfinite(score):
            found.setdefault(scale, {})[seed] = score
    return found


def _runs(part: "pl.DataFrame | None", place: Place, method: str, metric: str) -> list[tuple[float, int, float, bool]]:
    """Scale, seed, score, and whether over-pruned, of every run."""
    if part is None or not part.height:
        return []
    scales = column(part, f"objective.{STRENGTHS[method]}") / place.strengths[method]
    scores, active = column(part, COLUMNS[metric]), column(part, "alignment.n_active")
    rows = zip(scales.round(4).tolist(), part["seed"].to_list(), scores.tolist(), (active < place.n_factors).tolist())
    return list(rows)


def _rows(groups: Groups, place: Place, method: str, metric: str) -> list[dict[str, Any]]:
    runs = _runs(groups.get((place.title, method, MODIFIED)), place, method, metric)
    if not runs:
        return []
    scales, _, scores, pruned = zip(*runs)
    used = [0 if one else place.n_factors for one in pruned]
    return [
        {
            "world": place.title,
            "method": method,
            "scale": point.strength,
            metric: point.mean,
            "runs kept": point.n,
            "over-pruned, discarded": point.n_discarded,
        }
        for point in line_search(scales, scores, used, place.n_factors).points
    ]


def _figure(groups: Groups, place: Place, methods: tuple[str, ...], metric: str) -> "matplotlib.figure.Figure":
    names, samples, families = [], [], []
    for number, method in enumerate(methods):
        part = groups.get((place.title, method, MODIFIED))
        kept = _kept(part, place, method, metric)
        for scale in sorted({scale for scale, *_ in _runs(part, place, method, metric)}):
            names.append(f"{method} × {scale:g}")
            samples.append(list(kept.get(scale, {}).values()))
            families.append(number)
    return violins(samples or [[]], names or ["none"], "", score_words(metric), families=families or [0])
