"""Permutation tests: exact where all arrangements can be counted, otherwise over random ones (Phipson & Smyth, 2010).

All are one-sided: the share of arrangements whose statistic is at least as large as the observed one. So p of a
statistic and p of its negative answer "larger?" and "smaller?", and both may be small samples' 0.5.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.shapes import Float, Shaped

MOST_COUNTED = 20_000
"""Arrangements up to which all are counted."""

N_DRAWS, N_CROSSED = 9_999, 999


@dataclass(frozen=True)
class Tested:
    """A statistic, how often it is at least as large or as small by chance, and the least p that n allows."""

    statistic: float
    larger: float
    smaller: float
    least: float


def paired_test(differences: Float[np.ndarray, " pair"], *, seed: int = 0) -> Tested:
    """Mean of differences between pairs; under no difference every sign is as likely as the other."""
    n = len(differences)
    if 2**n <= MOST_COUNTED:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n))).reshape(-1, n)
        return _tested(differences.mean(), signs @ differences / n, exact=True, least=0.5**n)
    signs = np.random.default_rng(seed).choice((1.0, -1.0), size=(N_DRAWS, n))
    return _tested(differences.mean(), signs @ differences / n, exact=False, least=1 / (N_DRAWS + 1))


def unpaired_test(first: Float[np.ndarray, " run"], second: Float[np.ndarray, " other"], *, seed: int = 0) -> Tested:
    """Difference of two means; under no difference every division of the values is as likely as the other."""
    values, n = np.concatenate([first, second]), len(first)
    rest = len(values) - n
    counted = math.comb(len(values), n)
    if counted <= MOST_COUNTED:
        chosen = np.array(list(itertools.combinations(range(len(values)), n)))
    else:
        order = np.random.default_rng(seed).random((N_DRAWS, len(values))).argsort(1)
        chosen = order[:, :n]
    sums = values[chosen].sum(1)
    # mean₁ − mean₂ = sum₁ (1/n₁ + 1/n₂) − sum/n₂
    found = sums * (1 / n + 1 / rest) - values.sum() / rest
    exact = counted <= MOST_COUNTED
    return _tested(first.mean() - second.mean(), found, exact=exact, least=1 / (counted if exact else N_DRAWS + 1))


def trend_test(
    x: Float[np.ndarray, " run"],
    y: Float[np.ndarray, " run"],
    blocks: Shaped[np.ndarray, " run"] | None = None,
    *,
    seed: int = 0,
) -> Tested:
    """Spearman's rank correlation; under no trend every order of y is as likely as the other.

    ``blocks`` names what belongs together, such as runs of one seed: y is then exchanged within blocks only.
    """
    from scipy.stats import rankdata

    first, second = _unit(rankdata(x)), _unit(rankdata(y))
    n = len(first)
    if blocks is None and math.factorial(n) <= MOST_COUNTED:
        orders = np.array(list(itertools.permutations(range(n))))
        # the same ranks in another order may be the same arrangement: the least p counts the ties
        found = second[orders] @ first
        least = float(np.mean(found >= found.max() - 1e-12))
        return _tested(second @ first, found, exact=True, least=least)
    orders = _orders(n, blocks, np.random.default_rng(seed))
    return _tested(second @ first, second[orders] @ first, exact=False, least=1 / (N_DRAWS + 1))


def crossed_test(first: np.ndarray, second: np.ndarray, *, seed: int = 0) -> Tested:
    """Spearman's rank correlation of two scores over a grid (objectives, strengths, seeds), NaN where a run is missing.

    Under no relation the levels of every axis are as good in any other order for the second score: runs that share one
    may be alike for that alone, and stay together.
    """
    one, other = _unit_ranks(first), _unit_ranks(second)
    generator = np.random.default_rng(seed)
    orders = (np.ix_(*(generator.permutation(n) for n in first.shape)) for _ in range(N_CROSSED))
    found = np.array([_product(one, other[order]) for order in orders])
    return _tested(_product(one, other), found, exact=False, least=1 / (N_CROSSED + 1))


def _unit_ranks(scores: np.ndarray) -> np.ndarray:
    """Centred ranks, NaN where a score is missing."""
    from scipy.stats import rankdata

    found = np.full(scores.shape, np.nan)
    known = np.isfinite(scores)
    found[known] = _unit(rankdata(scores[known]))
    return found


def _product(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation over the runs that both have; 0 where one of the two does not vary."""
    known = np.isfinite(first) & np.isfinite(second)
    if not known.any():
        return 0.0
    one, other = first[known] - first[known].mean(), second[known] - second[known].mean()
    length = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / length if length > 1e-12 else 0.0


def _orders(n: int, blocks: Shaped[np.ndarray, " run"] | None, generator: np.random.Generator) -> np.ndarray:
    keys = generator.random((N_DRAWS, n))
    if blocks is None:
        return keys.argsort(1)
    members: Sequence[np.ndarray] = [np.flatnonzero(blocks == block) for block in np.unique(blocks)]
    orders = np.empty((N_DRAWS, n), dtype=np.int64)
    for rows in members:
        orders[:, rows] = rows[keys[:, rows].argsort(1)]
    return orders


def _unit(ranks: np.ndarray) -> np.ndarray:
    """Centred and of length 1, so that a product of two is their correlation; zeros where all are equal."""
    centred: np.ndarray = ranks - ranks.mean()
    length = math.sqrt(float(centred @ centred))
    return centred / length if length > 0 else centred


def _tested(observed: float, found: np.ndarray, *, exact: bool, least: float) -> Tested:
    # equal up to rounding is equal
    slack = 1e-12 * max(1.0, float(np.abs(found).max()))
    extra, total = (0, len(found)) if exact else (1, len(found) + 1)
    larger = (int((found >= observed - slack).sum()) + extra) / total
    smaller = (int((found <= observed + slack).sum()) + extra) / total
    return Tested(float(observed), larger, smaller, least)
