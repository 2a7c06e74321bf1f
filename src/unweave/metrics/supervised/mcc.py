"""Mean correlation coefficient, MCC (Hyvärinen and Morioka, 2016).

```
MCC = max over one-to-one matches π of mean_k |corr(z_π(k), v_k)|
```

**Protocol.** Pearson by default, `method="spearman"` for monotone relations. Factors are numbers and may be
continuous; words are refused, for they have no order.

**Rewards.** Identification in the sense of nonlinear ICA: one latent per factor, linearly related.

**Misses.** Spare latents, copies, and what else a latent holds. Categorical and cyclic factors, whose numbering means
nothing. A rotation by 45° still scores 0.71.

## Known defects, and what is done about them

- With many latents to choose from, chance grows: the best of d correlations with each factor.
- Constant latents and factors correlate 0 with everything; factors left without a latent count 0.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, as_numbers, check_lengths
from unweave.metrics.estimators.correlation import correlation, ranks
from unweave.metrics.row import AFFINE, ORDER, Metric
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Mcc:
    """``score`` is the mean of ``per_factor``; ``latent`` is the latent matched to each factor, −1 for none."""

    score: float
    per_factor: Float[Tensor, " factor"]
    latent: Int[Tensor, " factor"]
    correlation: Float[Tensor, "latent factor"]


def mcc(codes: Any, factors: Any, *, method: str = "pearson") -> Mcc:
    """Mean absolute correlation of every factor with its own latent, under the best one-to-one match.

    Factors are numbers, continuous or not. With fewer latents than factors the factors left over count 0; latents
    left over cost nothing. A constant latent or factor correlates 0 with everything.
    """
    from scipy.optimize import linear_sum_assignment

    if method not in ("pearson", "spearman"):
        raise ValueError(f"method must be 'pearson' or 'spearman', not {method!r}")
    table, truth = as_codes(codes), as_numbers(factors)
    check_lengths(table, truth)
    truth = truth.to(table.device)
    if method == "spearman":
        table, truth = ranks(table), ranks(truth)
    matrix = correlation(table, truth)
    # rounded, so that matches that are equally good do not hang on a machine's last bits
    rows, columns = linear_sum_assignment(matrix.abs().cpu().numpy().round(12), maximize=True)
    per_factor = torch.zeros(truth.shape[1], dtype=torch.float64, device=table.device)
    latent = torch.full((truth.shape[1],), -1, device=table.device)
    per_factor[columns], latent[columns] = matrix.abs()[rows, columns], torch.as_tensor(rows, device=table.device)
    return Mcc(float(per_factor.mean()), per_factor, latent, matrix)


ROW = Metric(
    mcc,
    name="mcc",
    label="MCC",
    title="Mean correlation coefficient (MCC)",
    tells="Up to order and sign, how nearly is every factor a latent?",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=(*ORDER, *AFFINE),
    at_chance="0 for a constant code; about 1/√samples for random codes, more with many latents to choose from",
    paper="hyvarinen2016unsupervised",
    example='mcc(codes, factors, method="spearman").latent',
    ordered=True,
    on_cpu="the one-to-one match",
)
