"""Pairs of settings: paired where seeds agree, corrected as statsmodels corrects."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from unweave.studies.statistics.pairwise import holm, pairwise


def test_holm_is_that_of_statsmodels() -> None:
    p_values = np.random.default_rng(0).random(9)
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_pairs_by_seed_where_seeds_agree() -> None:
    shared = np.arange(6.0) * 10
    values = {
        "a": dict(enumerate(shared)),
        "b": dict(enumerate(shared + 1)),
        "c": {seed + 100: value for seed, value in enumerate(shared)},
        "alone": {0: 1.0},
    }
    found = {(pair.first, pair.second): pair for pair in pairwise(values)}
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert found["a", "b"].paired
    assert found["a", "b"].p == pytest.approx(2 / 64)
    assert (found["a", "b"].low, found["a", "b"].high) == pytest.approx((-1, -1))
    assert not found["a", "c"].paired
    assert found["a", "c"].p == 1.0
    assert found["a", "b"].corrected == pytest.approx(3 * 2 / 64)


def test_two_values_each_are_enough_to_compare() -> None:
    (pair,) = pairwise({"a": {0: 1.0, 1: 2.0}, "b": {7: 3.0, 8: 5.0}, "alone": {3: 1.0}})
    assert (pair.first, pair.second, pair.n, pair.paired) == ("a", "b", 2, False)
