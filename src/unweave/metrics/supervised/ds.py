"""Disentanglement score, DS, for continuous and discrete factors (Zietlow, 2022, section 3.3.1).

```
DS = mean over factors k of (A/M)₁k − (A/M)₂k

regression:     A = √Var v − √MSE,          M = √Var v
classification: A = accuracy − constant,    M = 1 − constant
```

**Protocol.** Five nearest neighbours in one latent; 80 % of the rows fitted, 20 % predicted. Factors that hold
fractions are regressed, others classified, unless `kinds` says more.

**Rewards.** A factor that one latent alone determines, in whatever shape: neighbours do not need a line. Works with
continuous factors.

**Misses.** What else the latent holds; copies cost everything.

## Known defects, and what is done about them

- The printed classification form is accuracy over the accuracy of the best constant, which exceeds 1 although the
  text promises [0, 1]. `form="printed"` is the equation to the letter, `form="bounded"`, the default, keeps the
  promise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.row import FITTED, Metric
from unweave.metrics.supervised.split import split
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Ds:
    """``score`` is the mean of ``per_factor`` over the factors that vary."""

    score: float
    per_factor: Float[Tensor, " factor"]
    matrix: Float[Tensor, "latent factor"]
    """A/M: what nearest neighbours in one latent tell of one factor, normalised."""
    kinds: tuple[str, ...]
    form: str


def ds(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    kinds: str | Sequence[str] | None = None,
    n_neighbours: int = 5,
    form: str = "bounded",
    seed: int | None = None,
) -> Ds:
    """Lead of the best latent over the second best in predicting each factor by its five nearest neighbours.

    80 % of the rows are fitted, 20 % predicted (a seed shuffles them first), unless a second table is given. Factors
    are regressed where they hold fractions and classified otherwise, unless ``kinds`` says more.

    Regression: A = √var − √mse, M = √var. Classification, as printed in equation 3.37: A = accuracy, M = accuracy of
    the best constant, which can exceed 1 although the text promises [0, 1]. ``form="bounded"`` keeps the promise: like
    regression it counts what is gained over the best constant, A = accuracy − constant and M = 1 − constant, and a
    latent worse than the constant counts 0. ``form="printed"`` is the equation to the letter, for both kinds.
    A factor that never varies scores 0 and is left out of the mean; a single latent leads by all it tells.
    """
    check_count(n_neighbours, "n_neighbours")
    if form not in ("bounded", "printed"):
        raise ValueError(f"form must be bounded or printed, not {form!r}")
    parts = split(codes, factors, test_codes, test_factors, seed=seed, share=0.8, numbers=True)
    if n_neighbours > len(parts.codes):
        raise ValueError(f"n_neighbours is {n_neighbours} but only {len(parts.codes)} rows are there to fit on")
    chosen = _kinds(kinds, np.concatenate([parts.factors, parts.test_factors]))
    matrix = np.zeros((parts.codes.shape[1], len(chosen)))
    for j, (train, test) in enumerate(zip(parts.codes.T, parts.test_codes.T)):
        near = nearest(train, test, n_neighbours)
        for k, kind in enumerate(chosen):
            told = _regression if kind == "regression" else _classification
            matrix[j, k] = told(parts.factors[:, k], parts.test_factors[:, k], near, form)
    best = np.sort(matrix, axis=0)[::-1]
    per_factor = best[0] - best[1] if len(best) > 1 else best[0]
    varies = (parts.test_factors != parts.test_factors[0]).any(0)
    per_factor = np.where(varies, per_factor, 0.0)
    score = float(per_factor[varies].mean()) if varies.any() else 0.0
    return Ds(score, torch.from_numpy(per_factor), torch.from_numpy(matrix), tuple(chosen), form)


def nearest(
    train: Float[np.ndarray, " sample"], test: Float[np.ndarray, " test"], n_neighbours: int
) -> Int[np.ndarray, "test neighbour"]:
    """Row numbers of the nearest numbers. Sorted, they lie within ``n_neighbours`` places of where a number belongs."""
    order = np.argsort(train, kind="stable")
    values = train[order]
    place = np.searchsorted(values, test)[:, None] + np.arange(-n_neighbours, n_neighbours)
    inside = (place >= 0) & (place < len(values))
    place = np.clip(place, 0, len(values) - 1)
    distance = np.where(inside, np.abs(values[place] - test[:, None]), np.inf)
    closest = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbours]
    return order[np.take_along_axis(place, closest, axis=1)]


def _regression(train: np.ndarray, test: np.ndarray, near: np.ndarray, form: str) -> float:
    deviation = float(np.std(test))
    if deviation == 0.0:
        return 0.0
    error = np.sqrt(np.mean((train[near].mean(1) - test) ** 2))
    told = float((deviation - error) / deviation)
    return max(told, 0.0) if form == "bounded" else told


def _classification(train: np.ndarray, test: np.ndarray, near: np.ndarray, form: str) -> float:
    classes, labels = np.unique(np.concatenate([train, test]), return_inverse=True)
    seen, truth = labels[: len(train)], labels[len(train) :]
    accuracy = float(np.mean(_vote(seen[near], len(classes)) == truth))
    constant = float(np.bincount(truth).max() / len(truth))
    if constant == 1.0:
        return 0.0
    return accuracy / constant if form == "printed" else max(0.0, (accuracy - constant) / (1.0 - constant))


def _vote(labels: Int[np.ndarray, "test neighbour"], n_classes: int) -> Int[np.ndarray, " test"]:
    """The commonest label of each row, the smallest of equals."""
    # neighbour × test: sums along long rows are fast
    columns = np.ascontiguousarray(labels.T)
    agreeing = np.array([(column == columns).sum(0) for column in columns])
    return np.where(agreeing == agreeing.max(0), columns, n_classes).min(0)


def _kinds(kinds: Any, factors: Float[np.ndarray, "sample factor"]) -> list[str]:
    n_factors = factors.shape[1]
    if kinds is None:
        fractional = (factors != np.round(factors)).any(0)
        return ["regression" if fraction else "classification" for fraction in fractional]
    chosen = [kinds] * n_factors if isinstance(kinds, str) else list(kinds)
    if len(chosen) != n_factors or not set(chosen) <= {"regression", "classification"}:
        raise ValueError(f"kinds must be regression or classification for each of {n_factors} factors, not {kinds!r}")
    return chosen


ROW = Metric(
    ds,
    name="ds",
    label="DS",
    title="Disentanglement score (DS)",
    tells="How far is the best latent ahead of the second in predicting a factor from its nearest neighbours?",
    kind="supervised",
    needs="codes factors split",
    range=(0.0, 1.0),
    better="more",
    invariant_to=FITTED,
    at_chance="0 for a constant code, near 0 for noise",
    paper="rolinek2019variational",
    example='ds(codes, factors, form="printed").per_factor',
    compact=True,
    on_cpu="nearest neighbours",
)
