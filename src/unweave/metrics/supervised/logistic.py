"""Logistic regression under a pinned scheme, whatever scikit-learn's defaults of the day are.

``multinomial``: one softmax over the classes, intercepts free: scikit-learn's default since 0.22, step for step
(:mod:`unweave.metrics.estimators.softmax`). ``ovr``: one class against the rest, liblinear, intercepts penalised: the
default in 2018–19, under which the published studies ran.
"""

import warnings
from typing import Any

import numpy as np

from unweave.metrics.estimators.softmax import fit_softmax, probabilities
from unweave.shapes import Float, Int

SCHEMES = ("multinomial", "ovr")


def logistic(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, " sample"],
    tables: tuple[Float[np.ndarray, "_ latent"], ...],
    scheme: str = "multinomial",
    *,
    cost: float = 1.0,
    balanced: bool = False,
) -> tuple[Int[np.ndarray, " class"], tuple[Float[np.ndarray, "_ class"], ...]]:
    """The classes seen, and their probabilities in every table; a single class has probability 1.

    ``cost`` is one over the penalty, as in scikit-learn; ``balanced`` gives every class the same weight in all
    (multinomial only).
    """
    check_scheme(scheme)
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return classes, tuple(np.ones((len(table), 1)) for table in tables)
    if scheme == "ovr":
        return classes, _one_against_rest(codes, targets, len(classes), tables, cost)
    weights = fit_softmax(codes, targets, cost=cost, balanced=balanced)
    return classes, tuple(probabilities(weights, table) for table in tables)


def check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be {' or '.join(SCHEMES)}, not {scheme!r}")


def quietly_fitted(model: Any, codes: np.ndarray, targets: np.ndarray) -> Any:
    """Fit without a word about stopping early: the protocol's 100 iterations are part of its scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(codes, targets)


def _one_against_rest(
    codes: Any, targets: Any, n_classes: int, tables: tuple[Any, ...], cost: float
) -> tuple[Any, ...]:
    from sklearn.linear_model import LogisticRegression

    columns: list[list[Any]] = [[] for _ in tables]
    for positive in range(n_classes) if n_classes > 2 else (1,):
        model = LogisticRegression(solver="liblinear", C=cost, tol=1e-4, max_iter=100, random_state=0)
        quietly_fitted(model, codes, targets == positive)
        for place, table in enumerate(tables):
            columns[place].append(model.predict_proba(table)[:, 1])
    return tuple(shares(np.stack(column, axis=1)) for column in columns)


def shares(positive: Float[np.ndarray, "sample row"]) -> Float[np.ndarray, "sample class"]:
    """Probabilities of one class against the rest, scaled to sum to 1; a single row is the second of two classes."""
    if positive.shape[1] == 1:
        return np.concatenate([1.0 - positive, positive], axis=1)
    total = positive.sum(1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1.0 / positive.shape[1])
