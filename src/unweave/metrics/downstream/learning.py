"""Downstream accuracy and sample efficiency (Locatello et al., 2019): what a representation is worth to a learner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.downstream.cross_validated import cross_validated
from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.estimators.lbfgs import one_blas_thread
from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.supervised.logistic import check_scheme
from unweave.metrics.supervised.split import N_TEST, Split, split
from unweave.metrics.supervised.trees import fast_trees, sklearn_trees
from unweave.shapes import Float, Tensor

SIZES = (10, 100, 1_000, 10_000)


@dataclass(frozen=True)
class Downstream:
    """``score`` is the mean test accuracy with the most labels."""

    score: float
    sizes: tuple[int, ...]
    """Numbers of labels."""
    mean: Float[Tensor, " size"]
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
    predict = _learner(predictor, scheme)

    def accuracies(job: tuple[int, int]) -> tuple[float, float]:
        size, k = job
        train, test = predict(parts.codes[:size], parts.factors[:size, k], parts.test_codes)
        return float(np.mean(train == parts.factors[:size, k])), float(np.mean(test == parts.test_factors[:, k]))

    n_factors = parts.factors.shape[1]
    jobs = [(size, k) for size in chosen for k in range(n_factors)]
    with one_blas_thread():
        found = side_by_side(accuracies, jobs, size=lambda job: job[0] * parts.sizes[job[1]])
    accuracy = np.array(found).T.reshape(2, len(chosen), n_factors)
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


def _efficiency(sizes: tuple[int, ...], mean: Float[np.ndarray, " size"]) -> float | None:
    if 100 not in sizes or 10_000 not in sizes or mean[sizes.index(10_000)] == 0:
        return None
    return float(mean[sizes.index(100)] / mean[sizes.index(10_000)])


def _learner(predictor: str, scheme: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    if predictor == "logistic":
        return lambda codes, labels, test: cross_validated(codes, labels, test, scheme)
    grow = fast_trees if predictor == "trees" else sklearn_trees

    def predict(codes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fitted = grow(codes, labels, test)
        return fitted.train, fitted.test

    return predict
