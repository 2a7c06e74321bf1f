"""What users may hand in, and the sentence they get when they may not."""

import numpy as np
import pytest
import torch

from unweave.metrics.estimators.arrays import (
    as_categories,
    as_codes,
    as_codes_and_factors,
    as_factors,
    as_numbers,
    as_score,
    check_count,
)


def test_codes_keep_their_values_dtype_and_memory() -> None:
    table = np.arange(6.0).reshape(3, 2)
    assert torch.equal(as_codes(table), torch.tensor(table))
    assert as_codes(table.astype(np.float32)).dtype == torch.float32
    assert as_codes(torch.ones(3, 2, dtype=torch.bfloat16)).dtype == torch.float32
    assert as_codes(np.arange(6).reshape(3, 2)).dtype == torch.float64
    assert as_codes([[1, 2], [3, 4]]).shape == (2, 2)
    assert as_codes(np.arange(5.0)).shape == (5, 1)
    assert as_codes(np.zeros((4, 3, 2)), batched=True).shape == (4, 3, 2)


@pytest.mark.parametrize(
    "odd",
    [
        np.arange(6.0).reshape(3, 2)[::-1],
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6.0).reshape(3, 2).astype(">f8"),
        np.arange(6.0).reshape(3, 2).astype(np.longdouble),
        np.arange(6, dtype=np.uint16).reshape(3, 2),
    ],
)
def test_codes_of_any_layout(odd: np.ndarray) -> None:
    assert np.array_equal(as_codes(odd).numpy(), odd.astype(np.float64))


def test_read_only_arrays_are_read() -> None:
    table = np.arange(6.0).reshape(3, 2)
    table.flags.writeable = False
    assert as_codes(table).sum() == 15.0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.array([[0.0, np.nan]]), "codes must be finite: column 1"),
        (np.array([[np.inf, 0.0]]), "codes must be finite: column 0"),
        (np.zeros((0, 3)), "at least one sample and one latent"),
        (np.zeros((3, 0)), "at least one sample and one latent"),
        (np.zeros((2, 3, 4)), "codes must be sample × latent, not an array of shape"),
        (np.zeros((2, 2), dtype=complex), "codes must be real"),
        (np.array([["a"]]), "codes must hold numbers"),
        (np.array([[1.0, 1e200]]), "below 1e150: the squares of column 1"),
    ],
)
def test_bad_codes_are_named(given: np.ndarray, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        as_codes(given)


@pytest.mark.parametrize(
    "column",
    [
        [5, 9, 5, 7],
        [5.0, 9.0, 5.0, 7.0],
        ["a", "c", "a", "b"],
        [-3, 10**15, -3, 0],
        np.array(["a", "c", "a", "b"], dtype=object),
        np.array([1, 3, 1, 2], dtype=object),
        torch.tensor([2, 4, 2, 3]),
    ],
)
def test_factors_become_sorted_categories(column: object) -> None:
    found = as_factors(column)
    assert found.values[:, 0].tolist() == [0, 2, 0, 1]
    assert found.sizes == (3,)


def test_booleans_and_mixed_columns_are_categories() -> None:
    assert as_factors(np.array([True, False, True])).values[:, 0].tolist() == [1, 0, 1]
    mixed = as_factors(np.array([["x", 1], ["y", 1], ["x", 3]], dtype=object))
    assert mixed.values.tolist() == [[0, 0], [1, 0], [0, 1]]
    assert mixed.sizes == (2, 2)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.array([[0.0, 0.5]]), "factors must be categories: column 1 holds fractions"),
        (np.array([[np.nan, 0.0]]), "factors must be finite: column 0"),
        (np.array([["a", None]], dtype=object), "factors must be complete: column 1"),
        (np.zeros((2, 2, 2), dtype=int), "factors must be sample × factor"),
        (np.zeros((0, 2), dtype=int), "at least one sample and one factor"),
        (np.array([[2.0**60]]), "do not tell neighbours apart"),
    ],
)
def test_bad_factors_are_named(given: np.ndarray, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        as_factors(given)


def test_continuous_factors_are_numbers() -> None:
    assert as_numbers([0.5, 1.5]).tolist() == [[0.5], [1.5]]
    with pytest.raises(ValueError, match="factors must hold numbers"):
        as_numbers(np.array(["a"]))


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="one row per sample, given 3 and 2 rows"):
        as_codes_and_factors(np.zeros((3, 2)), np.zeros((2, 2), dtype=int))


def test_exact_values_as_categories() -> None:
    found = as_categories(torch.tensor([[0.5, 1.0], [0.25, 1.0], [0.5, 1.0]]))
    assert found.values.tolist() == [[1, 0], [0, 0], [1, 0]]
    assert found.sizes == (2, 1)


def test_scores_and_counts() -> None:
    assert as_score(torch.tensor(0.5)) == 0.5
    assert torch.equal(torch.as_tensor(as_score(torch.ones(3))), torch.ones(3))
    for wrong in (0, -1, 2.0, True, "3"):
        with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1"):
            check_count(wrong, "n_bins")
