"""The assignment of rows to columns with the largest sum: SciPy's where it is installed, our own otherwise."""

import functools
from collections.abc import Callable

import numpy as np

from unweave.shapes import Float, Int


def largest_assignment(gains: Float[np.ndarray, "row column"]) -> Int[np.ndarray, " row"]:
    """For every row of a square table its column, each column once, so that the gains add up to the most."""
    return _solver()(gains)


@functools.cache
def _solver() -> Callable[[np.ndarray], np.ndarray]:
    """Found once: a decoder's thousand tables should not look for a missing package a thousand times."""
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        return by_augmenting_paths
    return lambda gains: np.asarray(linear_sum_assignment(gains, maximize=True)[1], dtype=np.int64)


def by_augmenting_paths(gains: Float[np.ndarray, "row column"]) -> Int[np.ndarray, " row"]:
    """The Hungarian method with potentials, O(n³): rows enter one by one, each by a shortest augmenting path."""
    costs, n = -np.asarray(gains, dtype=np.float64), len(gains)
    row_prices, column_prices = np.zeros(n + 1), np.zeros(n + 1)
    # place n is a column that does not exist: a row that enters starts there
    owner = np.full(n + 1, -1)
    for row in range(n):
        owner[n] = row
        column, previous = _shortest_path(costs, row_prices, column_prices, owner)
        while column != n:
            owner[column] = owner[previous[column]]
            column = previous[column]
    columns = np.empty(n, dtype=np.int64)
    columns[owner[:n]] = np.arange(n)
    return columns


def _shortest_path(
    costs: Float[np.ndarray, "row column"],
    row_prices: Float[np.ndarray, " place"],
    column_prices: Float[np.ndarray, " place"],
    owner: Int[np.ndarray, " place"],
) -> tuple[int, Int[np.ndarray, " column"]]:
    """The nearest free column and the way back to the entering row; prices keep reduced costs from going below 0."""
    n = len(costs)
    distance, previous, used = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, dtype=bool)
    column = n
    while owner[column] != -1:
        used[column] = True
        row = owner[column]
        reduced = costs[row] - row_prices[row] - column_prices[:n]
        nearer = ~used[:n] & (reduced < distance)
        distance[nearer], previous[nearer] = reduced[nearer], column
        best = int(np.where(used[:n], np.inf, distance).argmin())
        step = distance[best]
        row_prices[owner[used]] += step
        column_prices[used] -= step
        distance[~used[:n]] -= step
        column = best
    return column, previous
