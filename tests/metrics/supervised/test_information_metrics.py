"""MIG, MIG-sup, modularity, JEMMIG and DCIMIG: hand-made matrices, slow loops, disentanglement_lib's expectations."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

from unweave.metrics import Information, dcimig, information, jemmig, mig, mig_sup, modularity
from unweave.metrics.supervised.mig import gap


def known(mutual: object, entropies: object = None, n_bins: int = 20) -> Information:
    """Information with a given matrix, latent × factor, as though it had been counted."""
    table = torch.as_tensor(np.asarray(mutual, dtype=float))
    factor_entropy = torch.as_tensor(np.ones(table.shape[-1]) if entropies is None else np.asarray(entropies, float))
    code_entropy = table.amax(-1)
    joint = code_entropy[:, None] + factor_entropy - table
    return Information(table, joint, code_entropy, factor_entropy, torch.ones(table.shape[-1], 2), n_bins)


@pytest.fixture
def grid() -> np.ndarray:
    sizes = (3, 4, 5, 6)
    return np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=-1)


@pytest.fixture
def mixed(grid: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    return grid @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(len(grid), 5))


def slow_matrix(codes: np.ndarray, factors: np.ndarray, n_bins: int = 20) -> np.ndarray:
    bins = [np.digitize(c, np.histogram(c, n_bins)[1][:-1]) for c in codes.T]
    return np.array([[mutual_info_score(f, b) for f in factors.T] for b in bins])


def slow_entropy(factors: np.ndarray) -> np.ndarray:
    return np.array([mutual_info_score(f, f) for f in factors.T])


def test_mig_is_the_slow_loop(mixed: np.ndarray, grid: np.ndarray) -> None:
    matrix = np.sort(slow_matrix(mixed, grid), axis=0)
    expected = (matrix[-1] - matrix[-2]) / slow_entropy(grid)
    found = mig(mixed, grid)
    np.testing.assert_allclose(found.per_factor, expected, atol=1e-13)
    assert found.score == pytest.approx(expected.mean(), abs=1e-13)


def test_mig_of_an_ideal_code_stays_below_one_beyond_twenty_values() -> None:
    factors = np.stack(np.unravel_index(np.arange(40 * 32), (40, 32)), axis=-1)
    assert mig(factors, factors).score < 0.9
    assert mig(factors, factors, normalise="ceiling").score == pytest.approx(1.0)
    assert mig(factors, factors, n_bins=40).score == pytest.approx(1.0)


def test_the_ceiling_changes_nothing_up_to_twenty_values(mixed: np.ndarray, grid: np.ndarray) -> None:
    assert mig(mixed, grid, normalise="ceiling").score == mig(mixed, grid).score


def test_mig_with_one_latent_or_a_constant_factor(mixed: np.ndarray, grid: np.ndarray) -> None:
    alone = mig(mixed[:, :1], grid)
    np.testing.assert_allclose(alone.per_factor, slow_matrix(mixed[:, :1], grid)[0] / slow_entropy(grid), atol=1e-13)
    with_constant = mig(mixed, np.c_[grid, np.zeros(len(grid), int)])
    assert with_constant.score == mig(mixed, grid).score
    assert with_constant.per_factor[-1] == 0.0
    assert mig(mixed, np.zeros(len(mixed), int)).score == 0.0


def test_gap_is_first_less_second() -> None:
    table = torch.tensor([[3.0, 1.0, 2.0], [5.0, 5.0, 0.0]])
    assert gap(table, dim=1).tolist() == [1.0, 0.0]
    assert gap(table, dim=0).tolist() == [2.0, 4.0, 2.0]
    assert gap(table[:, :1], dim=1).tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.diag([5.0, 2.0, 1.0]), 1.0),
        (np.diag([5.0, 2.0, 0.0]), 2 / 3),
        (np.zeros((10, 10)), 0.0),
        (np.vstack([np.eye(5), np.eye(5)]), 1.0),
        (np.hstack([np.eye(5), np.eye(5)]), 1.0 - 1.0 / 9),
    ],
)
def test_modularity_on_disentanglement_libs_matrices(matrix: np.ndarray, expected: float) -> None:
    assert modularity(known(matrix)).score == pytest.approx(expected, abs=1e-12)


def test_modularity_is_the_slow_loop(mixed: np.ndarray, grid: np.ndarray) -> None:
    scores = []
    for row in slow_matrix(mixed, grid):
        template = np.where(row == row.max(), row.max(), 0.0)
        scores.append(1 - np.sum((row - template) ** 2) / (row.max() ** 2 * (len(row) - 1)))
    np.testing.assert_allclose(modularity(mixed, grid).per_latent, scores, atol=1e-13)


def test_modularity_by_information_leaves_idle_latents_out(grid: np.ndarray) -> None:
    noise = np.random.default_rng(0).normal(size=(len(grid), 6))
    idle = np.c_[grid, noise, np.zeros(len(grid))]
    assert modularity(idle, grid).score < 0.8
    assert modularity(idle, grid, average="information").score > modularity(idle, grid).score + 0.1
    assert modularity(np.zeros((len(grid), 2)), grid, average="information").score == 0.0
    assert modularity(grid, grid[:, :1]).per_latent.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_mig_sup_is_the_slow_loop(mixed: np.ndarray, grid: np.ndarray) -> None:
    share = np.sort(slow_matrix(mixed, grid) / slow_entropy(grid), axis=1)
    found = mig_sup(mixed, grid)
    np.testing.assert_allclose(found.per_latent, share[:, -1] - share[:, -2], atol=1e-13)
    assert found.score == pytest.approx(np.mean(share[:, -1] - share[:, -2]))


def test_mig_sup_counts_active_latents_only(mixed: np.ndarray, grid: np.ndarray) -> None:
    padded = np.c_[mixed, np.full(len(mixed), 0.1)]
    assert mig_sup(padded, grid).score == pytest.approx(mig_sup(mixed, grid).score)
    chosen = mig_sup(mixed, grid, active=[True, False, True, False, False])
    assert chosen.score == pytest.approx(float(chosen.per_latent[[0, 2]].mean()))
    assert mig_sup(np.zeros((len(grid), 2)), grid).score == 0.0
    with pytest.raises(ValueError, match="active must hold one true or false per latent"):
        mig_sup(mixed, grid, active=[1, 0])


def test_jemmig_is_the_slow_loop(mixed: np.ndarray, grid: np.ndarray) -> None:
    matrix = slow_matrix(mixed, grid)
    expected = []
    for k, factor in enumerate(grid.T):
        best = int(np.argmax(matrix[:, k]))
        bins = np.digitize(mixed[:, best], np.histogram(mixed[:, best], 20)[1][:-1])
        both = 100 * bins + factor
        second = np.sort(matrix[:, k])[-2]
        raw = mutual_info_score(both, both) - matrix[best, k] + second
        expected.append(1 - raw / (mutual_info_score(factor, factor) + np.log(20)))
    found = jemmig(mixed, grid)
    np.testing.assert_allclose(found.per_factor, expected, atol=1e-12)
    assert found.score == pytest.approx(np.mean(expected))


def test_jemmig_of_ideal_and_constant_codes(grid: np.ndarray) -> None:
    assert jemmig(grid, grid).score == pytest.approx(1.0)
    entropies = np.log([3, 4, 5, 6])
    constant = jemmig(np.zeros((len(grid), 3)), grid)
    np.testing.assert_allclose(constant.per_factor, np.log(20) / (entropies + np.log(20)))
    np.testing.assert_allclose(constant.raw, entropies)


def test_dcimig_by_hand() -> None:
    # latent 0 leads in factor 0 by 0.6, latent 1 in factor 0 by 0.1, latent 2 in factor 1 by 0.3
    matrix = [[0.8, 0.2], [0.5, 0.4], [0.1, 0.4]]
    found = dcimig(known(matrix, [1.0, 0.8]))
    np.testing.assert_allclose(found.per_factor, [0.6, 0.3])
    assert found.score == pytest.approx(0.9 / 1.8)


def test_dcimig_is_the_slow_loop(mixed: np.ndarray, grid: np.ndarray) -> None:
    matrix, best = slow_matrix(mixed, grid), np.zeros(4)
    for row in matrix:
        lead = np.sort(row)[-1] - np.sort(row)[-2]
        best[row.argmax()] = max(best[row.argmax()], lead)
    assert dcimig(mixed, grid).score == pytest.approx(best.sum() / slow_entropy(grid).sum(), abs=1e-12)
    assert dcimig(mixed, np.zeros(len(mixed), int)).score == 0.0


def test_counts_can_be_shared(mixed: np.ndarray, grid: np.ndarray) -> None:
    counted = information(mixed, grid)
    for metric in (mig, mig_sup, modularity, jemmig, dcimig):
        assert metric(counted).score == metric(mixed, grid).score
    with pytest.raises(ValueError, match="factors must be given"):
        mig(mixed)


def test_identity_permuted_and_duplicated_codes_as_disentanglement_lib_expects() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 10, size=(20_000, 10))
    permuted = rng.permuted(factors, axis=1)
    assert mig(factors, factors).score >= 0.9
    assert modularity(factors, factors).score >= 0.9
    assert modularity(permuted, factors).score <= 0.2
    assert modularity(np.c_[factors, factors], factors).score >= 0.9
    assert mig(np.zeros_like(factors), factors).score <= 0.2
    assert mig(np.c_[factors, factors], factors).score <= 0.1


@pytest.mark.parametrize(
    ("metric", "option", "sentence"),
    [
        (mig, {"normalise": "size"}, "normalise must be 'entropy' or 'ceiling'"),
        (modularity, {"average": "all"}, "average must be 'latents' or 'information'"),
        (jemmig, {"n_bins": 0}, "n_bins must be a whole number"),
    ],
)
def test_wrong_settings_are_named(metric: object, option: dict[str, object], sentence: str, grid: np.ndarray) -> None:
    with pytest.raises(ValueError, match=sentence):
        metric(grid, grid, **option)  # type: ignore[operator]
