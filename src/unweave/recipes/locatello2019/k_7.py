"""k-7: no unsupervised score tells which model disentangles, and settings hardly rank alike on two worlds.

Locatello et al. (2019), §5.4 and §5.5.
"""

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import heat_map
from unweave.recipes.controls import altered, apart, with_columns
from unweave.recipes.locatello2019.settings import EXTENTS, METRICS, SOURCE, about, grid_study, settled_table
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.polarised import Polarised
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import bootstrap_interval
from unweave.studies.statistics.rank_correlations import rank_correlations
from unweave.studies.statistics.settings import column, cube
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_between, compare_sign

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
HOW = "bootstrap over runs"


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
        for score in SCORES:
            comparisons.append(_unreliable(str(world), score, values))
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
        "Across worlds, settings are ranked by their mean over seeds; the source finds that they rank alike between"
        " dSprites and Color-dSprites, and less so between others.",
    )
    return Outcome(tuple(comparisons), figures, {}, notes)


def _with_elbo(table: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    elbo = -column(table, SCORES["reconstruction"]) - column(table, SCORES["KL"])
    return table.with_columns(pl.Series("elbo", elbo))


def _unreliable(world: str, score: str, values: dict[str, np.ndarray]) -> Comparison:
    """The mean rank correlation of a score with the six metrics lies between −0.7 and 0.7."""
    rows = np.array([values[name] for name in (score, *METRICS)])
    kept = rows[:, np.isfinite(rows).all(0)]
    what = f"{world}, {score}: mean rank correlation with the six metrics"
    if kept.shape[1] < 8 or np.ptp(kept[0]) == 0:
        return compare_between(what, float("nan"), None, (-RELIED, RELIED), kept.shape[1], HOW)

    def mean(chosen: np.ndarray) -> float:
        named = {str(place): row[chosen] for place, row in enumerate(kept)}
        return float(np.nanmean(rank_correlations(named, n_draws=0).value[0, 1:]))

    n = kept.shape[1]
    interval = bootstrap_interval(mean, n, n_draws=200)
    return compare_between(what, mean(np.arange(n)), interval, (-RELIED, RELIED), n, HOW)


def _across(table: "pl.DataFrame") -> list[Comparison]:
    """Whether dSprites and Color-dSprites rank settings alike, metric by metric, and other worlds less."""
    whole = cube(table, list(METRICS.values()))
    means = np.nanmean(whole.scores, axis=2) if whole.scores.size else whole.scores
    found = []
    for first, second in combinations(range(len(whole.worlds)), 2):
        pair = f"{whole.worlds[first]} and {whole.worlds[second]}"
        if {whole.worlds[first], whole.worlds[second]} == {"dsprites", "color_dsprites"}:
            for place, name in enumerate(METRICS):
                found.append(
                    _alike(
                        f"{pair}, {name}: rank correlation of settings", means[first, :, place], means[second, :, place]
                    )
                )
    return found


def _alike(what: str, first: np.ndarray, second: np.ndarray) -> Comparison:
    kept = np.isfinite(first) & np.isfinite(second)
    if kept.sum() < 5:
        return compare_sign(what, float("nan"), None, int(kept.sum()), 1, "bootstrap over settings")
    told = rank_correlations({"first": first[kept], "second": second[kept]}, n_draws=400)
    interval = (float(told.low[0, 1]), float(told.high[0, 1]))
    return compare_sign(what, float(told.value[0, 1]), interval, int(kept.sum()), 1, "bootstrap over settings")


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
