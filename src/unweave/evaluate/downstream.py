"""Downstream accuracy and sample efficiency (Locatello et al., 2019): what a representation is worth to a learner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.supervised.logistic import check_scheme, logistic, quietly_fitted
from unweave.metrics.supervised.split import N_TEST, Split, split
from unweave.metrics.supervised.trees import fast_trees, sklearn_trees
from unweave.shapes import Float, Tensor

SIZES = (10, 100, 1_000, 10_000)
N_FOLDS = 5
N_COSTS = 10


@dataclass(frozen=True)
class Downstream:
    """``score`` is the mean test accuracy with the most labels."""

    score: float
    sizes: tuple[int, ...]
    """Numbers of labels."""
    mean: Float[Tensor, "size"]
    test: Float[Tensor, "size factor"]
    train: Float[Tensor, "size factor"]
    efficiency: float | None
    """Mean accuracy with 100 labels over that with 10,000; None when either was not measured."""
    predictor: str


def downstream(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    predictor: str = "logistic",
    scheme: str = "multinomial",
    sizes: Sequence[int] | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Downstream:
    """Accuracy in predicting each factor from few and from many labelled codes.

    The first rows are the labelled ones, so smaller sets are part of larger ones; the rows after the largest set are
    the test rows, 5,000 unless told. Sizes that the table cannot serve are left out unless they were asked for.
    ``"logistic"`` picks its penalty among ten by five unshuffled folds; ``"trees"`` are boosted trees
    (:mod:`unweave.metrics.supervised.trees`), ``"sklearn_trees"`` the original's.
    """
    check_scheme(scheme)
    if predictor not in ("logistic", "trees", "sklearn_trees"):
        raise ValueError(f"predictor must be logistic, trees or sklearn_trees, not {predictor!r}")
    parts, chosen = _parts(codes, factors, test_codes, test_factors, sizes, n_test, seed)
    accuracy = np.zeros((2, len(chosen), parts.factors.shape[1]))
    for place, size in enumerate(chosen):
        for k in range(parts.factors.shape[1]):
            predict = _learner(predictor, scheme)
            train, test = predict(parts.codes[:size], parts.factors[:size, k], parts.test_codes)
            accuracy[0, place, k] = np.mean(train == parts.factors[:size, k])
            accuracy[1, place, k] = np.mean(test == parts.test_factors[:, k])
    mean = accuracy[1].mean(1)
    train, test = torch.from_numpy(accuracy)
    return Downstream(
        float(mean[-1]), chosen, torch.from_numpy(mean), test, train, _efficiency(chosen, mean), predictor
    )


def _parts(
    codes: Any, factors: Any, test_codes: Any, test_factors: Any, sizes: Any, n_test: Any, seed: Any
) -> tuple[Split, tuple[int, ...]]:
    n_rows = len(codes)
    room = n_rows if test_codes is not None else n_rows - (n_test or min(N_TEST, max(1, n_rows // 3)))
    if sizes is None:
        chosen = tuple(size for size in SIZES if size <= room)
        if not chosen:
            raise ValueError(
                f"the table leaves {room} rows to learn from, fewer than {SIZES[0]}; give more or say sizes"
            )
    else:
        for size in sizes:
            check_count(size, "sizes")
        chosen = tuple(sorted({int(size) for size in sizes}))
    test = n_test if test_codes is not None or n_test is not None else min(N_TEST, n_rows - chosen[-1])
    return split(codes, factors, test_codes, test_factors, n_train=chosen[-1], n_test=test, seed=seed), chosen


def _efficiency(sizes: tuple[int, ...], mean: Float[np.ndarray, "size"]) -> float | None:
    if 100 not in sizes or 10_000 not in sizes or mean[sizes.index(10_000)] == 0:
        return None
    return float(mean[sizes.index(100)] / mean[sizes.index(10_000)])


def _learner(predictor: str, scheme: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    if predictor == "logistic":
        return lambda codes, labels, test: _cross_validated(codes, labels, test, scheme)
    grow = fast_trees if predictor == "trees" else sklearn_trees

    def predict(codes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fitted = grow(codes, labels, test)
        return fitted.train, fitted.test

    return predict


def _cross_validated(
    codes: np.ndarray, labels: np.ndarray, test: np.ndarray, scheme: str
) -> tuple[np.ndarray, np.ndarray]:
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return np.full(len(codes), classes[0]), np.full(len(test), classes[0])
    if scheme == "multinomial" or len(classes) == 2:
        chances = _fit(codes, targets, (codes, test))
    else:
        # one class against the rest, each with a penalty of its own, as the period's default did
        columns = [_fit(codes, (targets == k).astype(np.int64), (codes, test)) for k in range(len(classes))]
        chances = tuple(np.stack([column[part][:, 1] for column in columns], axis=1) for part in range(2))
    return classes[chances[0].argmax(1)], classes[chances[1].argmax(1)]


def _fit(codes: np.ndarray, targets: np.ndarray, tables: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Probabilities under the best of ten penalties; the plain default where no fold can be used."""
    from sklearn.linear_model import LogisticRegressionCV

    folds = _folds(targets)
    if not folds:
        return logistic(codes, targets, tables)[1]
    model = quietly_fitted(LogisticRegressionCV(Cs=N_COSTS, cv=folds, scoring="accuracy"), codes, targets)
    return tuple(model.predict_proba(table) for table in tables)


def _folds(targets: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds in the order of the rows, without those whose remainder has a single class: nothing to learn there."""
    rows = np.arange(len(targets))
    parts = [(np.setdiff1d(rows, held_out), held_out) for held_out in np.array_split(rows, N_FOLDS)]
    return [(kept, out) for kept, out in parts if len(out) and len(np.unique(targets[kept])) > 1]
