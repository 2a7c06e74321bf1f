"""Explicitness (Ridgeway & Mozer, 2018), as in ``modularity_explicitness`` of disentanglement_lib."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.supervised.logistic import check_scheme, logistic
from unweave.metrics.supervised.split import split
from unweave.shapes import Bool, Float, Int, Tensor

CHANCE = 0.5


@dataclass(frozen=True)
class Explicitness:
    """``score`` is the mean of ``per_factor``, on the test rows."""

    score: float
    train: float
    per_factor: Float[Tensor, " factor"]
    per_factor_train: Float[Tensor, " factor"]
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

    def both_areas(truths: tuple[np.ndarray, np.ndarray]) -> list[float]:
        classes, chances = logistic(train, truths[0], (train, test), scheme)
        return [macro_area(classes, *pair) for pair in zip(chances, truths)]

    columns = list(zip(parts.factors.T, parts.test_factors.T))
    areas = np.array(side_by_side(both_areas, columns, size=lambda truths: np.max(truths[0]))).T
    on_train, on_test = areas.mean(1)
    return Explicitness(float(on_test), float(on_train), torch.from_numpy(areas[1]), torch.from_numpy(areas[0]), scheme)


def macro_area(
    classes: Int[np.ndarray, " class"], chances: Float[np.ndarray, "sample class"], truth: Int[np.ndarray, " sample"]
) -> float:
    """Mean over the values present of the area under the curve of that value against the rest."""
    present = np.unique(truth)
    if len(present) < 2:
        return CHANCE
    columns = zip(classes, chances.T)
    areas = [_area(column, truth == label) for label, column in columns if label in present]
    return float((sum(areas) + CHANCE * (len(present) - len(areas))) / len(present))


def _area(scores: Float[np.ndarray, " sample"], positive: Bool[np.ndarray, " sample"]) -> float:
    ordered, own = np.sort(scores), scores[positive]
    # ties at their mean rank
    ranks = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right") + 1) / 2
    n_positive, n_negative = len(own), len(scores) - len(own)
    # AUC = (Σ ranks of the positives − n₊ (n₊ + 1) / 2) / (n₊ n₋)
    return float((ranks.sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
