"""Permutation tests against scipy's, and their error when there is nothing to find."""

import numpy as np
import pytest
import scipy.stats

from unweave.studies.statistics.permutation import crossed_test, paired_test, trend_test, unpaired_test


def test_paired_is_scipys_exact_sign_test() -> None:
    differences = np.random.default_rng(0).normal(0.4, 1, 9)
    found = paired_test(differences)
    for side, p in (("greater", found.larger), ("less", found.smaller)):
        expected = scipy.stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", alternative=side, n_resamples=np.inf
        )
        assert p == pytest.approx(expected.pvalue)
    assert found.least == 2.0**-9


def test_unpaired_is_scipys_exact_test() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.8, 1, 5), generator.normal(0, 1, 6)
    found = unpaired_test(first, second)
    for side, p in (("greater", found.larger), ("less", found.smaller)):
        expected = scipy.stats.permutation_test(
            (first, second), lambda a, b: a.mean() - b.mean(), alternative=side, n_resamples=np.inf
        )
        assert p == pytest.approx(expected.pvalue)
    assert found.statistic == pytest.approx(first.mean() - second.mean())


def test_trend_is_scipys_exact_test_with_ties() -> None:
    x, y = np.array([1.0, 1, 2, 3, 4, 4]), np.array([0.2, 0.1, 0.4, 0.1, 0.8, 0.9])
    found = trend_test(x, y)
    expected = scipy.stats.permutation_test(
        (y,), lambda y: scipy.stats.spearmanr(x, y).statistic, permutation_type="pairings", alternative="greater",
        n_resamples=np.inf,
    )  # fmt: skip
    assert found.larger == pytest.approx(expected.pvalue)
    assert found.statistic == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


def test_random_arrangements_meet_the_exact_ones() -> None:
    generator = np.random.default_rng(2)
    first, second = generator.normal(0.5, 1, 20), generator.normal(0, 1, 20)
    assert unpaired_test(first, second).larger == pytest.approx(
        scipy.stats.ttest_ind(first, second, alternative="greater").pvalue, abs=0.02
    )
    assert paired_test(first - second).larger == pytest.approx(
        scipy.stats.ttest_rel(first, second, alternative="greater").pvalue, abs=0.02
    )
    assert trend_test(first, second).larger == pytest.approx(
        scipy.stats.spearmanr(first, second, alternative="greater").pvalue, abs=0.02
    )


def test_blocks_are_kept_together() -> None:
    # within every block y falls with x, between blocks it rises: only the blocked test sees the fall
    x = np.tile(np.arange(5.0), 6)
    blocks = np.repeat(np.arange(6), 5)
    y = 10.0 * blocks - np.tile(np.arange(5.0), 6)
    assert trend_test(x, y).smaller > 0.05
    assert trend_test(x, y, blocks).smaller < 0.001


N_TRIALS = 800


@pytest.mark.parametrize("shape", ["normal", "skewed"])
def test_five_per_cent_are_five_per_cent(shape: str) -> None:
    """How often each test finds at p ≤ 0.05 what is not there: the largest attainable p below it, no more."""
    generator = np.random.default_rng(len(shape))

    def draw(n: int) -> np.ndarray:
        return generator.exponential(size=n) if shape == "skewed" else generator.normal(size=n)

    found = {"paired": 0, "unpaired": 0, "trend": 0}
    for _ in range(N_TRIALS):
        # differences of equal things are symmetric; two groups of one distribution can be exchanged
        found["paired"] += paired_test(draw(8) - draw(8)).larger <= 0.05
        found["unpaired"] += unpaired_test(draw(5), draw(5)).larger <= 0.05
        found["trend"] += trend_test(np.arange(6.0), draw(6)).larger <= 0.05
    sizes = {"paired": np.floor(0.05 * 256) / 256, "unpaired": np.floor(0.05 * 252) / 252, "trend": 0.05}
    for name, count in found.items():
        error = 3.5 * np.sqrt(0.05 * 0.95 / N_TRIALS)
        assert abs(count / N_TRIALS - sizes[name]) < error, (name, count / N_TRIALS)


def test_five_per_cent_within_blocks_and_by_random_arrangements() -> None:
    generator = np.random.default_rng(11)
    x, blocks = np.tile(np.arange(4.0), 5), np.repeat(np.arange(5), 4)
    found = {"blocks": 0, "paired": 0}
    for seed in range(400):
        # seeds differ by far more than runs of one seed
        y = generator.normal(size=20) + 10 * generator.normal(size=5)[blocks]
        found["blocks"] += trend_test(x, y, blocks, seed=seed).larger <= 0.05
        found["paired"] += paired_test(generator.normal(size=16), seed=seed).larger <= 0.05
    assert all(0.02 < count / 400 < 0.09 for count in found.values()), found


def test_scores_over_one_axis_are_scipys_test() -> None:
    generator = np.random.default_rng(5)
    x, y = generator.normal(size=(2, 7))
    found = crossed_test(x[:, None], (x + y)[:, None])
    expected = scipy.stats.permutation_test(
        (x + y,), lambda y: scipy.stats.spearmanr(x, y).statistic, permutation_type="pairings", alternative="greater",
        n_resamples=np.inf,
    )  # fmt: skip
    assert found.larger == pytest.approx(expected.pvalue, abs=0.02)
    assert found.statistic == pytest.approx(scipy.stats.spearmanr(x, x + y).statistic)


@pytest.mark.parametrize("axes", ["", "o", "p", "s", "op", "ops"])
def test_what_is_alike_along_an_axis_is_found_as_often_as_chance_has_it(axes: str) -> None:
    """Noise of objectives, places or seeds, each alone or together with noise of every run."""
    generator = np.random.default_rng(6)

    def noise() -> np.ndarray:
        sizes = {"o": (6, 1, 1), "p": (1, 4, 1), "s": (1, 1, 4)}
        found = 0.1 * generator.normal(size=(6, 4, 4)) if axes else generator.normal(size=(6, 4, 4))
        return found + sum(generator.normal(size=sizes[axis]) for axis in axes)

    p = np.array([crossed_test(noise(), noise()).larger for _ in range(60)])
    assert np.mean(p <= 0.05) <= 0.12
    assert np.mean(p <= 0.5) == pytest.approx(0.5, abs=0.2)


def test_missing_runs_and_scores_that_do_not_vary() -> None:
    generator = np.random.default_rng(7)
    first = generator.normal(size=(6, 4))
    second = first + 0.1 * generator.normal(size=(6, 4))
    first[0, 0] = second[3, 2] = np.nan
    assert crossed_test(first, second).larger <= 0.01
    assert crossed_test(np.ones((6, 4)), second).larger == 1.0
