"""Softmax regression against scikit-learn's, converged or not."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unweave.metrics.estimators import softmax
from unweave.metrics.estimators.softmax import fit_softmax, probabilities


def table(n_classes: int, noise: float = 1.0, n_samples: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    codes = np.stack([labels % 3, labels // 3, rng.normal(size=n_samples)], axis=-1) + noise * rng.normal(
        size=(n_samples, 3)
    )
    return codes, labels


def theirs(codes: np.ndarray, labels: np.ndarray, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(**settings).fit(codes, labels)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_weights_are_scikit_learns(n_classes: int, cost: float) -> None:
    codes, labels = table(n_classes)
    model = theirs(codes, labels, C=cost)
    found = fit_softmax(codes, labels, cost=cost)
    np.testing.assert_allclose(found[:, :-1], model.coef_, atol=1e-8)
    np.testing.assert_allclose(found[:, -1], model.intercept_, atol=1e-8)
    np.testing.assert_allclose(probabilities(found, codes), model.predict_proba(codes), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_so_are_they_without_a_penalty_where_classes_balance(n_classes: int, noise: float) -> None:
    # without noise the classes can be separated, and the search is stopped on its way to infinity
    codes, labels = table(n_classes, noise)
    labels[: len(labels) // 2] = 0
    codes[: len(labels) // 2] *= noise
    model = theirs(codes, labels, C=np.inf, class_weight="balanced")
    found = fit_softmax(codes, labels, cost=np.inf, balanced=True)
    np.testing.assert_allclose(probabilities(found, codes), model.predict_proba(codes), atol=1e-6)


def test_the_optimum_has_no_gradient() -> None:
    codes, labels = table(4)
    weights = fit_softmax(codes, labels)
    pull = probabilities(weights, codes) - np.eye(4)[labels]
    slope = pull.T @ np.column_stack([codes, np.ones(len(codes))]) / len(codes)
    slope[:, :-1] += weights[:, :-1] / len(codes)
    assert np.abs(slope).max() < 1e-4


def test_a_search_goes_on_from_where_it_starts() -> None:
    codes, labels = table(4)
    found = fit_softmax(codes, labels)
    np.testing.assert_array_equal(fit_softmax(codes, labels, start=found), found)


def test_classes_may_be_absent() -> None:
    codes, labels = table(3)
    found = fit_softmax(codes, labels, n_classes=5)
    assert found.shape == (5, 4)
    assert probabilities(found, codes)[:, 3:].max() < 0.05


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 1.0), (2, 400.0), (3, 1.0), (6, 1.0), (3, 1000.0), (6, 1000.0)])
def test_loss_and_gradient_are_pytorchs_whatever_the_size_of_the_scores(n_classes: int, scale: float) -> None:
    codes, labels = table(n_classes)
    problem = softmax._Problem(codes, labels, n_classes, cost=2.0, balanced=False)
    weights = scale * np.random.default_rng(0).normal(size=problem.shape)
    loss, gradient = problem.loss_and_gradient(weights.ravel())
    free = torch.from_numpy(weights).requires_grad_()
    scores = torch.from_numpy(np.column_stack([codes, np.ones(len(codes))])) @ free.T
    scores = torch.cat([torch.zeros_like(scores), scores], dim=1) if n_classes == 2 else scores
    wanted = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))
    wanted = wanted + 0.5 * free[:, :-1].square().sum() / (2.0 * len(codes))
    wanted.backward()
    assert loss == pytest.approx(float(wanted.detach()), rel=1e-12)
    np.testing.assert_allclose(gradient.reshape(problem.shape), free.grad, rtol=1e-10, atol=1e-13 * scale)


@pytest.mark.parametrize("capability", ["AVX512", "AVX2"])
def test_both_exponentials_are_the_same(capability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    table = np.random.default_rng(0).normal(size=(3, 50)) * 20
    np.testing.assert_allclose(softmax._exp(table.copy()), np.exp(table), rtol=1e-14)
