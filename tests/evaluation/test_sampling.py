"""Rows of a round: whole tables, exact splits, and halves whose spread is a standard error."""

import numpy as np
import pytest

from unweave.evaluation.sampling import half, permutation, stretch, whole


def test_a_split_keeps_the_order_of_the_file() -> None:
    draw = whole(10, (4, 3))
    assert draw.rows.tolist() == [0, 1, 2, 3]
    assert draw.test is not None
    assert draw.test.tolist() == [4, 5, 6]
    assert len(draw.pool) == 10


def test_a_half_is_half_of_every_part_without_repetition() -> None:
    draw = half(whole(100, (40, 20)), 3)
    assert draw.test is not None
    assert len(np.unique(draw.rows)) == 20
    assert draw.rows.max() < 40
    assert len(np.unique(draw.test)) == 10
    assert draw.test.min() >= 40
    assert draw.test.max() < 60
    np.testing.assert_array_equal(draw.rows, half(whole(100, (40, 20)), 3).rows)
    assert not np.array_equal(draw.rows, half(whole(100, (40, 20)), 4).rows)


def test_the_spread_over_halves_is_the_standard_error() -> None:
    values = np.random.default_rng(0).normal(size=400)
    means = [values[half(whole(400), seed).rows].mean() for seed in range(600)]
    assert np.std(means) == pytest.approx(values.std() / np.sqrt(400), rel=0.1)


@pytest.mark.parametrize("n_rows", [100, 130, 200, 500])
def test_the_spread_of_what_uses_some_rows_is_stretched_to_the_standard_error(n_rows: int) -> None:
    values = np.random.default_rng(0).normal(size=n_rows)
    generator = np.random.default_rng(1)
    means = [generator.permutation(values[half(whole(n_rows), seed).rows])[:100].mean() for seed in range(2000)]
    used = min(n_rows, 100)
    assert np.std(means) * stretch(n_rows, 100) == pytest.approx(values.std() / np.sqrt(used), rel=0.05)


def test_what_uses_all_rows_is_not_stretched() -> None:
    assert stretch(1_000_000, None) == stretch(15_000, 15_000) == 1.0


def test_permutations_are_orders_of_all_rows() -> None:
    assert sorted(permutation(50, 1).tolist()) == list(range(50))
    assert not np.array_equal(permutation(50, 1), permutation(50, 2))


@pytest.mark.parametrize(("split", "words"), [((8, 3), "the table has 10"), ((0, 3), "at least 1")])
def test_impossible_splits_say_so(split: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        whole(10, split)
