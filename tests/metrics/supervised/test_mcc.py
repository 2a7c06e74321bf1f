"""MCC against all assignments tried one by one."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from unweave.metrics import mcc


@pytest.mark.parametrize("n_latents", [3, 5])
@pytest.mark.parametrize(("method", "one"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_it_is_the_best_of_all_assignments(n_latents: int, method: str, one: object) -> None:
    rng = np.random.default_rng(n_latents)
    factors = rng.normal(size=(80, 3))
    codes = np.exp(factors @ rng.normal(size=(3, n_latents)) + 0.5 * rng.normal(size=(80, n_latents)))
    matrix = np.array([[abs(one(z, v).statistic) for v in factors.T] for z in codes.T])  # type: ignore[operator]
    best = max(np.mean([matrix[z, k] for k, z in enumerate(order)]) for order in permutations(range(n_latents), 3))
    found = mcc(codes, factors, method=method)
    assert found.score == pytest.approx(best, abs=1e-12)
    np.testing.assert_allclose(found.per_factor, [matrix[z, k] for k, z in enumerate(found.latent)], atol=1e-12)


def test_left_over_factors_count_nothing() -> None:
    factors = np.random.default_rng(0).normal(size=(50, 3))
    found = mcc(-2 * factors[:, [1]] + 3, factors)
    assert found.latent.tolist() == [-1, 0, -1]
    assert found.score == pytest.approx(1 / 3)
    assert mcc(np.full((50, 2), 0.1), factors).score == 0.0
    with pytest.raises(ValueError, match="method must be"):
        mcc(factors, factors, method="kendall")
    with pytest.raises(ValueError, match="factors must hold numbers"):
        mcc(factors, np.full((50, 1), "a"))
