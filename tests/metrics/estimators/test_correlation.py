"""Covariance, correlation and ranks against numpy and scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import rankdata, spearmanr

from unweave.metrics.estimators.correlation import correlation, covariance, ranks


def test_covariance_and_correlation_are_numpys() -> None:
    codes = np.random.default_rng(0).normal(size=(2, 30, 4))
    np.testing.assert_allclose(covariance(torch.tensor(codes)), [np.cov(c.T) for c in codes], atol=1e-14)
    both = correlation(torch.tensor(codes[0]), torch.tensor(codes[1]))
    np.testing.assert_allclose(both, np.corrcoef(codes[0].T, codes[1].T)[:4, 4:], atol=1e-14)


def test_constants_have_none() -> None:
    codes = torch.tensor([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]], dtype=torch.float64)
    assert covariance(codes)[0].tolist() == [0.0, 0.0]
    assert correlation(codes, codes)[0].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(correlation(codes, codes)[1, 1], 1.0)
    with pytest.raises(ValueError, match="at least two samples"):
        covariance(codes[:1])


def test_ranks_share_ties() -> None:
    table = np.random.default_rng(0).integers(0, 9, size=(2, 40, 3)).astype(float)
    np.testing.assert_array_equal(ranks(torch.tensor(table)), rankdata(table, axis=1))
    found = correlation(ranks(torch.tensor(table[0])), ranks(torch.tensor(table[1])))
    np.testing.assert_allclose(found, spearmanr(table[0], table[1]).statistic[:3, 3:], atol=1e-14)


def test_correlations_never_exceed_one_by_rounding() -> None:
    table = torch.randn(40, 60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    doubled = torch.cat([table, -table], dim=-1)
    assert correlation(doubled, doubled).abs().max() == 1.0
