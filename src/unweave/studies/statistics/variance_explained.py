"""Share of a score's variance that a grouping explains: R² of a one-way analysis of variance (Fisher, 1925).

Locatello et al. (2019, Table 2) regress scores on the objective, and on the objective together with its strength.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.studies.statistics.intervals import LEVEL, Interval

ROUNDING = 1e-18
"""Of a squared relative difference, up to which two values are equal."""


@dataclass(frozen=True)
class VarianceExplained:
    """``share`` is R². ``adjusted`` takes off what so many groups explain of pure noise."""

    share: float
    adjusted: float
    interval: Interval
    """95 %, of the share in the population, by the noncentral F distribution."""
    n: int
    n_groups: int


def variance_explained(
    values: Sequence[float | int] | np.ndarray, groups: Sequence[Any] | np.ndarray
) -> VarianceExplained:
    """How much of the variance of ``values`` lies between the groups.

    R² of k groups of noise is about (k − 1)/(n − 1), a quarter for 24 groups of four seeds. So shares of studies of
    different sizes are compared by ``adjusted`` and the interval, which do not carry it.
    """
    found = np.asarray(values, dtype=np.float64)
    kept = np.isfinite(found)
    found, names = found[kept], np.asarray([str(group) for group in groups])[kept]
    levels, place = np.unique(names, return_inverse=True)
    n, k = len(found), len(levels)
    if n <= k or k < 2:
        raise ValueError(f"variance between groups needs two groups and more runs than groups, given {n} in {k}")
    means = np.bincount(place, found) / np.bincount(place)
    # R² = Σ_g n_g (m_g − m)² / Σ_i (x_i − m)²
    total = float(((found - found.mean()) ** 2).sum())
    within = float(((found - means[place]) ** 2).sum())
    if total <= ROUNDING * n * float(np.abs(found).max()) ** 2:
        raise ValueError("nothing can be explained where all values are equal")
    share = 1.0 - within / total
    adjusted = 1.0 - (1.0 - share) * (n - 1) / (n - k)
    return VarianceExplained(share, adjusted, _interval(share, n, k), n, k)


def _interval(share: float, n: int, k: int) -> Interval:
    """Shares λ/(λ + n) whose noncentral F puts the observed one at the ends of the middle 95 %."""
    if share >= 1.0 - 1e-12:
        return 1.0, 1.0
    observed = share / (k - 1) / ((1.0 - share) / (n - k))
    ends = (_noncentrality(observed, n, k, 0.5 + LEVEL / 2), _noncentrality(observed, n, k, 0.5 - LEVEL / 2))
    return ends[0] / (ends[0] + n), ends[1] / (ends[1] + n)


def _noncentrality(observed: float, n: int, k: int, level: float) -> float:
    """The λ under which an F this large or smaller has probability ``level``; 0 where none has."""
    from scipy.optimize import brentq
    from scipy.stats import ncf

    def excess(noncentrality: float) -> float:
        return float(ncf.cdf(observed, k - 1, n - k, noncentrality)) - level

    if excess(1e-9) <= 0:
        return 0.0
    high = max(1.0, observed * k)
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 1e-9, high, xtol=1e-6))
