"""Metrics inside scikit-learn."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, FastICA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unweave.evaluation.scorer import Scorer
from unweave.metrics import dci, effective_rank, mcc, total_correlation


def mixture() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (300, 2))
    return (factors - 2.0) @ np.array([[1.0, 0.6], [-0.5, 1.2]]) + 0.05 * rng.normal(size=(300, 2)), factors


def test_a_scorer_is_its_metric_on_transformed_data() -> None:
    data, factors = mixture()
    pca = PCA(2).fit(data)
    assert Scorer("mcc")(pca, data, factors) == pytest.approx(mcc(pca.transform(data), factors).score)
    assert Scorer("dci", "completeness")(pca, data, factors) == dci(pca.transform(data), factors, seed=0).completeness
    assert Scorer("total_correlation")(pca, data) == -total_correlation(pca.transform(data)).score
    assert Scorer("effective_rank")(pca, data) == effective_rank(pca.transform(data)).score


def test_cross_validation_and_grid_search_take_it() -> None:
    data, factors = mixture()
    scores = cross_val_score(make_pipeline(StandardScaler(), PCA(2)), data, factors, scoring=Scorer("mcc"), cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    ica = FastICA(2, random_state=0, whiten="unit-variance", max_iter=1000, tol=1e-3)
    search = GridSearchCV(ica, {"n_components": [1, 2]}, scoring=Scorer("mig"), cv=2, error_score="raise")
    assert search.fit(data, factors).best_params_ == {"n_components": 2}


def test_what_a_scorer_cannot_do_is_said() -> None:
    data, factors = mixture()
    with pytest.raises(ValueError, match="LinearRegression has no transform"):
        Scorer("mig")(LinearRegression().fit(data, factors), data, factors)
    with pytest.raises(ValueError, match="has no part 'depth'; it has disentanglement, completeness"):
        Scorer("dci", "depth")(PCA(2).fit(data), data, factors)
    with pytest.raises(ValueError, match="unknown metric"):
        Scorer("mmig")(PCA(2).fit(data), data, factors)
