"""Rank correlations between the columns of a study, with intervals from a bootstrap over runs (Spearman, 1904)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unweave.shapes import Float, Int

N_DRAWS = 200


@dataclass(frozen=True)
class RankCorrelations:
    """Spearman's correlation of every pair of columns; NaN where one of the two does not vary."""

    names: tuple[str, ...]
    value: Float[np.ndarray, "column column"]
    low: Float[np.ndarray, "column column"]
    high: Float[np.ndarray, "column column"]
    n: Int[np.ndarray, "column column"]
    """Runs that have both numbers."""

    def rows(self) -> list[dict[str, float | int | str | None]]:
        """Every pair once, for a table."""
        pairs = [(i, j) for i in range(len(self.names)) for j in range(i + 1, len(self.names))]
        return [
            {
                "first": self.names[i],
                "second": self.names[j],
                "correlation": _none(self.value[i, j]),
                "low": _none(self.low[i, j]),
                "high": _none(self.high[i, j]),
                "n": int(self.n[i, j]),
            }
            for i, j in pairs
        ]


def rank_correlations(
    columns: Mapping[str, Sequence[float | int] | np.ndarray], *, n_draws: int = N_DRAWS, seed: int = 0
) -> RankCorrelations:
    """Of every pair of columns over the runs that have both.

    The interval is tanh(atanh ρ ± 1.96 s), s being the standard deviation of atanh ρ over ``n_draws`` samples of the
    runs with replacement: a few hundred give a good s, where percentiles would take thousands.
    """
    table = np.array([np.asarray(column, dtype=np.float64) for column in columns.values()])
    if table.ndim != 2 or table.shape[0] < 2:
        raise ValueError(f"rank correlations need two columns or more of equal length, given {len(columns)}")
    kept = np.isfinite(table)
    n = (kept[:, None] & kept[None]).sum(2)
    value = _by_pattern(table, kept, np.arange(table.shape[1]))
    n_runs = table.shape[1]
    rows = np.random.default_rng(seed).integers(n_runs, size=(n_draws, n_runs))
    draws = np.array([_by_pattern(table, kept, some) for some in rows])
    low, high = _interval(value, draws)
    return RankCorrelations(tuple(columns), value, low, high, n)


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Of the runs that have both; NaN where one of the two does not vary."""
    known = np.isfinite(first) & np.isfinite(second)
    if not known.any():
        return math.nan
    return float(_correlations(np.array([first[known], second[known]]))[0, 1])


def _by_pattern(table: np.ndarray, kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Correlations over some rows; pairs are ranked over the rows that both columns have."""
    if kept.all():
        return _correlations(table[:, rows])
    found = np.full((len(table), len(table)), np.nan)
    for i in range(len(table)):
        for j in range(i, len(table)):
            both = rows[kept[i, rows] & kept[j, rows]]
            if len(both) > 1:
                pair = _correlations(table[[i, j]][:, both])
                found[i, j] = found[j, i] = pair[0, 1]
    return found


def _correlations(table: np.ndarray) -> np.ndarray:
    """Pearson's correlation of mid-ranks."""
    ranks = np.array([_ranks(column) for column in table])
    centred = ranks - ranks.mean(1, keepdims=True)
    length = np.sqrt((centred**2).sum(1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = np.clip((centred @ centred.T) / np.outer(length, length), -1.0, 1.0)
    return found


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, equal values sharing the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    middle: np.ndarray = ends - (count + 1) / 2
    return middle[place]


def _interval(value: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # correlations of exactly ±1 have no finite transform; a hair inside they have
    inside = 1.0 - 1e-9
    spread = np.arctanh(np.clip(draws, -inside, inside))
    known = np.isfinite(spread)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, spread, 0.0).sum(0) / count
    error = np.sqrt(np.where(known, (spread - mean) ** 2, 0.0).sum(0) / count)
    middle = np.arctanh(np.clip(value, -inside, inside))
    low, high = np.tanh(middle - 1.959964 * error), np.tanh(middle + 1.959964 * error)
    return np.minimum(low, value), np.maximum(high, value)


def _none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
