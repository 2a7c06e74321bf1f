"""InfoM, InfoE, InfoC against a slow version with scikit-learn's estimators."""

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from unweave.metrics import infomec


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 400) for size in (3, 4, 5)], axis=-1)
    codes = factors @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(400, 4))
    return codes, factors


def slow_ratio(share: np.ndarray, axis: int) -> float:
    n = share.shape[axis]
    return (np.mean(share.max(axis) / share.sum(axis)) - 1 / n) / (1 - 1 / n)


def test_continuous_codes(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    entropies = [mutual_info_score(f, f) for f in factors.T]
    columns = [mutual_info_classif(codes, f, discrete_features=False, n_neighbors=10) for f in factors.T]
    share = np.stack(columns, axis=-1) / entropies
    found = infomec(codes, factors)
    np.testing.assert_allclose(found.share, share, atol=1e-8)
    assert found.modularity == pytest.approx(slow_ratio(share, 1), abs=1e-8)
    assert found.compactness == pytest.approx(slow_ratio(share, 0), abs=1e-8)
    assert found.score == found.modularity


def test_narrow_latents_are_pruned(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    found = infomec(np.c_[codes, 1e-3 * codes[:, :1], np.zeros(400)], factors)
    assert found.active.tolist() == [True] * 4 + [False] * 2
    assert found.modularity == pytest.approx(infomec(codes, factors).modularity, abs=1e-6)


def test_discrete_codes_are_counted(table: tuple[np.ndarray, np.ndarray]) -> None:
    _, factors = table
    codes = np.c_[factors[:, 0], factors[:, 1] + 10 * factors[:, 2], np.zeros(400)] / 7
    found = infomec(codes, factors, discrete=True)
    share = [[mutual_info_score(z, f) / mutual_info_score(f, f) for f in factors.T] for z in (codes * 7).round().T]
    np.testing.assert_allclose(found.share, share, atol=1e-12)
    assert found.active.tolist() == [True, True, False]
    assert found.explicitness == pytest.approx(1.0, abs=1e-2)


def test_explicitness_by_closed_form() -> None:
    # two balanced classes that a binary code gets right three times in four: the best linear guess is that share
    labels = np.arange(4000) % 2
    codes = np.where(np.arange(4000) // 2 % 4 == 0, 1 - labels, labels).astype(float)
    nats = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert infomec(codes, labels).explicitness == pytest.approx((np.log(2) - nats) / np.log(2), abs=1e-5)


def test_ideal_and_degenerate_codes(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    ideal = infomec(factors, factors)
    assert min(ideal.modularity, ideal.explicitness, ideal.compactness) > 0.9
    constant = infomec(np.full((400, 2), 0.1), factors)
    assert (constant.modularity, constant.explicitness, constant.compactness) == (0.0, 0.0, 0.0)
    assert infomec(codes, np.zeros(400, int)).explicitness == 0.0
    assert infomec(factors, factors[:, :1]).modularity == 1.0
    assert infomec(factors[:, :1], factors).compactness == 1.0
    same = infomec(codes, np.c_[factors, np.zeros(400, int)])
    assert same.modularity == infomec(codes, factors).modularity
