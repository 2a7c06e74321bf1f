"""Nearest-neighbour information against scikit-learn's, which searches with trees."""

import numpy as np
import pytest
import torch
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif

from unweave.metrics.estimators.neighbours import neighbour_information


def slow_information(code: np.ndarray, labels: np.ndarray, n_neighbours: int) -> float:
    counts = np.array([np.sum(labels == label) for label in labels])
    code, labels, counts = code[counts > 1], labels[counts > 1], counts[counts > 1]
    terms = []
    for place, (value, label, count) in enumerate(zip(code, labels, counts)):
        k = min(n_neighbours, count - 1)
        distance = np.abs(code - value)
        mates = np.sort(np.delete(distance, place)[np.delete(labels, place) == label])
        terms.append(digamma(k) - digamma(count) - digamma(np.sum(distance < mates[k - 1])))
    return max(0.0, digamma(len(code)) + np.mean(terms))


@pytest.mark.parametrize("n_values", [2, 5, 25])
@pytest.mark.parametrize("noise", [0.05, 1.0])
@pytest.mark.parametrize("n_neighbours", [1, 3, 10])
def test_it_is_scikit_learns(n_values: int, noise: float, n_neighbours: int) -> None:
    rng = np.random.default_rng(n_values)
    labels = rng.integers(0, n_values, 1000)
    code = labels + noise * rng.normal(size=1000)
    expected = mutual_info_classif(code[:, None], labels, discrete_features=False, n_neighbors=n_neighbours)[0]
    found = neighbour_information(torch.tensor(code), torch.tensor(labels), n_neighbours)
    assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_values", [2, 20, 60])
@pytest.mark.parametrize("n_neighbours", [1, 4, 30])
def test_small_classes_are_the_slow_loop(n_values: int, n_neighbours: int) -> None:
    # scikit-learn's distances within classes of fewer than 2k points are rounded to 1e-8, so not compared here
    rng = np.random.default_rng(n_values)
    labels = rng.integers(0, n_values, 120)
    code = labels + rng.normal(size=120)
    found = neighbour_information(torch.tensor(code), torch.tensor(labels), n_neighbours)
    assert float(found) == pytest.approx(slow_information(code, labels, n_neighbours), abs=1e-12)


def test_labels_that_occur_once_tell_nothing() -> None:
    assert neighbour_information(torch.arange(4.0), torch.arange(4), 3) == 0.0
