"""SAP and its one-dimensional support vector machine."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from unweave.metrics.supervised.linear_svc import decide, linear_svc
from unweave.metrics.supervised.sap import sap


@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_machine_is_liblinears_converged(n_classes: int, scale: float) -> None:
    rng = np.random.default_rng(n_classes)
    labels = rng.integers(n_classes, size=400)
    feature = scale * (labels - 1.0 + rng.normal(size=400))
    slope, intercept = linear_svc(feature, labels)
    exact = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=100_000)
    exact.fit(feature[:, None], labels)
    assert slope == pytest.approx(exact.coef_[:, 0], abs=1e-6)
    assert intercept == pytest.approx(exact.intercept_, abs=1e-6)
    assert np.array_equal(decide(feature, slope, intercept), exact.predict(feature[:, None]))


@pytest.mark.parametrize("column", [np.zeros(50), np.full(50, 3.0), np.r_[np.zeros(49), 1e6]])
def test_the_machine_survives_features_that_say_nothing(column: np.ndarray) -> None:
    labels = np.arange(50) % 3
    slope, intercept = linear_svc(column, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10).fit(column[:, None], labels)
    assert intercept == pytest.approx(model.intercept_, abs=1e-5)
    assert slope == pytest.approx(model.coef_[:, 0], abs=1e-5)


@pytest.mark.parametrize("table", ["identity", "rotated"])
@pytest.mark.parametrize("backend", ["exact", "sklearn"])
def test_the_reference_run_is_met(reference: Path, table: str, backend: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    wanted = json.loads((reference / f"metrics_{table}.sklearn19.json").read_text())
    found = sap(codes, factors, n_train=600, n_test=300, backend=backend)
    assert found.score == pytest.approx(wanted["fixed"]["sap_discrete"]["SAP_score"], abs=1e-6)
    assert found.matrix.numpy() == pytest.approx(np.array(wanted["matrices"]["sap_discrete_accuracy"]), abs=1e-6)
    smooth = sap(codes, factors, n_train=600, n_test=300, continuous=True)
    assert smooth.score == pytest.approx(wanted["fixed"]["sap_continuous"]["SAP_score"], abs=1e-6)
    assert smooth.matrix.numpy() == pytest.approx(np.array(wanted["matrices"]["sap_continuous_r2"]), abs=1e-6)


def test_expectations_of_the_original() -> None:
    factors = np.random.default_rng(0).integers(1, 11, size=(3000, 5))
    assert sap(factors, factors, continuous=True).score > 0.9
    assert sap(np.zeros((3000, 5)), factors, continuous=True).score == 0.0
    assert sap(np.hstack([factors, factors]), factors, continuous=True).score < 0.2


def test_bins_mend_the_ideal_code_and_its_scale() -> None:
    factors = np.random.default_rng(0).integers(8, size=(1500, 3))
    codes = factors + 0.1 * np.random.default_rng(1).normal(size=factors.shape)
    assert sap(codes, factors).score < 0.5
    mended = sap(codes, factors, backend="bins").score
    assert mended > 0.8
    assert sap(10 * codes, factors, backend="bins").score == pytest.approx(mended, abs=1e-12)


def test_odd_tables_have_defined_answers() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(3, size=(300, 2))
    codes = rng.normal(size=(300, 2)) + factors
    assert sap(codes, np.column_stack([factors, np.ones(300)])).per_factor[2] == 0.0
    assert sap(np.column_stack([codes, np.zeros(300)]), factors).score > 0.1
    lone = sap(codes[:, :1], factors[:, :1])
    assert lone.score == lone.matrix[0, 0]
    late = np.where(np.arange(300) < 200, factors[:, 0] % 2, 2)
    assert sap(codes, late, n_train=200, n_test=100).matrix.max() == 0.0
    with pytest.raises(ValueError, match="backend must be"):
        sap(codes, factors, backend="svm")
