"""Disentanglement, completeness, informativeness, DCI (Eastwood & Williams, 2018).

```
R_jk = importance of latent j to boosted trees that predict factor k
D = Σ_j ρ_j (1 − H_K(R_j· / Σ_k R_jk)),  ρ_j = Σ_k R_jk / ΣΣ R
C = the same over columns
I = mean test accuracy
```

**Protocol.** One `GradientBoostingClassifier` per factor with its defaults (100 rounds, depth 3), fitted on 10,000
rows and tested on 5,000. `backend="fast"` grows the same trees over binned codes, all classes together;
`backend="sklearn"` (`--dci-trees sklearn`) is the reference and takes minutes. The back end is recorded with the
value.

**Rewards.** D: latents that matter to one factor only. C: factors that need one latent only. I: any code from which
trees recover the factors.

**Misses.** Importance is not information: trees split redundant latents unevenly, and two latents that matter equally
say nothing about how much. Informativeness alone does not see rotations.

## Known defects, and what is done about them

- Informativeness is an accuracy, as disentanglement_lib reports it; the paper's is an error.
- The original leaves the trees unseeded; D of one table moved by ±0.0005. Equal latents share their importance by lot
  there, exactly here.
- A constant factor has no importance and weighs nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.row import Metric
from unweave.metrics.supervised.split import MOST_ROWS, Split, split
from unweave.metrics.supervised.trees import N_ROUNDS, Fitted, fast_trees_of_all, sklearn_trees
from unweave.shapes import Float, Tensor

BACKENDS = ("fast", "sklearn")
SMOOTHING = 1e-11


@dataclass(frozen=True)
class Dci:
    """``score`` is the disentanglement. Informativeness is an accuracy, as disentanglement_lib reports it."""

    score: float
    disentanglement: float
    completeness: float
    informativeness: float
    """Mean accuracy on the test rows."""
    informativeness_train: float
    importance: Float[Tensor, "latent factor"]
    per_latent: Float[Tensor, " latent"]
    """Disentanglement of each latent, before weighing."""
    per_factor: Float[Tensor, " factor"]
    """Completeness of each factor, before weighing."""
    accuracy: Float[Tensor, " factor"]
    accuracy_train: Float[Tensor, " factor"]
    backend: str


def dci(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    backend: str = "fast",
    n_rounds: int = N_ROUNDS,
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Dci:
    """Whether each latent serves one factor (D), each factor one latent (C), and boosted trees predict it (I).

    ``backend="sklearn"`` is the original protocol, minutes on 10,000 samples; ``"fast"`` grows the same trees with
    fewer thresholds in seconds (:mod:`unweave.metrics.supervised.trees`). Rows are split as :func:`split` says.
    A constant factor has no importance and weighs nothing; when nothing is important D and C are 0.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, not {backend!r}")
    check_count(n_rounds, "n_rounds")
    parts = split(codes, factors, test_codes, test_factors, n_train=n_train, n_test=n_test, seed=seed)
    fitted = _fit_all(backend, parts, n_rounds)
    importance = np.stack([model.importance for model in fitted], axis=1)
    test = np.array([np.mean(model.test == truth) for model, truth in zip(fitted, parts.test_factors.T)])
    train = np.array([np.mean(model.train == truth) for model, truth in zip(fitted, parts.factors.T)])
    d, c = disentanglement(importance), completeness(importance)
    return Dci(
        score=d,
        disentanglement=d,
        completeness=c,
        informativeness=float(test.mean()),
        informativeness_train=float(train.mean()),
        importance=torch.from_numpy(importance),
        per_latent=torch.from_numpy(concentration(importance)),
        per_factor=torch.from_numpy(concentration(importance.T)),
        accuracy=torch.from_numpy(test),
        accuracy_train=torch.from_numpy(train),
        backend=backend,
    )


def _fit_all(backend: str, parts: Split, n_rounds: int) -> list[Fitted]:
    """One classifier a factor; a factor costs as much as it has values."""
    columns = list(parts.factors.T)
    if backend == "fast":
        # the factors of a thread grow their trees side by side
        shares = _dealt([len(np.unique(factor)) for factor in columns], torch.get_num_threads())
        found = side_by_side(
            lambda share: fast_trees_of_all(parts.codes, [columns[k] for k in share], parts.test_codes, n_rounds),
            shares,
        )
        told = {k: fitted for share, each in zip(shares, found) for k, fitted in zip(share, each)}
        return [told[k] for k in range(len(columns))]
    return side_by_side(
        lambda factor: sklearn_trees(parts.codes, factor, parts.test_codes, n_rounds),
        columns,
        size=lambda factor: len(np.unique(factor)),
    )


def _dealt(sizes: list[int], n_shares: int) -> list[list[int]]:
    """Places in so many shares of about equal size, the largest first to the smallest share."""
    shares: list[list[int]] = [[] for _ in range(min(n_shares, len(sizes)))]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        min(shares, key=lambda share: sum(sizes[one] for one in share)).append(place)
    return shares


def disentanglement(importance: Float[np.ndarray, "latent factor"]) -> float:
    """Σ_i ρ_i (1 − H_K(P_i)): how much of each latent's importance goes to one factor, weighed by its importance."""
    importance = np.abs(np.asarray(importance, np.float64))
    total = importance.sum()
    if total == 0.0:
        return 0.0
    return float((concentration(importance) * importance.sum(1) / total).sum())


def completeness(importance: Float[np.ndarray, "latent factor"]) -> float:
    """Σ_j ρ_j (1 − H_D(P̃_j)): the same with latents and factors exchanged."""
    return disentanglement(np.asarray(importance).T)


def concentration(rows: Float[np.ndarray, "row column"]) -> Float[np.ndarray, " row"]:
    """1 − entropy of each row's shares, to the base of their number. A row of one column is concentrated."""
    rows = np.abs(np.asarray(rows, np.float64))
    if rows.shape[1] == 1:
        return (rows[:, 0] > 0).astype(np.float64)
    shares = rows + SMOOTHING
    shares /= shares.sum(1, keepdims=True)
    # H_K(P) = −Σ_k P_k log_K P_k
    return 1.0 + (shares * np.log(shares)).sum(1) / np.log(rows.shape[1])


ROW = Metric(
    dci,
    name="dci",
    label="DCI",
    title="Disentanglement, completeness, informativeness (DCI)",
    tells="Does each latent serve one factor (D), each factor one latent (C), and do the factors follow from the "
    "code (I)?",
    kind="supervised",
    needs="codes factors split",
    range=(0.0, 1.0),
    better="more",
    invariant_to=("latent shift", "factor order"),
    at_chance="0 for a constant code, near 0 for noise; informativeness is then the share of the commonest value",
    paper="eastwood2018framework",
    example="dci(codes, factors).importance",
    scores=("disentanglement", "completeness", "informativeness"),
    on_cpu="boosted trees",
    most_rows=MOST_ROWS,
)
