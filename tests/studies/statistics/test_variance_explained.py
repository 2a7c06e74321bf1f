"""Shares of variance against statsmodels, and their intervals against simulation."""

import numpy as np
import pytest
import statsmodels.api as sm

from unweave.studies.statistics.variance_explained import variance_explained


def test_share_and_adjusted_are_those_of_a_regression_on_the_groups() -> None:
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(5), [3, 4, 5, 6, 7])
    values = generator.normal(size=25) + 0.7 * groups
    fitted = sm.OLS(values, np.eye(5)[groups]).fit()
    # statsmodels centres only where it finds a constant: the sum of the columns is one
    found = variance_explained(values, groups)
    assert found.share == pytest.approx(fitted.rsquared)
    assert found.adjusted == pytest.approx(fitted.rsquared_adj)
    assert (found.n, found.n_groups) == (25, 5)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    groups = np.repeat(np.arange(6), 4)
    effect = np.array([-1, -0.5, 0, 0, 0.5, 1.0]) * 1.2
    truth = (effect**2).mean() / ((effect**2).mean() + 1)
    held = 0
    for _ in range(200):
        low, high = variance_explained(effect[groups] + generator.normal(size=24), groups).interval
        held += low <= truth <= high
    assert 0.9 < held / 200 <= 0.99


def test_noise_explains_nothing_once_adjusted() -> None:
    generator = np.random.default_rng(2)
    groups = np.repeat(np.arange(24), 4)
    found = [variance_explained(generator.normal(size=96), groups) for _ in range(100)]
    assert np.mean([one.share for one in found]) == pytest.approx(23 / 95, abs=0.03)
    assert np.mean([one.adjusted for one in found]) == pytest.approx(0, abs=0.03)


def test_perfect_and_impossible_groups() -> None:
    assert variance_explained([1.0, 1, 2, 2], ["a", "a", "b", "b"]).interval == (1.0, 1.0)
    with pytest.raises(ValueError, match="more runs than groups"):
        variance_explained([1.0, 2], ["a", "b"])


@pytest.mark.parametrize("noise", [0.0, 1e-16])
def test_where_all_are_equal_nothing_can_be_explained(noise: float) -> None:
    values = 0.5 + noise * np.random.default_rng(3).normal(size=12)
    with pytest.raises(ValueError, match="all values are equal"):
        variance_explained(values, np.repeat(np.arange(3), 4))
