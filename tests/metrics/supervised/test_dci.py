"""DCI against its numeric expectations, the reference run, and scikit-learn's trees."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from unweave.metrics.supervised.dci import completeness, dci, disentanglement

HALVED = 1 - np.log(2) / np.log(10)


def latents_and_factors(n_samples: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(size, size=n_samples) for size in (3, 4, 2)], axis=1)
    mixing = np.array([[1.0, 0.2, 0.0, 0.3], [0.0, 1.0, 0.4, 0.0], [0.1, 0.0, 1.0, 0.0]])
    return factors @ mixing + 0.3 * rng.normal(size=(n_samples, 4)), factors


@pytest.mark.parametrize(
    ("importance", "expected"),
    [
        (np.diag([5.0, 5, 5]), (1, 1)),
        (np.array([[1.0, 0], [0, 1], [0, 0]]), (1, 1)),
        (np.zeros((10, 10)), (0, 0)),
        (np.vstack([np.eye(5), np.eye(5)]), (1, HALVED)),
        (np.hstack([np.eye(5), np.eye(5)]), (HALVED, 1)),
        (np.eye(5)[:2], (1, None)),
    ],
)
def test_numeric_expectations_of_the_original(importance: np.ndarray, expected: tuple) -> None:
    for measured, wanted in zip((disentanglement(importance), completeness(importance)), expected):
        assert wanted is None or measured == pytest.approx(wanted, abs=1e-6)


def test_disentanglement_is_the_weighted_entropy() -> None:
    importance = np.random.default_rng(0).random((5, 3))
    share = importance.sum(1) / importance.sum()
    by_hand = sum(w * (1 - entropy(row / row.sum(), base=3)) for w, row in zip(share, importance))
    assert disentanglement(importance) == pytest.approx(by_hand, abs=1e-9)


def test_identity_duplicate_and_shuffled_codes() -> None:
    factors = np.random.default_rng(0).integers(6, size=(900, 4))
    identity = dci(factors.astype(float), factors, n_rounds=20)
    assert identity.score > 0.999
    assert identity.completeness > 0.999
    assert identity.informativeness == 1.0
    twice = dci(np.hstack([factors, factors]).astype(float), factors, n_rounds=20)
    assert twice.disentanglement > 0.999
    assert twice.completeness == pytest.approx(1 - np.log(2) / np.log(8), abs=1e-3)
    shuffled = dci(np.random.default_rng(1).permutation(factors).astype(float), factors, n_rounds=20)
    assert shuffled.disentanglement < 0.2
    assert shuffled.completeness < 0.2
    assert shuffled.informativeness < 0.35


@pytest.mark.parametrize("table", ["identity", "rotated"])
def test_the_fast_back_end_meets_the_reference_run(reference: Path, table: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    stored = json.loads((reference / f"metrics_{table}.sklearn19.json").read_text())
    found = dci(codes, factors, n_train=600, n_test=300)
    wanted = stored["fixed"]["dci"]
    assert found.disentanglement == pytest.approx(wanted["disentanglement"], abs=2e-3)
    assert found.completeness == pytest.approx(wanted["completeness"], abs=2e-3)
    assert found.informativeness == pytest.approx(wanted["informativeness_test"], abs=1e-2)
    assert found.importance.numpy() == pytest.approx(np.array(stored["matrices"]["gbt_importance"]), abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["identity", "rotated"])
def test_the_reference_back_end_meets_the_reference_run(reference: Path, table: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    wanted = json.loads((reference / f"metrics_{table}.sklearn19.json").read_text())["fixed"]["dci"]
    found = dci(codes, factors, backend="sklearn", n_train=600, n_test=300)
    assert found.disentanglement == pytest.approx(wanted["disentanglement"], abs=2e-3)
    assert found.completeness == pytest.approx(wanted["completeness"], abs=2e-3)
    assert found.informativeness == wanted["informativeness_test"]
    assert found.informativeness_train == wanted["informativeness_train"]


def test_torch_and_numpy_agree_and_two_tables_are_a_split() -> None:
    codes, factors = latents_and_factors(300)
    whole = dci(codes, factors, n_train=200, n_test=100, n_rounds=5)
    parts = dci(torch.tensor(codes[:200]), torch.tensor(factors[:200]), codes[200:], factors[200:], n_rounds=5)
    assert whole.score == parts.score
    assert torch.equal(whole.importance, parts.importance)
    assert whole.informativeness == parts.informativeness


def test_odd_tables_have_defined_answers() -> None:
    codes, factors = latents_and_factors(300)
    constant = dci(np.zeros((300, 3)), factors)
    assert (constant.disentanglement, constant.completeness) == (0.0, 0.0)
    assert constant.informativeness < 0.7
    still = dci(codes, np.column_stack([factors, np.zeros(300)]), n_rounds=5)
    assert still.importance[:, 3].abs().sum() == 0
    assert still.accuracy[3] == 1.0
    one = dci(codes[:, :1], factors[:, :1])
    assert (one.disentanglement, one.completeness) == (1.0, 1.0)
    absent = np.where(np.arange(300) < 200, factors[:, 0] % 2, 7)[:, None]
    assert dci(codes, absent, n_train=200, n_test=100).informativeness == 0.0


def test_bad_arguments_say_so() -> None:
    codes, factors = latents_and_factors(60)
    with pytest.raises(ValueError, match="backend must be"):
        dci(codes, factors, backend="xgboost")
    with pytest.raises(ValueError, match="n_train is 100 but only 59"):
        dci(codes, factors, n_train=100)
    with pytest.raises(ValueError, match="rows look sorted; pass seed=0"):
        dci(codes[np.argsort(factors[:, 0])], factors[np.argsort(factors[:, 0])], n_train=10, n_test=20)
    with pytest.raises(ValueError, match="come together"):
        dci(codes, factors, test_codes=codes)
