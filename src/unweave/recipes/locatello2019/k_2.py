"""k-2: how far the metrics agree (Locatello et al., 2019, Figure 2)."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import heat_map
from unweave.recipes.controls import apart
from unweave.recipes.locatello2019.settings import METRICS, SOURCE, about, grid_study, settled_table
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import bootstrap_interval
from unweave.studies.statistics.rank_correlations import RankCorrelations, rank_correlations
from unweave.studies.statistics.settings import column
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_sign

TITLE = "All metrics but modularity agree, mildly"
OTHERS = tuple(name for name in METRICS if name != "Modularity")
STRONG = (("BetaVAE", "FactorVAE"), ("MIG", "DCI"))
N_DRAWS = 400

Pair = tuple[int, int]


def study(size: str) -> Study:
    """Noisy-dSprites as published; dSprites at ``small``, so that k-1 and k-3 ask the same models."""
    worlds = ("dsprites",) if size == "small" else ("noisy_dsprites",)
    return grid_study("k-2", size, worlds, TITLE)


def judge(results: Results, size: str) -> Outcome:
    """Signs of the correlations, and which stand out."""
    table = settled_table(results)
    columns = {name: column(table, source) for name, source in METRICS.items()}
    found = rank_correlations(columns, n_draws=N_DRAWS)
    comparisons = [_positive(found, *pair) for pair in combinations(OTHERS, 2)]
    values = np.array([columns[name] for name in METRICS])
    comparisons += [_stronger(values, *pair) for pair in STRONG] + [_modularity(values)]
    figure = heat_map(
        found.value, list(METRICS), list(METRICS), "Spearman's correlation", limits=(-1, 1), diverging=True
    )
    notes = (
        *about(size, table),
        "The published figure is for Noisy-dSprites. Its text calls correlations mild or strong without numbers, so"
        " what is judged are their signs, and whether the pairs called strong exceed the mean of the other pairs.",
    )
    return Outcome(tuple(comparisons), {"Rank correlation of the metrics": figure}, {"Pairs": found.rows()}, notes)


def _positive(found: RankCorrelations, first: str, second: str) -> Comparison:
    i, j = found.names.index(first), found.names.index(second)
    interval = (float(found.low[i, j]), float(found.high[i, j]))
    what = f"{first} and {second}: rank correlation"
    return compare_sign(what, float(found.value[i, j]), interval, int(found.n[i, j]), 1, "bootstrap over runs")


def _stronger(values: np.ndarray, first: str, second: str) -> Comparison:
    names = list(METRICS)
    own = (names.index(first), names.index(second))
    pairs = [(names.index(a), names.index(b)) for a, b in combinations(OTHERS, 2)]
    others = [pair for pair in pairs if set(pair) != set(own)]
    what = f"{first} and {second}: correlation less the mean of the other pairs without modularity"
    return _difference(what, values, [own], others)


def _modularity(values: np.ndarray) -> Comparison:
    names = list(METRICS)
    place = names.index("Modularity")
    own = [(place, names.index(name)) for name in OTHERS]
    others = [(names.index(a), names.index(b)) for a, b in combinations(OTHERS, 2)]
    what = "Modularity's mean correlation with the others less their mean correlation among themselves"
    return _difference(what, values, own, others, sign=-1)


def _difference(
    what: str, values: np.ndarray, first: Sequence[Pair], second: Sequence[Pair], sign: int = 1
) -> Comparison:
    kept = values[:, np.isfinite(values).all(0)]
    n = kept.shape[1]
    if n < 4:
        return compare_sign(what, float("nan"), None, n, sign, "bootstrap over runs")

    def statistic(rows: np.ndarray) -> float:
        named = {str(place): column[rows] for place, column in enumerate(kept)}
        matrix = rank_correlations(named, n_draws=0).value
        return float(np.nanmean([matrix[pair] for pair in first]) - np.nanmean([matrix[pair] for pair in second]))

    interval = bootstrap_interval(statistic, n, n_draws=N_DRAWS)
    return compare_sign(what, statistic(np.arange(n)), interval, n, sign, "bootstrap over runs")


CONTROLS = (apart(judge, "each metric's scores dealt to the models at random, by themselves.", list(METRICS.values())),)

REPRODUCTION = Reproduction("k-2", TITLE, f"{SOURCE}, Figure 2", study, judge, CONTROLS)
