"""Gaussian total correlation (Locatello et al., 2019).

```
TC = ½ (Σ_j log C_jj − log det C) = −½ log det R, with C the covariance and R the correlations of the codes
```

**Protocol.** All rows; mean or sampled codes. Sampled codes of a regularised model have little, its mean codes may
have much: that difference is one of the findings of the large studies.

**Rewards.** Uncorrelated latents. Less is better.

**Misses.** Everything beyond correlation: the codes turned by 45° are uncorrelated and entangled, and get 0. It needs
no labels and knows none.

## Known defects, and what is done about them

- Singular covariances (copies, fewer samples than latents) have infinite total correlation: `score` is inf,
  `singular` is true, and `pseudo` counts the directions that do vary. JSON writes "inf".
- Constant latents add nothing; the original gives NaN or fails.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_codes, as_score
from unweave.metrics.estimators.correlation import correlation, covariance
from unweave.metrics.row import AFFINE, Metric
from unweave.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class TotalCorrelation:
    """``score`` in nats. ``pseudo`` leaves out the directions without variance: finite where ``score`` is infinite."""

    score: Score
    pseudo: Score
    singular: bool | Bool[Tensor, " model"]
    covariance: Float[Tensor, "*model latent latent"]


def total_correlation(codes: Any) -> TotalCorrelation:
    """KL divergence of a Gaussian with the codes' covariance from the product of its marginals.

    Constant latents are independent of all others and add nothing. When the other latents are linearly dependent
    (duplicates, or fewer samples than latents) the divergence is infinite: ``score`` is inf, ``singular`` is true,
    and ``pseudo`` is the value with the pseudo-determinant, over the directions that do vary.
    """
    table = as_codes(codes, batched=True)
    cov = covariance(table)
    eigenvalues = torch.linalg.eigvalsh(_correlations(table))
    floor = 64 * torch.finfo(torch.float64).eps * table.shape[-1] * eigenvalues.amax(-1, keepdim=True)
    regular = eigenvalues > floor
    # ½ (Σ log C_jj − log det C) = −½ log det R, with R the correlations
    pseudo = (-0.5 * torch.where(regular, eigenvalues, 1.0).log().sum(-1)) + 0.0
    singular = ~regular.all(-1)
    score = pseudo.clamp(min=0.0).masked_fill(singular, torch.inf)
    flag = bool(singular) if singular.ndim == 0 else singular
    return TotalCorrelation(as_score(score), as_score(pseudo), flag, cov)


def _correlations(codes: Float[Tensor, "*model sample latent"]) -> Float[Tensor, "*model latent latent"]:
    matrix = correlation(codes, codes)
    diagonal = torch.diagonal(matrix, dim1=-2, dim2=-1)
    diagonal.fill_(1.0)
    return matrix


ROW = Metric(
    total_correlation,
    name="gaussian_total_correlation",
    title="Gaussian total correlation",
    tells="How far are the latents from being independent, as far as their covariance tells?",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="less",
    invariant_to=("sample order", "latent order", *AFFINE),
    at_chance="0 for independent or constant codes; infinite for linearly dependent ones",
    paper="locatello2019challenging",
    example="total_correlation(codes).pseudo",
    batched=True,
)
