"""Which rows of a table a metric sees: all of them for the score, random halves for its interval.

Half-sampling (the delete-half jackknife; Shao & Tu, 1995): over random halves of n rows, drawn without replacement, an
estimate has the variance that it has over tables of n rows, σ²/(n/2) − σ²/n = σ²/n. Where a metric uses some of the
rows only, the spread over halves is smaller than that, and :func:`stretch` says by how much. Drawing with replacement
would repeat rows, which inflates counted information, puts equal rows into training and test, and breaks nearest
neighbours.
"""

import math
from dataclasses import dataclass

import numpy as np

from unweave import rng
from unweave.metrics.estimators.arrays import check_count
from unweave.shapes import Int


@dataclass(frozen=True)
class Draw:
    """Row numbers for one round of measuring, and the seed of everything random in it.

    Without a split every metric sees ``rows``, and shuffles and divides them as its protocol says. With one, metrics
    that fit see ``rows`` to fit on and ``test`` to test on, the others see ``rows``. Batches with one factor held
    fixed are drawn from ``pool``.
    """

    rows: Int[np.ndarray, " sample"]
    test: Int[np.ndarray, " test"] | None
    pool: Int[np.ndarray, " any"]
    seed: int


def whole(n_rows: int, split: tuple[int, int] | None = None, seed: int = 0) -> Draw:
    """All rows; or the first N to fit on and the next M to test on, in the order of the file."""
    everything = np.arange(n_rows)
    if split is None:
        return Draw(everything, None, everything, seed)
    for count, name in zip(split, ("N", "M")):
        check_count(count, f"{name} of split")
    n_train, n_test = split
    if n_train + n_test > n_rows:
        raise ValueError(f"split asks for {n_train} + {n_test} rows, but the table has {n_rows}; ask for fewer")
    return Draw(everything[:n_train], everything[n_train : n_train + n_test], everything, seed)


def half(draw: Draw, seed: int) -> Draw:
    """A random half of every part, in the order of the table."""
    generator = np.random.default_rng(rng.derive(seed, rng.Purpose.RESAMPLE))
    rows = _half(draw.rows, generator)
    test = None if draw.test is None else _half(draw.test, generator)
    pool = rows if draw.test is None else _half(draw.pool, generator)
    return Draw(rows, test, pool, seed)


def stretch(n_rows: int, most: int | None) -> float:
    """By how much a score of ``most`` random rows varies more over tables of ``n_rows`` than over halves of one."""
    if most is None or n_rows <= most:
        return 1.0
    # √(σ²/most / (σ²/m − σ²/n)): m rows of a half are used
    return math.sqrt(1 / most / (1 / min(n_rows // 2, most) - 1 / n_rows))


def permutation(n_rows: int, seed: int) -> Int[np.ndarray, " sample"]:
    """An order of all rows that breaks every tie between codes and factors."""
    return np.random.default_rng(rng.derive(seed, rng.Purpose.PERMUTATION)).permutation(n_rows)


def _half(rows: Int[np.ndarray, " sample"], generator: np.random.Generator) -> Int[np.ndarray, " half"]:
    return np.sort(generator.permutation(rows)[: max(1, len(rows) // 2)])
