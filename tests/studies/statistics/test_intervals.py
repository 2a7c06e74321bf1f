"""Intervals against scipy, statsmodels and simulation."""

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from unweave.studies.statistics.intervals import (
    bootstrap_interval,
    correlation_interval,
    crossed_interval,
    jackknife_interval,
    mean_interval,
    welch_interval,
    wilson_interval,
)


def test_mean_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(3, 2, 7)
    expected = scipy.stats.t.interval(0.95, 6, loc=values.mean(), scale=scipy.stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected)


def test_welch_interval_is_that_of_statsmodels() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(1, 1, 5), generator.normal(0, 4, 9)
    expected = CompareMeans(DescrStatsW(first), DescrStatsW(second)).tconfint_diff(usevar="unequal")
    assert welch_interval(first, second) == pytest.approx(expected)


@pytest.mark.parametrize(("successes", "n"), [(0, 4), (3, 10), (97, 100), (5, 5)])
def test_wilson_interval_is_that_of_statsmodels(successes: int, n: int) -> None:
    assert wilson_interval(successes, n) == pytest.approx(proportion_confint(successes, n, method="wilson"), abs=1e-12)


def test_correlation_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # Spearman's ρ of a bivariate normal with correlation 0.6
    held = 0
    for _ in range(600):
        x = generator.normal(size=25)
        y = 0.6 * x + 0.8 * generator.normal(size=25)
        low, high = correlation_interval(float(scipy.stats.spearmanr(x, y).statistic), 25)
        held += low <= truth <= high
    assert 0.92 < held / 600 < 0.98


def mean_of(values: np.ndarray, rows: np.ndarray) -> float:
    return float(values[rows].mean())


def test_bootstrap_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    held = 0
    for seed in range(200):
        values = generator.normal(5, 1, 40)
        low, high = bootstrap_interval(
            lambda rows, values=values: float(values[rows].mean()), 40, n_draws=200, seed=seed
        )
        held += low <= 5 <= high
    assert 0.88 < held / 200 < 0.99


@pytest.mark.parametrize("n", [2, 3, 12])
def test_the_jackknife_of_a_mean_is_the_interval_of_the_mean(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    without = np.array([np.delete(values, left_out).mean() for left_out in range(n)])
    assert jackknife_interval(float(values.mean()), without) == pytest.approx(mean_interval(values), rel=1e-9)


def test_too_few_values_are_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="needs 2 values or more, given 1"):
        mean_interval(np.ones(1))
    with pytest.raises(ValueError, match="between 0 and n = 3"):
        wilson_interval(4, 3)


def test_few_values_have_wide_intervals_or_exact_ones() -> None:
    assert correlation_interval(0.5, 3) == (-1.0, 1.0)
    low, high = correlation_interval(0.5, 4)
    assert -1.0 < low < 0.5 < high < 1.0
    assert correlation_interval(1.0, 4) == (1.0, 1.0)
    assert bootstrap_interval(lambda rows: float(rows.mean()), 2, n_draws=50)[1] <= 1.0
    with pytest.raises(ValueError, match="needs 2 values or more, given 1"):
        bootstrap_interval(lambda rows: 0.0, 1)


def test_over_one_axis_a_crossed_interval_is_a_jackknife_with_a_normal_quantile() -> None:
    scores = np.random.default_rng(8).normal(size=9)
    low, high = crossed_interval(lambda part: float(part.mean()), scores, 1)
    assert (low + high) / 2 == pytest.approx(scores.mean())
    assert (high - low) / 2 == pytest.approx(1.959964 * scipy.stats.sem(scores))


@pytest.mark.parametrize("axes", ["", "rows", "columns"])
def test_a_crossed_interval_holds_the_truth_wherever_the_noise_is(axes: str) -> None:
    generator, held = np.random.default_rng(9), 0
    for _ in range(200):
        scores = generator.normal(size=(8, 8)) * (0.3 if axes else 1.0)
        scores += {"": 0.0, "rows": generator.normal(size=(8, 1)), "columns": generator.normal(size=(1, 8))}[axes]
        low, high = crossed_interval(lambda part: float(part.mean()), scores, 2)
        held += low <= 0 <= high
    assert held / 200 > 0.88
