"""Downstream accuracy against the reference run and plain scikit-learn."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import KFold

from unweave.metrics.downstream import learning
from unweave.metrics.downstream.cross_validated import _folds, cross_validated
from unweave.metrics.downstream.learning import _efficiency, downstream
from unweave.metrics.supervised.logistic import quietly_fitted


@pytest.mark.parametrize("table", ["identity", "rotated"])
@pytest.mark.parametrize(
    ("version", "scheme"), [("19", "multinomial"), pytest.param("021", "ovr", marks=pytest.mark.slow)]
)
def test_the_reference_run_is_met(reference: Path, table: str, version: str, scheme: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    text = (reference / f"metrics_{table}.sklearn{version}.json").read_text()
    wanted = json.loads(text)["fixed"]["downstream_logistic_regression_cv"]
    found = downstream(codes, factors, sizes=[100], n_test=300, scheme=scheme)
    for part, name in ((found.test, "test"), (found.train, "train")):
        assert part[0].tolist() == pytest.approx(
            [wanted[f"100:{name}_accuracy_factor_{k}"] for k in range(4)], abs=1e-6
        )
    assert found.score == pytest.approx(wanted["100:mean_test_accuracy"], abs=1e-6)


def test_few_labels_are_scikit_learns_cross_validation() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    codes = labels[:, None] + rng.normal(size=(200, 2))
    model = quietly_fitted(LogisticRegressionCV(Cs=10, cv=KFold(5), scoring="accuracy"), codes[:60], labels[:60])
    found = downstream(codes, labels, sizes=[60], n_test=100)
    assert found.score == np.mean(model.predict(codes[60:160]) == labels[60:160])


def test_sizes_the_table_cannot_serve_are_left_out_and_efficiency_needs_both() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=(300, 2))
    codes = labels + 0.5 * rng.normal(size=(300, 2))
    found = downstream(codes, labels, predictor="trees")
    assert found.sizes == (10, 100)
    assert found.efficiency is None
    assert found.mean[1] > found.mean[0]
    assert found.test.shape == (2, 2)


def test_efficiency_is_a_ratio_of_means() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=10_400)
    codes = labels[:, None] + 0.5 * rng.normal(size=(10_400, 1))
    found = downstream(codes, labels, sizes=[100, 10_000], n_test=400)
    assert found.efficiency == pytest.approx(float(found.mean[0] / found.mean[1]))


@pytest.mark.parametrize("scheme", ["multinomial", "ovr"])
@pytest.mark.parametrize("predictor", ["logistic", "trees"])
def test_single_class_folds_and_labels(scheme: str, predictor: str) -> None:
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(40, 2))
    rare = np.zeros((40, 2), int)
    rare[9] = 1
    rare[5:, 1] = 1
    found = downstream(codes, rare, sizes=[10], n_test=30, predictor=predictor, scheme=scheme)
    assert np.isfinite(found.score)
    same = downstream(codes[:10], np.zeros(10), codes, np.zeros(40), sizes=[10])
    assert same.score == 1.0


def test_folds_that_leave_one_class_are_left_out() -> None:
    targets = np.array([0] * 8 + [1] * 2)
    assert [out.tolist() for _, out in _folds(targets)] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_bad_arguments_say_so() -> None:
    codes = np.zeros((12, 1))
    with pytest.raises(ValueError, match="fewer than 10"):
        downstream(codes, np.arange(12) % 2)
    with pytest.raises(ValueError, match="predictor must be"):
        downstream(codes, np.arange(12) % 2, predictor="forest")


def test_efficiency_is_a_ratio_where_there_is_one() -> None:
    assert _efficiency((10, 100, 10_000), np.array([0.1, 0.4, 0.8])) == pytest.approx(0.5)
    assert _efficiency((100, 10_000), np.array([0.5, 1.0])) == pytest.approx(0.5)
    assert _efficiency((100, 10_000), np.array([0.0, 0.0])) is None
    assert _efficiency((100, 1000), np.array([0.5, 1.0])) is None


@pytest.mark.parametrize(
    ("n_rows", "sizes", "n_tested"), [(14, (10,), 4), (15, (10,), 5), (148, (10,), 138), (149, (10, 100), 49)]
)
def test_a_third_of_a_small_table_is_kept_for_testing(n_rows: int, sizes: tuple[int, ...], n_tested: int) -> None:
    labels = np.arange(n_rows) % 2
    parts, chosen = learning._parts(labels[:, None] * 1.0, labels, None, None, None, None, None)
    assert (chosen, len(parts.test_codes)) == (sizes, n_tested)


def test_no_more_rows_are_tested_than_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(15) % 2
    with pytest.raises(ValueError, match="the table leaves 9 rows to learn from, fewer than 10"):
        learning._parts(labels[:13, None] * 1.0, labels[:13], None, None, None, None, None)
    monkeypatch.setattr(learning, "N_TEST", 4)
    parts, _ = learning._parts(labels[:, None] * 1.0, labels, None, None, None, None, None)
    assert len(parts.test_codes) == 4
    parts, chosen = learning._parts(labels[:, None] * 1.0, labels, None, None, (3, 2, 3), 6, None)
    assert (chosen, len(parts.codes), len(parts.test_codes)) == ((2, 3), 3, 6)


def test_one_against_the_rest_cannot_tell_what_lies_in_the_middle() -> None:
    """On a line a softmax finds three classes; of three lines, the one for the middle is flat."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=150)
    codes = labels[:, None] + 0.1 * rng.normal(size=(150, 1))
    together, apart = (cross_validated(codes, labels, codes, scheme)[1] for scheme in ("multinomial", "ovr"))
    assert np.mean(together == labels) > 0.99
    assert np.mean(apart[labels == 1] == 1) < 0.9
    assert np.mean(apart[labels != 1] == labels[labels != 1]) > 0.99
    two = labels[labels != 1]
    found = [cross_validated(codes[labels != 1], two, codes, scheme)[1] for scheme in ("multinomial", "ovr")]
    assert np.array_equal(*found)
