"""The fast boosted trees against scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier

from unweave.metrics.supervised.trees import _probability, fast_trees, fast_trees_of_all, sklearn_trees, thresholds


def table(n_classes: int, n_samples: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n_samples)
    codes = np.stack([labels + 0.8 * rng.normal(size=n_samples), rng.normal(size=n_samples), -0.5 * labels], axis=1)
    codes[:, 2] += 1.5 * rng.normal(size=n_samples)
    # scikit-learn's trees see single precision
    return codes.astype(np.float32).astype(np.float64), labels


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_importance_and_predictions_are_those_of_scikit_learn(n_classes: int) -> None:
    codes, labels = table(n_classes)
    fast, slow = (learn(codes[:350], labels[:350], codes[350:]) for learn in (fast_trees, sklearn_trees))
    assert fast.importance == pytest.approx(slow.importance, abs=0.01)
    assert np.mean(fast.train == slow.train) > 0.98
    assert np.mean(fast.test == slow.test) > 0.93


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_first_rounds_are_scikit_learns_but_for_ties(n_classes: int) -> None:
    codes, labels = table(n_classes, 300)
    fast = fast_trees(codes, labels, codes, n_rounds=3)
    slow = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(codes, labels)
    assert fast.importance == pytest.approx(slow.feature_importances_, abs=0.01)


def test_thresholds_do_not_cut_clusters() -> None:
    rng = np.random.default_rng(0)
    column = rng.permutation(np.repeat(np.arange(20.0), 150) + 0.01 * rng.random(3000))
    edges = thresholds(column, 64)
    assert len(edges) <= 63
    assert all(((edges > k + 0.01) & (edges < k + 1)).any() for k in range(19))
    assert np.array_equal(thresholds(np.array([3.0, 1, 1, 2]), 64), [1.5, 2.5])
    assert len(thresholds(np.zeros(10), 64)) == 0


def test_labels_need_not_be_in_a_row_and_one_label_is_predicted_everywhere() -> None:
    codes, labels = table(3, 200)
    named = np.array([10, 20, 40])[labels]
    assert set(fast_trees(codes, named, codes).test) <= {10, 20, 40}
    assert (fast_trees(codes, np.full(200, 7), codes).test == 7).all()
    assert fast_trees(codes, np.full(200, 7), codes).importance.sum() == 0


def test_columns_fitted_together_are_those_fitted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(400, 4))
    sizes = (2, 5, 1, 70, 3)
    columns = [np.digitize(codes[:, 0], np.quantile(codes[:, 0], np.arange(1, n) / n)) for n in sizes]
    together = fast_trees_of_all(codes[:300], [column[:300] for column in columns], codes[300:], n_rounds=4)
    for column, fitted in zip(columns, together):
        alone = fast_trees(codes[:300], column[:300], codes[300:], n_rounds=4)
        np.testing.assert_allclose(fitted.importance, alone.importance, rtol=1e-12)
        np.testing.assert_array_equal(fitted.train, alone.train)
        np.testing.assert_array_equal(fitted.test, alone.test)


@pytest.mark.parametrize("n_classes", range(3, 20))
def test_chances_of_few_classes_are_those_of_long_rows(n_classes: int) -> None:
    scores = np.random.default_rng(n_classes).normal(0, 3, (50, 2 * n_classes)).astype(np.float32)
    wanted = [torch.from_numpy(part).double().softmax(1).numpy() for part in np.split(scores, 2, axis=1)]
    np.testing.assert_allclose(_probability(scores, n_classes), np.concatenate(wanted, axis=1), rtol=1e-5)
