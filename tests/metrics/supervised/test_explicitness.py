"""Explicitness against the reference run and scikit-learn's ROC-AUC."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from unweave.metrics.supervised.explicitness import explicitness, macro_area
from unweave.metrics.supervised.logistic import logistic


@pytest.mark.parametrize("table", ["identity", "rotated"])
@pytest.mark.parametrize(("version", "scheme"), [("19", "multinomial"), ("021", "ovr")])
def test_the_reference_run_is_met(reference: Path, table: str, version: str, scheme: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    text = (reference / f"metrics_{table}.sklearn{version}.json").read_text()
    wanted = json.loads(text)["fixed"]["modularity_explicitness"]
    found = explicitness(codes, factors, n_train=600, n_test=300, scheme=scheme)
    assert found.score == pytest.approx(wanted["explicitness_score_test"], abs=1e-6)
    assert found.train == pytest.approx(wanted["explicitness_score_train"], abs=1e-6)


def test_the_area_is_scikit_learns_with_ties() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    chances = rng.random((200, 4)).round(1) + 0.05
    chances /= chances.sum(1, keepdims=True)
    assert macro_area(np.arange(4), chances, truth) == pytest.approx(
        roc_auc_score(np.eye(4)[truth], chances, average="macro"), abs=1e-12
    )


def test_values_absent_from_either_part() -> None:
    rng = np.random.default_rng(0)
    factor = rng.integers(3, size=300)
    codes = factor[:, None] + 0.1 * rng.normal(size=(300, 1))
    # value 2 never appears in the test rows: the mean runs over the two that do
    kept = np.r_[np.arange(200), 200 + np.flatnonzero(factor[200:] < 2)]
    assert explicitness(codes[kept], factor[kept], n_train=200).score > 0.95
    # value 9 appears only in the test rows: chance
    late = np.where(np.arange(300) >= 250, 9, factor % 2)
    parts = explicitness(np.where(late == 9, 0.5, late * 1.0)[:, None], late, n_train=200, n_test=100)
    assert parts.score == pytest.approx((macro_of(late[200:]) * 2 + 0.5) / 3, abs=1e-9)


def macro_of(truth: np.ndarray) -> float:
    """Area of values 0 and 1 when 9 stands half way between them."""
    return float(np.mean([roc_auc_score(truth == 0, -codes(truth)), roc_auc_score(truth == 1, codes(truth))]))


def codes(truth: np.ndarray) -> np.ndarray:
    return np.where(truth == 9, 0.5, truth * 1.0)


def test_nothing_to_tell_is_chance() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(3, size=(300, 1))
    assert explicitness(np.zeros((300, 2)), factors).score == pytest.approx(0.5)
    assert explicitness(rng.normal(size=(300, 2)), np.zeros(300)).score == 0.5
    dead = np.column_stack([factors, np.full(300, 0.1)])
    assert explicitness(dead, factors).score > 0.99


def test_one_against_the_rest_of_two_is_one_model() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=100)
    table = labels[:, None] + rng.normal(size=(100, 2))
    classes, (chances,) = logistic(table, labels + 5, (table,), "ovr")
    assert classes.tolist() == [5, 6]
    assert chances.sum(1) == pytest.approx(np.ones(100))
