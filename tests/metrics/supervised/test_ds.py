"""DS against scikit-learn's nearest neighbours."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from unweave.metrics.supervised.ds import ds, nearest


def test_neighbours_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=200), rng.normal(size=80) * 1.5
    model = KNeighborsRegressor(5).fit(train[:, None], train)
    assert np.array_equal(np.sort(nearest(train, test, 5)), np.sort(model.kneighbors(test[:, None])[1]))
    assert np.array_equal(np.sort(nearest(train[:5], test, 5)), np.tile(np.arange(5), (80, 1)))


def test_continuous_factors_follow_the_equation() -> None:
    rng = np.random.default_rng(0)
    factors = rng.random((500, 2))
    codes = factors @ np.array([[1.0, 0.3], [0.1, 1.0]])
    told = np.zeros((2, 2))
    for j in range(2):
        for k in range(2):
            model = KNeighborsRegressor(5).fit(codes[:400, j : j + 1], factors[:400, k])
            error = np.sqrt(np.mean((model.predict(codes[400:, j : j + 1]) - factors[400:, k]) ** 2))
            told[j, k] = 1 - error / factors[400:, k].std()
    found = ds(codes, factors, form="printed")
    assert found.kinds == ("regression", "regression")
    assert found.matrix.numpy() == pytest.approx(told, abs=1e-12)
    assert found.score == pytest.approx(np.abs(told[0] - told[1]).mean(), abs=1e-12)
    bounded = told.clip(min=0)
    assert ds(codes, factors).score == pytest.approx(np.abs(bounded[0] - bounded[1]).mean(), abs=1e-12)


def test_discrete_factors_follow_the_equation() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(4, size=(500, 1))
    codes = factors + rng.normal(size=(500, 2)) * [0.3, 3.0]
    accuracies = []
    for j in range(2):
        model = KNeighborsClassifier(5).fit(codes[:400, j : j + 1], factors[:400, 0])
        accuracies.append(np.mean(model.predict(codes[400:, j : j + 1]) == factors[400:, 0]))
    constant = np.bincount(factors[400:, 0]).max() / 100
    printed = ds(codes, factors, form="printed")
    assert printed.matrix[:, 0].numpy() == pytest.approx(np.array(accuracies) / constant, abs=1e-12)
    assert printed.score == pytest.approx((accuracies[0] - accuracies[1]) / constant, abs=1e-12)
    gained = np.clip((np.array(accuracies) - constant) / (1 - constant), 0, None)
    assert ds(codes, factors).score == pytest.approx(gained[0] - gained[1], abs=1e-12)


def test_ideal_rotated_and_dead_codes() -> None:
    factors = np.random.default_rng(0).random((2000, 2))
    turn = np.sqrt(0.5) * np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert ds(factors, factors).score > 0.95
    assert ds(factors @ turn, factors).score < 0.2
    assert ds(np.zeros((2000, 2)), factors).score == 0.0
    assert ds(torch.tensor(factors), torch.tensor(factors)).score == ds(factors, factors).score


def test_odd_tables_and_arguments() -> None:
    factors = np.random.default_rng(0).random((100, 2))
    assert ds(factors, np.column_stack([factors[:, 0], np.full(100, 0.5)])).per_factor[1] == 0.0
    assert ds(factors[:, :1], factors[:, :1]).score > 0.8
    assert ds(factors, np.full(100, 0.5)).score == 0.0
    with pytest.raises(ValueError, match="n_neighbours is 90"):
        ds(factors, factors, n_neighbours=90)
    with pytest.raises(ValueError, match="kinds must be"):
        ds(factors, factors, kinds=["regression"])
    both = np.column_stack([factors[:, 0], factors[:, 1] > 0.5])
    assert ds(factors, both, kinds=["regression", "classification"]).score == ds(factors, both).score
    with pytest.raises(ValueError, match="form must be"):
        ds(factors, factors, form="mine")
