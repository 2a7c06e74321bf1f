"""Explicitness (Ridgeway & Mozer, 2018), as in ``modularity_explicitness`` of disentanglement_lib."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.supervised.logistic import check_scheme, logistic
from unweave.metrics.supervised.split import split
from unweave.shapes import Float, Int, Tensor

CHANCE = 0.5


@dataclass(frozen=True)
class Explicitness:
    """``score`` is the mean of ``per_factor``, on the test rows."""

    score: float
    train: float
    per_factor: Float[Tensor, "factor"]
    per_factor_train: Float[Tensor, "factor"]
    scheme: str


def explicitness(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    scheme: str = "multinomial",
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Explicitness:
    """How well logistic regression on the standardised code ranks each factor's values: one-vs-rest area under ROC.

    ``scheme="ovr"`` is the classifier of the published studies (:mod:`unweave.metrics.supervised.logistic`). Latents
    that never vary are set to 0. The mean runs over the values present in the rows scored; one unseen in the rows to
    fit on counts as chance, ½, and so does a factor with a single value. Rows are split as :func:`split` says.
    """
    check_scheme(scheme)
    parts = split(codes, factors, test_codes, test_factors, n_train=n_train, n_test=n_test, seed=seed)
    mean, deviation = parts.codes.mean(0), parts.codes.std(0)
    deviation = np.where(np.ptp(parts.codes, axis=0) > 0, deviation, np.inf)
    train, test = (parts.codes - mean) / deviation, (parts.test_codes - mean) / deviation
    areas = np.zeros((2, parts.factors.shape[1]))
    for k, (labels, truth) in enumerate(zip(parts.factors.T, parts.test_factors.T)):
        classes, chances = logistic(train, labels, (train, test), scheme)
        areas[:, k] = [macro_area(classes, *pair) for pair in zip(chances, (labels, truth))]
    on_train, on_test = areas.mean(1)
    return Explicitness(float(on_test), float(on_train), torch.from_numpy(areas[1]), torch.from_numpy(areas[0]), scheme)


def macro_area(
    classes: Int[np.ndarray, "class"], chances: Float[np.ndarray, "sample class"], truth: Int[np.ndarray, "sample"]
) -> float:
    """Mean over the values present of the area under the curve of that value against the rest."""
    present = np.unique(truth)
    if len(present) < 2:
        return CHANCE
    seen = np.isin(classes, present)
    areas = _areas(chances[:, seen], truth[:, None] == classes[seen])
    return float((areas.sum() + CHANCE * (len(present) - len(areas))) / len(present))


def _areas(scores: Float[np.ndarray, "sample class"], positive: np.ndarray) -> Float[np.ndarray, "class"]:
    from scipy.stats import rankdata

    n_positive = positive.sum(0)
    n_negative = len(positive) - n_positive
    ranks = np.where(positive, rankdata(scores, axis=0), 0.0).sum(0)
    # AUC = (Σ ranks of the positives − n₊ (n₊ + 1) / 2) / (n₊ n₋), ties at their mean rank
    return (ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
