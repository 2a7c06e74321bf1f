"""Bins against numpy, information against scikit-learn, one pair at a time."""

import resource

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from unweave.metrics.estimators import information as module
from unweave.metrics.estimators.bins import discretise
from unweave.metrics.estimators.information import code_information, entropy, information, mutual_information


def slow_bins(codes: np.ndarray, n_bins: int) -> np.ndarray:
    return np.stack([np.digitize(c, np.histogram(c, n_bins)[1][:-1]) for c in codes.T], axis=-1) - 1


def slow_information(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.array([[mutual_info_score(a, b) for b in right.T] for a in left.T])


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 2000) for size in (3, 6, 40, 1, 7)], axis=-1)
    codes = factors @ rng.normal(size=(5, 4)) + rng.normal(size=(2000, 4))
    return np.c_[codes, np.full(2000, 0.1)], factors


def test_the_published_example() -> None:
    found = discretise(torch.tensor([[0.1], [0.2], [0.3], [0.4], [0.5], [0.6]], dtype=torch.float64), 3)
    assert (found[:, 0] + 1).tolist() == [1, 1, 2, 2, 3, 3]


@settings(max_examples=100, deadline=None)
@given(
    codes=arrays(np.float64, (17, 2), elements=st.floats(-1e6, 1e6))
    | arrays(np.int64, (17, 2), elements=st.integers(-9, 9)),
    n_bins=st.integers(1, 30),
    single=st.booleans(),
)
def test_bins_are_numpys(codes: np.ndarray, n_bins: int, single: bool) -> None:
    codes = codes.astype(np.float32 if single else np.float64)
    assert np.array_equal(discretise(torch.tensor(codes), n_bins).numpy(), slow_bins(codes, n_bins))


def test_bins_of_tiny_codes_and_of_a_fleet() -> None:
    codes = np.random.default_rng(1).normal(size=(3, 50, 2))
    single = [discretise(torch.tensor(one)) for one in codes]
    assert torch.equal(discretise(torch.tensor(codes)), torch.stack(single))
    assert torch.equal(discretise(torch.tensor(codes * 2.0**-1030)), torch.stack(single))


def test_information_is_scikit_learns(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    known, bins = information(codes, factors), slow_bins(codes, 20)
    np.testing.assert_allclose(known.mutual, slow_information(bins, factors), atol=1e-13)
    np.testing.assert_allclose(known.factor_entropy, [mutual_info_score(f, f) for f in factors.T], atol=1e-13)
    np.testing.assert_allclose(known.code_entropy, [mutual_info_score(b, b) for b in bins.T], atol=1e-13)
    pairs = [[mutual_info_score(p, p) for p in (1000 * b[:, None] + factors).T] for b in bins.T]
    np.testing.assert_allclose(known.joint_entropy, pairs, atol=1e-12)
    assert known.varies.tolist() == [True] * 4 + [False]


def test_a_constant_and_an_independent_code_tell_exactly_nothing() -> None:
    grid = np.stack(np.meshgrid(np.arange(3), np.arange(7)), axis=-1).reshape(-1, 2)
    known = information(np.c_[grid, np.full(21, 0.1)], grid)
    assert torch.equal(known.mutual, torch.diag(known.mutual.diagonal())[[0, 1, 1]] * torch.tensor([[1], [1], [0]]))
    np.testing.assert_allclose(known.mutual.diagonal(), np.log([3, 7]))


def test_codes_against_codes_and_factors_against_factors(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    bins = slow_bins(codes, 20)
    np.testing.assert_allclose(code_information(codes), slow_information(bins, bins), atol=1e-13)
    np.testing.assert_allclose(
        mutual_information(torch.tensor(factors), torch.tensor(factors)), slow_information(factors, factors), atol=1e-13
    )
    np.testing.assert_allclose(entropy(torch.tensor([[1], [1], [2], [2], [3], [3]])), np.log(3))


def test_a_fleet_is_its_members(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    fleet = np.stack([codes, codes[:, ::-1], codes**2])
    known = information(fleet, factors)
    for place, one in enumerate(fleet):
        assert torch.equal(known.mutual[place], information(one, factors).mutual)
        assert torch.equal(code_information(fleet)[place], code_information(one))


@pytest.mark.parametrize("limit", [1, 777, 5000, 100_000])
def test_blocks_do_not_change_the_counts(
    table: tuple[np.ndarray, np.ndarray], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, factors = table[0][:300], table[1][:300]
    whole = information(codes, factors).mutual, code_information(codes)
    monkeypatch.setattr(module, "LIMIT", limit)
    assert torch.equal(information(codes, factors).mutual, whole[0])
    assert torch.equal(code_information(codes), whole[1])


def test_the_ceiling_is_what_the_ideal_code_attains() -> None:
    factors = np.stack([np.arange(960) % size for size in (3, 20, 32, 40)], axis=-1)
    known = information(factors.astype(float), factors)
    np.testing.assert_allclose(known.ceiling, known.mutual.diagonal(), atol=1e-13)
    # 32 values in 20 bins: 12 bins of two, 8 of one; 40 values: 20 of two
    expected = [np.log(3), np.log(20), 0.75 * np.log(16) + 0.25 * np.log(32), np.log(20)]
    np.testing.assert_allclose(known.ceiling, expected, atol=1e-12)


@pytest.mark.slow
def test_memory_stays_below_a_gigabyte_for_a_hundred_thousand_wide_codes() -> None:
    codes = np.random.default_rng(0).normal(size=(100_000, 64))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert code_information(codes).shape == (64, 64)
    assert information(codes, (codes[:, :5] * 4).astype(int)).mutual.shape == (64, 5)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20 < 1.0
