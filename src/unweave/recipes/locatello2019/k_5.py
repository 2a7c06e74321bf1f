"""k-5: does disentanglement help a learner (Locatello et al., 2019, Figures 5 and 6)."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import heat_map
from unweave.plots.scatter import scatter
from unweave.recipes.controls import altered, apart, with_columns
from unweave.recipes.extent import at_size
from unweave.recipes.locatello2019.settings import (
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
from unweave.studies.measures.downstream import DownstreamAccuracy
from unweave.studies.results import Results
from unweave.studies.statistics.rank_correlations import RankCorrelations, rank_correlations
from unweave.studies.statistics.settings import column, grid
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_scores

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "Disentangled codes predict better, but need no fewer labels"

LEARNERS = {"logistic": "logistic regression", "trees": "boosted trees"}
LITTLE = 0.3
"""A rank correlation that is nothing to rely on: it explains less than a tenth of the ranks' variance."""

Grids = dict[str, Float[np.ndarray, "objective place seed"]]
"""Scores by their names."""

DOWNSTREAM = {
    "smoke": DownstreamAccuracy(("trees",), (100, 1000), 500, many=1000),
    "small": DownstreamAccuracy(),
    "paper": DownstreamAccuracy(),
}


def study(size: str) -> Study:
    """dSprites, as published."""
    return grid_study("k-5", size, ("dsprites",), TITLE, (at_size(size, DOWNSTREAM),))


def judge(results: Results, size: str) -> Outcome:
    """Accuracy goes with every score but modularity; efficiency goes with none."""
    table = settled_table(results)
    asked = DOWNSTREAM[size]
    learners, many = asked.learners, asked.many
    told = {
        f"{learner}, {n:,} labels": f"downstream.{learner}.accuracy_{n}" for learner in learners for n in asked.sizes
    }
    told |= {f"{learner}, efficiency": f"downstream.{learner}.efficiency" for learner in learners}
    columns = {name: column(table, source) for name, source in (METRICS | told).items()}
    found = rank_correlations(columns)
    scores = grid(table, list((METRICS | told).values()))
    grids = {name: scores[..., place] for place, name in enumerate(columns)}
    comparisons = [
        _accuracy(grids, metric, learner, many) for learner in learners for metric in METRICS if metric != "Modularity"
    ]
    comparisons += [_efficiency(grids, metric) for metric in METRICS]
    notes = (
        *about(size, table),
        f"Efficiency is the accuracy with {asked.few:,} labels over that with {many:,}. No reliable gain is"
        f" read as a rank correlation within ±{LITTLE:g}: a choice of ours, since the publication names no number.",
        OF_RUNS,
        "A score may go with accuracy because it measures how much a code says, not how it is arranged; the authors"
        " leave that open, and so does this page.",
    )
    figures = {"Scores against what learners get": _heat(found, list(told)), "Efficiency": _scatter(table)}
    rows = [row for row in found.rows() if (row["first"] in METRICS) != (row["second"] in METRICS)]
    return Outcome(tuple(comparisons), figures, {"Rank correlations": rows}, notes)


def _accuracy(grids: Grids, metric: str, learner: str, many: int) -> Comparison:
    what = f"{metric} and the accuracy of {LEARNERS[learner]}: rank correlation"
    return compare_scores(what, grids[metric], grids[f"{learner}, {many:,} labels"], 1)


def _efficiency(grids: Grids, metric: str) -> Comparison:
    what = f"{metric} and the efficiency of boosted trees"
    scores, efficiency = grids[metric], grids["trees, efficiency"]
    found = compare_scores(what, scores, efficiency, 0, tolerance=LITTLE)
    if found.verdict != "agrees" or (varies_by_setting(scores) and varies_by_setting(efficiency)):
        return found
    return replace(found, verdict="cannot tell", note=f"{found.note}; {LUCK}")


def _heat(found: RankCorrelations, told: list[str]) -> "matplotlib.figure.Figure":
    rows = [found.names.index(name) for name in METRICS]
    places = [found.names.index(name) for name in told]
    matrix = found.value[np.ix_(rows, places)]
    return heat_map(matrix, list(METRICS), told, "Spearman's correlation", limits=(-1, 1), diverging=True)


def _scatter(table: "pl.DataFrame") -> "matplotlib.figure.Figure":
    series, names = {}, {}
    for (objective,), part in table.group_by(["objective"], maintain_order=True):
        x, y = column(part, METRICS["FactorVAE"]), column(part, "downstream.trees.efficiency")
        series[str(objective)] = (x, y)
        names[str(objective)] = [f"{s}, seed {n}" for s, n in part.select("setting", "seed").iter_rows()]
    return scatter(series, "One point a model", "FactorVAE score", "efficiency of boosted trees", names=names)


def _planted(results: Results, generator: np.random.Generator) -> Results:
    """Efficiencies that go with every score: the mean of a model's ranks, with noise."""
    table = settled_table(results)
    ranks = [np.argsort(np.argsort(column(table, name))) / table.height for name in METRICS.values()]
    planted = np.mean(ranks, axis=0) + generator.normal(0, 0.02, table.height)
    return with_columns(results, {f"downstream.{learner}.efficiency": planted for learner in LEARNERS})


CONTROLS = (
    apart(judge, "scores dealt to the models at random.", list(METRICS.values()), about="accuracy"),
    altered(judge, "planted", "efficiencies that rise with every score.", _planted, about="efficiency"),
)

REPRODUCTION = Reproduction("k-5", TITLE, f"{SOURCE}, Figures 5 and 6", study, judge, CONTROLS)
