"""Rank correlations against scipy, with ties and holes; intervals against simulation."""

import numpy as np
import pytest
import scipy.stats

from unweave.studies.statistics.rank_correlations import rank_correlations


def test_values_are_scipys_with_ties_and_missing_numbers() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(0, 5, 40).astype(float)
    b, c = a + generator.normal(size=40), generator.normal(size=40)
    b[3] = c[7] = np.nan
    found = rank_correlations({"a": a, "b": b, "c": c}, n_draws=20)
    for i, first in enumerate((a, b, c)):
        for j, second in enumerate((a, b, c)):
            both = np.isfinite(first) & np.isfinite(second)
            assert found.value[i, j] == pytest.approx(scipy.stats.spearmanr(first[both], second[both]).statistic)
            assert found.n[i, j] == both.sum()


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    truth = 6 / np.pi * np.arcsin(0.5 / 2)
    held = 0
    for seed in range(150):
        x = generator.normal(size=60)
        y = 0.5 * x + np.sqrt(0.75) * generator.normal(size=60)
        found = rank_correlations({"x": x, "y": y}, n_draws=100, seed=seed)
        held += found.low[0, 1] <= truth <= found.high[0, 1]
    assert 0.88 < held / 150 <= 1.0


def test_no_correlation_is_beyond_one() -> None:
    for n in range(4, 40):  # of 17, 27 and 28 the quotient is 1 + 2e-16
        found = rank_correlations({"a": np.arange(n), "b": np.arange(n) ** 3, "c": -np.arange(n)}, n_draws=2)
        assert 1.0 - 1e-12 < np.abs(found.value).max() <= 1.0


def test_a_constant_column_has_no_correlation_and_says_so() -> None:
    found = rank_correlations({"x": np.arange(9.0), "flat": np.ones(9)}, n_draws=5)
    assert np.isnan(found.value[0, 1])
    assert found.rows()[0]["correlation"] is None


def test_equal_seeds_give_equal_intervals_and_one_column_is_refused() -> None:
    columns = {"x": np.arange(12.0), "y": np.arange(12.0)[::-1] ** 2}
    assert np.array_equal(rank_correlations(columns, seed=3).low, rank_correlations(columns, seed=3).low)
    with pytest.raises(ValueError, match="two columns"):
        rank_correlations({"x": np.arange(3.0)})
