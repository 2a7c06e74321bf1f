"""Differences of scores, paired and not."""

import numpy as np
import pytest

from unweave.evaluation.measure import measure
from unweave.evaluation.score_differences import differences_to_plain, score_differences


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (600, 2))
    codes = factors + 0.4 * rng.normal(size=(600, 2))
    return codes, codes + 0.15 * rng.normal(size=(600, 2)), factors


def test_a_paired_difference_is_sharper_than_an_unpaired_one() -> None:
    codes, near, factors = tables()
    first, second = (measure(c, factors, metrics=["mig", "mcc"], seeds=12) for c in (codes, near))
    paired, apart = score_differences(first, second)["mcc"], score_differences(first, second, paired=False)["mcc"]
    assert paired.value == apart.value == second["mcc"].value - first["mcc"].value
    assert np.std(paired.draws, ddof=1) < 0.5 * np.std(apart.draws, ddof=1)
    total = np.var(first["mcc"].draws, ddof=1) + np.var(second["mcc"].draws, ddof=1)
    assert np.var(apart.draws, ddof=1) == pytest.approx(total)
    assert paired.better == "first"


def test_the_same_table_has_no_difference() -> None:
    codes, _, factors = tables()
    one = measure(codes, factors, metrics=["mig", "wasserstein"], seeds=3)
    for difference in score_differences(one, one).values():
        assert difference.value == 0.0
        assert difference.interval == (0.0, 0.0)
        assert not difference.clear
        assert difference.better is None


def test_a_description_has_no_better_side() -> None:
    rng = np.random.default_rng(0)
    flat, full = rng.normal(size=(300, 1)) * np.ones(3), rng.normal(size=(300, 3))
    first, second = (measure(codes, metrics="mle", seeds=3) for codes in (flat, full))
    difference = score_differences(first, second)["mle"]
    assert difference.clear
    assert difference.better is None
    assert first.to_plain()["scores"]["mle"]["higher_is_better"] is None


def test_less_may_be_better_and_infinity_has_no_interval() -> None:
    rng = np.random.default_rng(0)
    alone = rng.normal(size=(500, 2))
    tied = np.c_[alone[:, 0], alone[:, 0] + 0.1 * alone[:, 1]]
    first, second = (measure(c, metrics="total_correlation", seeds=5) for c in (tied, alone))
    assert score_differences(first, second)["gaussian_total_correlation"].better == "second"
    same = measure(alone[:, [0, 0]], metrics="total_correlation", seeds=5)
    plain = differences_to_plain(score_differences(same, second))["gaussian_total_correlation"]
    assert plain["first"] == "inf"
    assert plain["low"] is None


def test_what_cannot_be_compared_is_refused() -> None:
    codes, near, factors = tables()
    one = measure(codes, factors, metrics="mig", seeds=2)
    with pytest.raises(ValueError, match="not fleets"):
        score_differences(one, measure(np.stack([codes, near]), factors, metrics="mig", seeds=2))
    with pytest.raises(ValueError, match="same number of seeds"):
        score_differences(one, measure(codes, factors, metrics="mig", seeds=3))
