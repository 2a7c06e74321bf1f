"""Explicitness (Ridgeway & Mozer, 2018), as in ``modularity_explicitness`` of disentanglement_lib.

```
explicitness = mean over factors of the mean over values of AUC(value against the rest)

AUC is the area under the ROC curve of logistic regression on the standardised code.
```

**Protocol.** Fitted on 10,000 rows, scored on 5,000. Values unseen in the rows to fit on, and factors of one value,
count as chance.

**Rewards.** Any code from which the factors follow linearly.

**Misses.** Disentanglement: a rotation of an ideal code is just as explicit (1.0 in the picture). It is the companion
of modularity, not a substitute.

## Known defects, and what is done about them

- Chance is ½, not 0.
- **The classifier drifted.** The studies of 2018–19 ran under one-vs-rest liblinear, scikit-learn's default until
  0.21; later versions fit a softmax. `scheme="ovr"` is the period's, `"multinomial"` the default here; both are
  pinned, whatever scikit-learn's defaults are.
- The original crashes on a single constant latent and when a value is missing from the test rows; both have answers
  here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.lbfgs import one_blas_thread
from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.row import FITTED, Metric
from unweave.metrics.supervised.logistic import check_scheme, logistic
from unweave.metrics.supervised.split import MOST_ROWS, split
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
    with one_blas_thread():
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


ROW = Metric(
    explicitness,
    name="explicitness",
    title="Explicitness",
    tells="Can each factor be read off the whole code by a linear classifier?",
    kind="supervised",
    needs="codes factors split",
    range=(0.0, 1.0),
    better="more",
    invariant_to=FITTED,
    at_chance="0.5",
    paper="ridgeway2018learning",
    example='explicitness(codes, factors, scheme="ovr").per_factor',
    on_cpu="linear classifiers",
    most_rows=MOST_ROWS,
)
