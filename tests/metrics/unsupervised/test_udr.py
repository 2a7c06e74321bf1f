"""UDR: disentanglement_lib's expectations, and a slow version with scikit-learn and scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from unweave.metrics import udr
from unweave.metrics.unsupervised.udr import _strength


@pytest.mark.parametrize(
    ("matrix", "low", "high"),
    [
        (np.eye(3), 1.0, 1.0),
        (np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]), 0.6, 0.7),
        (np.ones((3, 3)), 0.3, 0.4),
        (np.zeros((3, 3)), 0.0, 0.0),
        (np.zeros((0, 3)), 0.0, 0.0),
    ],
)
def test_relative_strength(matrix: np.ndarray, low: float, high: float) -> None:
    assert low <= _strength(torch.tensor(matrix, dtype=torch.float64)) <= high


@pytest.fixture
def models() -> np.ndarray:
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(400, 3)) * [1.0, 5.0, 0.2] + 2.0
    return np.stack([codes, -codes[:, [2, 0, 1]] + 0.1 * rng.normal(size=codes.shape), codes @ rng.normal(size=(3, 3))])


@pytest.mark.filterwarnings("ignore:Objective did not converge")  # scikit-learn 1.4 says so of a code that is 0
@pytest.mark.parametrize("method", ["lasso", "spearman"])
def test_it_is_the_slow_loop(models: np.ndarray, method: str) -> None:
    kl = np.array([[1.0, 2.0, 0.015], [1.0, 0.01, 3.0], [0.1, 0.2, 0.3]])  # on both sides of 0.01, and at it
    scaled = [StandardScaler().fit_transform(codes) * (k > 0.01) for codes, k in zip(models, kl)]
    pairwise = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            if i == j:
                continue
            if method == "lasso":
                matrix = np.abs(Lasso(alpha=0.1).fit(scaled[i], scaled[j]).coef_).T
            else:
                keep = [[c for c in range(3) if kl[m, c] > 0.01] for m in (i, j)]
                matrix = np.zeros((3, 3))
                for a in keep[0]:
                    for b in keep[1]:
                        matrix[a, b] = abs(spearmanr(scaled[i][:, a], scaled[j][:, b]).statistic)
            matrix = matrix[kl[i] > 0.01][:, kl[j] > 0.01]
            sums = [np.where(matrix.sum(axis) > 0, matrix.sum(axis), 1.0) for axis in (0, 1)]
            pairwise[i, j] = np.mean([np.mean(matrix.max(axis) ** 2 / sums[axis]) for axis in (0, 1)])
    found = udr(models, kl, method=method)
    np.testing.assert_allclose(found.pairwise, pairwise, atol=1e-9)
    np.testing.assert_allclose(found.score, [np.median(np.delete(pairwise[:, m], m)) for m in range(3)], atol=1e-9)


def test_order_and_sign_do_not_matter(models: np.ndarray) -> None:
    same = np.stack([models[0], -models[0][:, [1, 2, 0]]])
    assert float(udr(same, method="spearman").score.min()) >= 0.8
    assert float(udr(same).score.min()) >= 0.8


def test_models_without_information_score_nothing(models: np.ndarray) -> None:
    assert udr(models[:2], np.zeros((2, 3))).score.tolist() == [0.0, 0.0]
    assert udr(np.full((2, 10, 3), 0.1)).score.tolist() == [0.0, 0.0]
    for method in ("lasso", "spearman"):
        padded = np.concatenate([models, np.zeros((3, 400, 1))], axis=2)
        kl = np.c_[np.ones((3, 3)), np.zeros(3)]
        np.testing.assert_allclose(udr(padded, kl, method=method).score, udr(models, method=method).score)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: {"models": m[:1]}, "at least two models"),
        (lambda m: {"models": m, "kl": np.ones((3, 2))}, "kl must be model × latent"),
        (lambda m: {"models": m, "method": "ridge"}, "method must be 'lasso' or 'spearman'"),
    ],
)
def test_wrong_input_is_named(models: np.ndarray, change: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        udr(**change(models))  # type: ignore[operator]
