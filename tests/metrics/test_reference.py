"""Agreement with disentanglement_lib, run under scikit-learn 1.9 and the period's 0.21, to 1e-6 and far beyond."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unweave.metrics import averaged_mi, information, irs, mig, modularity, total_correlation, udr, wasserstein

REFERENCE = Path(__file__).parents[1] / "reference"


def load(table: str, version: str) -> tuple[Any, dict[str, Any]]:
    return np.load(REFERENCE / f"metrics_{table}.npz"), json.loads(
        (REFERENCE / f"metrics_{table}.sklearn{version}.json").read_text()
    )


@pytest.fixture(params=[(table, version) for table in ("identity", "rotated") for version in ("19", "021")], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    arrays, expected = load(*request.param)
    rows = slice(expected["input"]["num_train"])
    return arrays["codes"][rows], arrays["factors"][rows], expected


def test_information(case: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    codes, factors, expected = case
    known = information(codes, factors)
    np.testing.assert_allclose(known.mutual, expected["matrices"]["mutual_information"], atol=1e-12)
    np.testing.assert_allclose(known.factor_entropy, expected["matrices"]["factor_entropy"], atol=1e-12)


def test_mig_and_modularity(case: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    codes, factors, expected = case
    fixed = expected["fixed"]
    found = mig(codes, factors)
    assert found.score == pytest.approx(fixed["mig"]["discrete_mig"], abs=1e-9)
    unified = fixed["unified_mutual_information"]
    each = [unified[f"mutual_information_matrix.mig.factor_{k}"] for k in range(4)]
    np.testing.assert_allclose(found.per_factor, each, atol=1e-9)
    modular = modularity(codes, factors)
    assert modular.score == pytest.approx(fixed["modularity_only"]["modularity_score"], abs=1e-9)
    each = [unified[f"mutual_information_matrix.modularity.code_{j}"] for j in range(4)]
    np.testing.assert_allclose(modular.per_latent, each, atol=1e-9)


def test_irs(case: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    codes, factors, expected = case
    found, parts = irs(codes, factors), expected["matrices"]["irs"]
    assert found.score == pytest.approx(expected["fixed"]["irs"]["IRS"], abs=1e-9)
    assert found.num_active_dims == pytest.approx(expected["fixed"]["irs"]["num_active_dims"], abs=1e-9)
    assert irs(codes, factors, quantile=1.0).score == pytest.approx(
        expected["fixed"]["irs_quantile_1"]["IRS"], abs=1e-9
    )
    np.testing.assert_allclose(found.matrix, parts["IRS_matrix"], atol=1e-9)
    np.testing.assert_allclose(found.per_latent, parts["disentanglement_scores"], atol=1e-9)
    np.testing.assert_allclose(found.max_deviation, parts["max_deviations"], atol=1e-9)
    assert found.parent.tolist() == parts["parents"]


def test_without_labels(case: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    codes, _, expected = case
    fixed = expected["fixed"]["unsupervised"]
    assert total_correlation(codes).score == pytest.approx(fixed["gaussian_total_correlation"], abs=1e-9)
    found = wasserstein(codes)
    assert found.score == pytest.approx(fixed["gaussian_wasserstein_correlation"], abs=1e-9)
    assert found.normalised == pytest.approx(fixed["gaussian_wasserstein_correlation_norm"], abs=1e-9)
    assert averaged_mi(codes).score == pytest.approx(fixed["mutual_info_score"], abs=1e-9)


@pytest.mark.parametrize("version", ["19", "021"])
@pytest.mark.parametrize("method", ["lasso", "spearman"])
def test_udr(version: str, method: Any) -> None:
    arrays, expected = load("udr", version)
    found, fixed = udr(arrays["models"], arrays["kl"], method=method), expected["fixed"][f"udr_{method}"]
    np.testing.assert_allclose(found.score, fixed["model_scores"], atol=1e-9)
    np.testing.assert_allclose(found.pairwise, np.squeeze(fixed["pairwise_disentanglement_scores"], -1), atol=1e-9)
    np.testing.assert_allclose(found.correlations, fixed["raw_correlations"], atol=1e-9)
