"""The assignment without SciPy is SciPy's."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from unweave.metrics.estimators.assignment import by_augmenting_paths, largest_assignment


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
def test_our_own_route_reaches_scipys_sum(n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        gains = rng.normal(size=(n, n))
        columns = by_augmenting_paths(gains)
        rows, theirs = linear_sum_assignment(gains, maximize=True)
        assert sorted(columns) == list(range(n))
        assert gains[np.arange(n), columns].sum() == pytest.approx(gains[rows, theirs].sum(), abs=1e-12)


def test_every_permutation_tried():
    gains = np.random.default_rng(0).integers(0, 5, size=(5, 5)).astype(float)  # with ties
    sums = [sum(gains[row, column] for row, column in enumerate(order)) for order in itertools.permutations(range(5))]
    for columns in (by_augmenting_paths(gains), largest_assignment(gains)):
        assert gains[np.arange(5), columns].sum() == max(sums)
