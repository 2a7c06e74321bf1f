"""Total correlation, Wasserstein correlation, averaged information, effective rank: closed forms and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm
from sklearn.metrics import mutual_info_score

from unweave.metrics import averaged_mi, effective_rank, total_correlation, wasserstein


def with_covariance(covariance: np.ndarray, n_samples: int = 50) -> np.ndarray:
    """Codes whose sample covariance is exactly the one asked for."""
    noise = np.random.default_rng(0).normal(size=(n_samples, len(covariance)))
    noise -= noise.mean(0)
    white = noise @ np.linalg.inv(np.linalg.cholesky(np.atleast_2d(np.cov(noise.T)))).T
    return white @ np.linalg.cholesky(covariance).T + 3.0


CORRELATED = np.array([[1.0, 0.9], [0.9, 1.0]])
UNEVEN = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 0.25]])


def test_no_dependence_is_a_plain_zero() -> None:
    found = total_correlation(np.arange(6.0)[:, None])
    assert str(found.score) == str(found.pseudo) == "0.0"


def test_total_correlation_by_closed_form() -> None:
    assert total_correlation(with_covariance(np.eye(10))).score == pytest.approx(0.0, abs=1e-13)
    assert total_correlation(with_covariance(CORRELATED)).score == pytest.approx(-0.5 * math.log(1 - 0.81))
    expected = 0.5 * (np.log(np.diag(UNEVEN)).sum() - np.linalg.slogdet(UNEVEN)[1])
    found = total_correlation(with_covariance(UNEVEN))
    assert found.score == pytest.approx(expected)
    assert found.score == found.pseudo
    assert not found.singular
    np.testing.assert_allclose(found.covariance, UNEVEN, atol=1e-12)


def test_total_correlation_says_when_the_covariance_is_singular() -> None:
    codes = with_covariance(CORRELATED)
    twice = total_correlation(np.c_[codes, codes])
    assert twice.score == math.inf
    assert twice.singular
    # eigenvalues of the doubled correlations: 2 × 1.9 and 2 × 0.1
    assert twice.pseudo == pytest.approx(-0.5 * math.log(3.8 * 0.2))
    assert total_correlation(np.random.default_rng(0).normal(size=(4, 9))).singular
    constant = total_correlation(np.c_[codes, np.full(50, 0.1)])
    assert constant.score == pytest.approx(-0.5 * math.log(1 - 0.81))
    assert total_correlation(np.full((5, 1), 0.1)).score == 0.0
    fleet = total_correlation(np.stack([codes, codes[:, [0, 0]]]))
    assert isinstance(fleet.singular, torch.Tensor)
    assert fleet.singular.tolist() == [False, True]


@pytest.mark.parametrize("covariance", [np.eye(4), CORRELATED, UNEVEN])
def test_wasserstein_is_scipys(covariance: np.ndarray) -> None:
    root = sqrtm(covariance * np.diag(covariance)[:, None])
    expected = 2 * np.trace(covariance) - 2 * np.trace(root)
    found = wasserstein(with_covariance(covariance))
    assert found.score == pytest.approx(expected, abs=1e-12)
    assert found.normalised == pytest.approx(expected / np.trace(covariance), abs=1e-12)


def test_wasserstein_of_duplicates_and_constants() -> None:
    code = with_covariance(np.eye(1))
    # two equal codes of unit variance: 2·2 − 2·√2
    assert wasserstein(np.c_[code, code]).score == pytest.approx(4 - 2 * math.sqrt(2))
    nothing = wasserstein(np.full((5, 3), 0.1))
    assert (nothing.score, nothing.normalised) == (0.0, 0.0)


def test_averaged_information_is_the_slow_loop() -> None:
    codes = np.random.default_rng(0).normal(size=(300, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    bins = [np.digitize(c, np.histogram(c, 20)[1][:-1]) for c in codes.T]
    pairs = [mutual_info_score(bins[i], bins[j]) for i in range(4) for j in range(4) if i != j]
    assert averaged_mi(codes).score == pytest.approx(np.mean(pairs), abs=1e-13)
    assert averaged_mi(codes[:, :1]).score == 0.0


def test_effective_rank_by_closed_form() -> None:
    assert effective_rank(np.eye(7)).score == pytest.approx(7.0)
    assert effective_rank(np.ones((5, 3))).score == pytest.approx(1.0)
    assert effective_rank(np.zeros((5, 3))).score == 0.0
    # singular values 3 and 1: exp(H(3/4, 1/4))
    expected = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert effective_rank(np.diag([3.0, -1.0, 0.0])).score == pytest.approx(expected)
    codes = np.random.default_rng(0).normal(size=(30, 4)) + 100
    share = np.linalg.svd(codes - codes.mean(0), compute_uv=False)
    share /= share.sum()
    assert effective_rank(codes, centre=True).score == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    assert effective_rank(codes).score < 1.5
