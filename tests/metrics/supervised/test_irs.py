"""IRS against a loop over groups with numpy's quantile."""

import numpy as np
import pytest

from unweave.metrics import irs


def slow_matrix(codes: np.ndarray, factors: np.ndarray, quantile: float) -> np.ndarray:
    widest = np.abs(codes - codes.mean(0)).max(0)
    columns = []
    for factor in factors.T:
        groups = [codes[factor == value] for value in np.unique(factor)]
        spread = [np.quantile(np.abs(group - group.mean(0)), quantile, axis=0) for group in groups]
        columns.append(1 - np.mean(spread, axis=0) / widest)
    return np.stack(columns, axis=-1)


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 500) for size in (3, 7, 19)], axis=-1)
    return factors @ rng.normal(size=(3, 4)) + rng.normal(size=(500, 4)), factors


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.99, 1.0])
def test_it_is_the_slow_loop(table: tuple[np.ndarray, np.ndarray], quantile: float) -> None:
    codes, factors = table
    found, expected = irs(codes, factors, quantile=quantile), slow_matrix(codes, factors, quantile)
    np.testing.assert_allclose(found.matrix, expected, atol=1e-13)
    widest = np.abs(codes - codes.mean(0)).max(0)
    assert found.score == pytest.approx(np.average(expected.max(1), weights=widest), abs=1e-13)
    assert found.parent.tolist() == expected.argmax(1).tolist()


def test_identity_and_constant_codes(table: tuple[np.ndarray, np.ndarray]) -> None:
    _, factors = table
    assert irs(factors, factors).score == pytest.approx(1.0)
    assert irs(np.full((500, 3), 0.1), factors).score == 0.0


def test_active_latents_are_counted_and_the_published_number_is_kept(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    padded = irs(np.c_[codes, np.full(500, 0.1)], factors)
    assert padded.n_active_latents == 4
    assert padded.num_active_dims == pytest.approx(codes.sum())
    assert padded.score == pytest.approx(irs(codes, factors).score)


def test_factors_may_be_continuous_many_valued_or_words(table: tuple[np.ndarray, np.ndarray]) -> None:
    codes, factors = table
    many = np.arange(500) % 60
    merged = np.digitize(many, np.histogram(many, 20)[1][:-1])
    np.testing.assert_allclose(irs(codes, many).matrix, slow_matrix(codes, merged[:, None], 0.99), atol=1e-13)
    assert irs(codes, many / 7).score == pytest.approx(irs(codes, many).score)
    words = np.array(["circle", "heart", "square"])[factors[:, 0]]
    assert irs(codes, words).score == pytest.approx(irs(codes, factors[:, 0]).score)
    with pytest.raises(ValueError, match="quantile must lie between 0 and 1"):
        irs(codes, factors, quantile=1.5)
