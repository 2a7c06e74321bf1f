"""k-7: no unsupervised score tells which model disentangles, and settings hardly rank alike on two worlds.

Locatello et al. (2019), §5.4 and §5.5.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import heat_map
from unweave.recipes.controls import altered, apart, with_columns
from unweave.recipes.locatello2019.settings import (
    EXTENTS,
    HOW,
    LUCK,
    METRICS,
    OF_RUNS,
    SOURCE,
    about,
    grid_study,
    settled_table,
    varies_by_setting,
)
from unweave.recipes.reproduction import Reproduction
from unweave.shapes import Float
from unweave.studies.measures.polarised import Polarised
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import crossed_interval
from unweave.studies.statistics.rank_correlations import rank_correlations, spearman
from unweave.studies.statistics.settings import column, cube, grid
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_between, compare_scores

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "No score without labels selects a model"

SCORES = {
    "reconstruction": "polarised.reconstruction",
    "KL": "polarised.kl_sum",
    "ELBO": "elbo",
    "TC of mean codes": "codes.mean.total_correlation",
    "TC of sampled codes": "codes.sampled.total_correlation",
}
RELIED = 0.7
"""A rank correlation that one could select by: it explains half of the ranks' variance."""
METRIC_PLACES = tuple(range(len(SCORES), len(SCORES) + len(METRICS)))
"""Behind the scores without labels."""


def study(size: str) -> Study:
    """dSprites, Color-dSprites and Cars3D, as far as a size has them; the models of k-1 to k-4."""
    worlds = ("dsprites", "color_dsprites") if size == "small" else ("dsprites", "color_dsprites", "cars3d")
    return grid_study("k-7", size, worlds, TITLE, (Polarised(min(10_000, EXTENTS[size].n_samples)),))


def judge(results: Results, size: str) -> Outcome:
    """Every score beside every metric, world by world; and how settings rank on pairs of worlds."""
    table = _with_elbo(settled_table(results))
    comparisons: list[Comparison] = []
    figures: dict[str, matplotlib.figure.Figure] = {}
    for (world,), part in table.group_by(["world"], maintain_order=True):
        values = {name: column(part, source) for name, source in (SCORES | METRICS).items()}
        found = rank_correlations(values, n_draws=200)
        scores = grid(part, list((SCORES | METRICS).values()))
        for place, score in enumerate(SCORES):
            comparisons.append(_unreliable(str(world), score, scores[..., [place, *METRIC_PLACES]]))
        rows, places = ([found.names.index(name) for name in names] for names in (SCORES, METRICS))
        figures[f"Scores without labels and metrics, {world}"] = heat_map(
            found.value[np.ix_(rows, places)],
            list(SCORES),
            list(METRICS),
            "Spearman's correlation",
            limits=(-1, 1),
            diverging=True,
        )
    comparisons += _across(table)
    notes = (
        *about(size, table),
        "A score that selects goes with all six metrics: what is judged is the mean of its six rank correlations, which"
        f" the source finds inconsistent. Reliable is read as beyond ±{RELIED:g}, a choice of ours.",
        OF_RUNS,
        "Across worlds, settings are ranked by their mean over seeds; the source finds that they rank alike between"
        " dSprites and Color-dSprites, and less so between others.",
    )
    return Outcome(tuple(comparisons), figures, {}, notes)


def _with_elbo(table: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    elbo = -column(table, SCORES["reconstruction"]) - column(table, SCORES["KL"])
    return table.with_columns(pl.Series("elbo", elbo))


def _unreliable(world: str, score: str, scores: Float[np.ndarray, "objective place seed score"]) -> Comparison:
    """The mean rank correlation of a score with the six metrics lies between −0.7 and 0.7."""
    whole = np.where(np.isfinite(scores).all(-1, keepdims=True), scores, np.nan)
    known = whole[np.isfinite(whole[..., 0])]
    what = f"{world}, {score}: mean rank correlation with the six metrics"
    if len(known) < 8 or not np.ptp(known, axis=0).all():
        return compare_between(what, float("nan"), None, (-RELIED, RELIED), len(known), HOW)

    def mean(part: np.ndarray) -> float:
        return float(np.mean([spearman(part[..., 0], part[..., place]) for place in range(1, part.shape[-1])]))

    found = compare_between(what, mean(whole), crossed_interval(mean, whole, 3), (-RELIED, RELIED), len(known), HOW)
    if found.verdict != "agrees" or all(varies_by_setting(whole[..., place]) for place in range(whole.shape[-1])):
        return found
    return replace(found, verdict="cannot tell", note=LUCK)


def _across(table: "pl.DataFrame") -> list[Comparison]:
    """Whether dSprites and Color-dSprites rank settings alike, metric by metric, by their means over seeds."""
    whole, names = cube(table, list(METRICS.values())), table.unique("setting", maintain_order=True)
    if not {"dsprites", "color_dsprites"} <= {*whole.worlds}:
        return []
    known = np.isfinite(whole.scores)
    sums = np.where(known, whole.scores, 0.0).sum(2)
    means = np.where(known.any(2), sums / np.maximum(known.sum(2), 1), np.nan)
    objectives, places = (names[name].to_list() for name in ("objective", "place"))
    found = []
    for number, name in enumerate(METRICS):
        one, other = (
            _by_place(means[whole.worlds.index(world), :, number], objectives, places)
            for world in ("dsprites", "color_dsprites")
        )
        found.append(
            compare_scores(f"dsprites and color_dsprites, {name}: rank correlation of settings", one, other, 1)
        )
    return found


def _by_place(
    means: Float[np.ndarray, " setting"], objectives: Sequence[str], places: Sequence[int]
) -> Float[np.ndarray, "objective place"]:
    rows = [sorted(set(objectives)).index(one) for one in objectives]
    found = np.full((len(set(objectives)), max(places) + 1), np.nan)
    found[rows, list(places)] = means
    return found


def _planted(results: Results, generator: np.random.Generator) -> Results:
    """Scores that go with every metric: metrics of one common worth, and scores that know it."""
    n = results.table.height
    worth = generator.normal(size=n)
    noisy = {name: worth + generator.normal(0, 0.2, n) for name in (*METRICS.values(), *SCORES.values())}
    # the ELBO is made of reconstruction and KL, losses: they know it with the other sign
    noisy |= {name: -noisy[name] for name in (SCORES["reconstruction"], SCORES["KL"])}
    noisy.pop("elbo")
    return with_columns(results, noisy)


CONTROLS = (
    altered(judge, "planted", "scores that know what the metrics say.", _planted, about="six metrics"),
    apart(judge, "scores dealt to all settings and worlds at random.", list(METRICS.values()), about="of settings"),
)

REPRODUCTION = Reproduction("k-7", TITLE, f"{SOURCE}, §5.4 and §5.5", study, judge, CONTROLS)
