"""Logistic regression that picks its penalty by cross-validation, as scikit-learn's ``LogisticRegressionCV`` does."""

import numpy as np

from unweave.metrics.estimators.softmax import fit_softmax, probabilities
from unweave.metrics.supervised.logistic import logistic
from unweave.shapes import Float, Int

N_FOLDS = 5
COSTS = np.logspace(-4, 4, 10)
"""One over the penalties that are tried."""


def cross_validated(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, " sample"],
    test: Float[np.ndarray, "test latent"],
    scheme: str = "multinomial",
) -> tuple[Int[np.ndarray, " sample"], Int[np.ndarray, " test"]]:
    """The labels given to both tables. A single label is given everywhere."""
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return np.full(len(codes), classes[0]), np.full(len(test), classes[0])
    if scheme == "multinomial" or len(classes) == 2:
        chances = _fit(codes, targets, (codes, test))
    else:
        # one class against the rest, each with a penalty of its own, as the period's default did
        columns = [_fit(codes, (targets == k).astype(np.int64), (codes, test)) for k in range(len(classes))]
        chances = [np.stack([column[part][:, 1] for column in columns], axis=1) for part in range(2)]
    return classes[chances[0].argmax(1)], classes[chances[1].argmax(1)]


def _fit(codes: np.ndarray, targets: np.ndarray, tables: tuple[np.ndarray, ...]) -> list[Float[np.ndarray, "_ class"]]:
    """Probabilities under the penalty with the most right answers; the plain default where no fold can be used."""
    n_classes, folds = int(targets.max()) + 1, _folds(targets)
    if not folds:
        return list(logistic(codes, targets, tables)[1])
    paths = [_path(codes[kept], targets[kept], n_classes) for kept, _ in folds]
    right = np.zeros(len(COSTS))
    for path, (_, out) in zip(paths, folds):
        right += [np.mean(probabilities(weights, codes[out]).argmax(1) == targets[out]) for weights in path]
    best = int(right.argmax())
    start = np.mean([path[best] for path in paths], axis=0)
    weights = fit_softmax(codes, targets, n_classes=n_classes, cost=COSTS[best], start=start)
    return [probabilities(weights, table) for table in tables]


def _path(codes: np.ndarray, targets: np.ndarray, n_classes: int) -> list[Float[np.ndarray, "row feature_and_one"]]:
    """The weights under every penalty, each fit starting where the one before ended."""
    path: list[np.ndarray] = []
    for cost in COSTS:
        start = path[-1] if path else None
        path.append(fit_softmax(codes, targets, n_classes=n_classes, cost=cost, start=start))
    return path


def _folds(targets: Int[np.ndarray, " sample"]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds in the order of the rows, without those whose remainder has a single class: nothing to learn there."""
    rows = np.arange(len(targets))
    parts = [(np.setdiff1d(rows, held_out), held_out) for held_out in np.array_split(rows, N_FOLDS)]
    return [(kept, out) for kept, out in parts if len(out) and len(np.unique(targets[kept])) > 1]
