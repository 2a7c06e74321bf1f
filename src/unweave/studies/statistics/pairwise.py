"""Every two settings compared: difference of means, interval and p, paired by seed where seeds agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.studies.statistics.intervals import mean_interval, welch_interval
from unweave.studies.statistics.permutation import paired_test, unpaired_test


@dataclass(frozen=True)
class Pair:
    """``difference`` is first − second; ``p`` is two-sided, ``corrected`` for the number of pairs (Holm, 1979)."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    corrected: float
    paired: bool
    n: int


def pairwise(values: Mapping[str, Mapping[Any, float]]) -> tuple[Pair, ...]:
    """Compare every two groups of values by seed. Groups that share fewer than three seeds are not paired."""
    names = list(values)
    drafts = [_pair(a, b, values[a], values[b]) for i, a in enumerate(names) for b in names[i + 1 :]]
    found = [pair for pair in drafts if pair is not None]
    corrected = holm(np.array([pair.p for pair in found]))
    return tuple(Pair(*_fields(pair), float(q), pair.paired, pair.n) for pair, q in zip(found, corrected))


def holm(p_values: np.ndarray) -> np.ndarray:
    """p-values corrected for their number by Holm's stepwise rule."""
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    stepped = np.maximum.accumulate(np.minimum(1.0, p_values[order] * factors)) if len(p_values) else p_values
    corrected = np.empty_like(p_values, dtype=np.float64)
    corrected[order] = stepped
    return corrected


def _pair(first: str, second: str, one: Mapping[Any, float], other: Mapping[Any, float]) -> Pair | None:
    shared = [seed for seed in one if seed in other and np.isfinite(one[seed]) and np.isfinite(other[seed])]
    if len(shared) >= 3:
        differences = np.array([one[seed] - other[seed] for seed in shared], dtype=np.float64)
        tested, (low, high), n = paired_test(differences), mean_interval(differences), len(shared)
    else:
        a, b = (np.array([v for v in part.values() if np.isfinite(v)], dtype=np.float64) for part in (one, other))
        if min(len(a), len(b)) < 2:
            return None
        tested, (low, high), n = unpaired_test(a, b), welch_interval(a, b), min(len(a), len(b))
    p = min(1.0, 2 * min(tested.larger, tested.smaller))
    return Pair(first, second, tested.statistic, low, high, p, p, len(shared) >= 3, n)


def _fields(pair: Pair) -> tuple[str, str, float, float, float, float]:
    return pair.first, pair.second, pair.difference, pair.low, pair.high, pair.p
