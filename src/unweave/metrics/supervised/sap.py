"""Separated attribute predictability, SAP (Kumar et al., 2018).

```
SAP = mean over factors k of (S₁k − S₂k), S_jk sorted down

categorical: S_jk = test accuracy of a linear support vector machine on latent j alone (C = 0.01, balanced)
continuous:  S_jk = Cov(z_j, v_k)² / (Var z_j Var v_k)
```

**Protocol.** 10,000 rows to fit on, 5,000 to test on. `continuous=True` for numeric factors. `backend="exact"` solves
the one-dimensional machine to the end; `"sklearn"` stops where `LinearSVC` stops.

**Rewards.** A factor that one latent alone predicts.

**Misses.** What else that latent predicts; copies cost everything.

## Known defects, and what is done about them

- **The ideal code fails.** One line per class cannot fence in a middle class, so the ideal code of dSprites scores
  0.17, that of Shapes3D 0.20, and more when the code is merely multiplied by 10. Mended: `backend="bins"` predicts
  the commonest class in each of up to 64 intervals.
- The original's own tests cover only the continuous variant, where the ideal code does score near 1.
- A constant factor is predicted by every latent alike and scores 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.row import Metric
from unweave.metrics.supervised.linear_svc import decide, linear_svc
from unweave.metrics.supervised.split import MOST_ROWS, Split, split
from unweave.metrics.supervised.trees import thresholds
from unweave.shapes import Float, Int, Tensor

CONSTANT = 1e-12


@dataclass(frozen=True)
class Sap:
    """``score`` is the mean of ``per_factor``, the lead of the best latent over the second best."""

    score: float
    per_factor: Float[Tensor, " factor"]
    matrix: Float[Tensor, "latent factor"]
    """Test accuracy of each latent for each factor; the squared correlation for continuous factors."""
    backend: str


def sap(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    continuous: bool = False,
    backend: str = "exact",
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Sap:
    """How far the latent that predicts a factor best is ahead of the second best.

    Categorical: test accuracy of a linear support vector machine on one latent, C = 0.01, classes balanced.
    ``backend="exact"`` solves it to the end, ``"sklearn"`` runs ``LinearSVC`` to its tolerance. A line cannot fence in
    a middle class and the margin depends on the code's scale, so even the ideal code of dSprites scores 0.17;
    ``"bins"`` mends that: the commonest class in each of up to 64 intervals of the latent decides.

    Continuous: the squared correlation on the rows to fit on, 0 for a latent or factor that never varies.
    Rows are split as :func:`split` says. A single latent leads by all it has; a constant factor is predicted by every
    latent alike and scores 0 (with one latent, 1).
    """
    if backend not in ("exact", "sklearn", "bins"):
        raise ValueError(f"backend must be exact, sklearn or bins, not {backend!r}")
    parts = split(
        codes, factors, test_codes, test_factors, n_train=n_train, n_test=n_test, seed=seed, numbers=continuous
    )
    matrix = _squared_correlation(parts.codes, parts.factors) if continuous else _accuracies(parts, backend)
    best = np.sort(matrix, axis=0)[::-1]
    per_factor = best[0] - best[1] if len(best) > 1 else best[0]
    engine = "correlation" if continuous else backend
    return Sap(float(per_factor.mean()), torch.from_numpy(per_factor), torch.from_numpy(matrix), engine)


def _squared_correlation(
    codes: Float[np.ndarray, "sample latent"], factors: Float[np.ndarray, "sample factor"]
) -> Float[np.ndarray, "latent factor"]:
    codes, factors = codes - codes.mean(0), factors - factors.mean(0)
    n = max(len(codes) - 1, 1)
    covariance = codes.T @ factors / n
    variances = (codes**2).sum(0) / n, (factors**2).sum(0) / n
    # R²_ij = Cov(z_i, v_j)² / (Var z_i Var v_j)
    varies = (variances[0] > CONSTANT)[:, None] & (variances[1] > CONSTANT)
    return np.where(varies, covariance**2 / np.where(varies, np.outer(*variances), 1.0), 0.0)


def _accuracies(parts: Split, backend: str) -> Float[np.ndarray, "latent factor"]:
    predict = {"exact": _exact, "sklearn": _sklearn, "bins": _bins}[backend]
    matrix = np.zeros((parts.codes.shape[1], parts.factors.shape[1]))
    known = [np.unique(labels, return_inverse=True) for labels in parts.factors.T]
    for j, (train, test) in enumerate(zip(parts.codes.T, parts.test_codes.T)):
        # sorted once for all factors, for what is sorted is quickly sorted again
        order = np.argsort(train, kind="stable") if backend == "exact" else np.arange(len(train))
        for k, ((classes, targets), truth) in enumerate(zip(known, parts.test_factors.T)):
            chosen = np.zeros(len(test), np.int64)
            if len(classes) > 1:
                chosen = predict(train[order], targets[order], test)
            matrix[j, k] = np.mean(classes[chosen] == truth)
    return matrix


def _exact(train: np.ndarray, targets: np.ndarray, test: np.ndarray) -> Int[np.ndarray, " test"]:
    return decide(test, *linear_svc(train, targets))


def _sklearn(train: np.ndarray, targets: np.ndarray, test: np.ndarray) -> Int[np.ndarray, " test"]:
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=0.01, class_weight="balanced", dual=False).fit(train[:, None], targets)
    return model.predict(test[:, None])


def _bins(train: np.ndarray, targets: np.ndarray, test: np.ndarray) -> Int[np.ndarray, " test"]:
    edges = thresholds(train, 64)
    n_classes = int(targets.max()) + 1
    place = np.searchsorted(edges, train, side="left")
    counts = np.bincount(place * n_classes + targets, minlength=(len(edges) + 1) * n_classes)
    return counts.reshape(-1, n_classes).argmax(1)[np.searchsorted(edges, test, side="left")]


ROW = Metric(
    sap,
    name="sap_score",
    label="SAP",
    title="Separated attribute predictability (SAP)",
    tells="How far is the latent that predicts a factor best ahead of the second best?",
    kind="supervised",
    needs="codes factors split",
    range=(0.0, 1.0),
    better="more",
    invariant_to=("latent order", "latent sign", "factor order", "factor relabelling"),
    at_chance="0 for a constant code, near 0 for noise; a single latent keeps its accuracy",
    paper="kumar2018variational",
    example='sap(codes, factors, backend="bins").matrix',
    compact=True,
    on_cpu="support vector machines",
    most_rows=MOST_ROWS,
)
