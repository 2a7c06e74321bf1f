"""Intervals at 95 %: of a mean, of a difference of means, of a share, and of anything by the bootstrap."""

import math
from collections.abc import Callable

import numpy as np

from unweave.shapes import Float

LEVEL = 0.95

Interval = tuple[float, float]


def mean_interval(values: Float[np.ndarray, " run"]) -> Interval:
    """Student's: mean ± t · s/√n."""
    n = len(values)
    _at_least(n, 2)
    reach = _t(n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return float(values.mean()) - reach, float(values.mean()) + reach


def welch_interval(first: Float[np.ndarray, " run"], second: Float[np.ndarray, " other"]) -> Interval:
    """Welch's, of the difference of two means: Δ ± t_ν · √(s₁²/n₁ + s₂²/n₂)."""
    _at_least(min(len(first), len(second)), 2)
    squares = [float(part.var(ddof=1)) / len(part) for part in (first, second)]
    middle = float(first.mean() - second.mean())
    reach = welch_reach(squares[0], len(first), squares[1], len(second))
    return middle - reach, middle + reach


def welch_reach(square: float, n: int, other_square: float, other_n: int) -> float:
    """Half the length of Welch's interval, from the squared standard errors of two means and their numbers."""
    total = square + other_square
    if total == 0.0:
        return 0.0
    # ν = (a + b)² / (a²/(n₁−1) + b²/(n₂−1))
    degrees = total**2 / (square**2 / max(1, n - 1) + other_square**2 / max(1, other_n - 1))
    return _t(degrees) * math.sqrt(total)


def wilson_interval(successes: float | int, n: int) -> Interval:
    """Wilson's (1927), of a share: it stays inside [0, 1] and holds at shares near the ends."""
    _at_least(n, 1)
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n = {n}, not {successes}")
    from scipy.stats import norm

    z, share = float(norm.ppf(0.5 + LEVEL / 2)), successes / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def correlation_interval(correlation: float, n: int) -> Interval:
    """Of a rank correlation, by Fisher's transformation with the error of Bonett & Wright (2000)."""
    if n < 4 or abs(correlation) >= 1.0:
        return (-1.0, 1.0) if n < 4 else (correlation, correlation)
    from scipy.stats import norm

    # se(atanh r) = √((1 + r²/2) / (n − 3))
    error = math.sqrt((1 + correlation**2 / 2) / (n - 3))
    reach = float(norm.ppf(0.5 + LEVEL / 2)) * error
    return math.tanh(math.atanh(correlation) - reach), math.tanh(math.atanh(correlation) + reach)


def bootstrap_interval(
    statistic: Callable[[np.ndarray], float], n: int, *, n_draws: int = 1000, seed: int = 0
) -> Interval:
    """Percentiles of a statistic over draws of n row numbers with replacement (Efron, 1979)."""
    _at_least(n, 2)
    generator = np.random.default_rng(seed)
    found = np.array([statistic(generator.integers(n, size=n)) for _ in range(n_draws)])
    low, high = np.nanquantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def crossed_interval(statistic: Callable[[np.ndarray], float], scores: np.ndarray, n_axes: int) -> Interval:
    """Of a statistic of scores over a grid, whose runs are alike along each of its first ``n_axes`` axes.

    Each level of each axis is left out once, and what that gives for every axis is added up: too wide for runs that are
    independent, right for runs that are alike along one axis. Where nothing varies without a level, the statistic is 0.
    """
    variance = 0.0
    for axis in range(n_axes):
        n = scores.shape[axis]
        without = (
            np.nan_to_num([statistic(np.delete(scores, place, axis)) for place in range(n)]) if n > 1 else np.zeros(1)
        )
        variance += (n - 1) / n * float(((without - without.mean()) ** 2).sum())
    from scipy.stats import norm

    reach, middle = float(norm.ppf(0.5 + LEVEL / 2)) * math.sqrt(variance), statistic(scores)
    return middle - reach, middle + reach


def jackknife_interval(value: float, without: Float[np.ndarray, " run"]) -> Interval:
    """Around a statistic, from its values with one unit left out at a time (Tukey, 1958)."""
    n = len(without)
    _at_least(n, 2)
    # se² = (n − 1)/n Σ (θ₋ᵢ − θ̄)²
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    return value - _t(n - 1) * error, value + _t(n - 1) * error


def _t(degrees: float | int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2, degrees))


def _at_least(n: int, least: int) -> None:
    if n < least:
        raise ValueError(f"an interval needs {least} values or more, given {n}")
