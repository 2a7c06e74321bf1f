"""Gaussian Wasserstein correlation (Locatello et al., 2019).

```
W = 2 tr C − 2 tr √(D^½ C D^½), D = diag C;  normalised = W / tr C
```

**Protocol.** All rows; no labels.

**Rewards.** Uncorrelated latents. Less is better; the unnormalised value has the units of the codes squared.

**Misses.** Everything beyond correlation, and at the same value more for latents of large scale.

## Known defects, and what is done about them

- The original becomes complex for singular covariances under old scipy; here eigenvalues of a symmetric matrix are
  taken, which are real.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_codes, as_score
from unweave.metrics.estimators.correlation import covariance
from unweave.metrics.row import Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Wasserstein:
    """``score`` is a squared distance in the units of the codes; ``normalised`` is its share of the total variance."""

    score: Score
    normalised: Score
    covariance: Float[Tensor, "*model latent latent"]


def wasserstein(codes: Any) -> Wasserstein:
    """Squared 2-Wasserstein distance of a Gaussian with the codes' covariance from the product of its marginals.

    Finite and real for every covariance, singular ones too; 0, also normalised, when nothing varies.
    """
    cov = covariance(as_codes(codes, batched=True))
    variance = torch.diagonal(cov, dim1=-2, dim2=-1)
    deviation = variance.sqrt()
    # tr √(C D) = tr √(D^½ C D^½) for D = diag C: the second is symmetric, so its eigenvalues are real
    eigenvalues = torch.linalg.eigvalsh(deviation[..., :, None] * cov * deviation[..., None, :])
    total = variance.sum(-1)
    # 2 tr C − 2 tr √(C D)
    score = (2 * total - 2 * eigenvalues.clamp(min=0.0).sqrt().sum(-1)).clamp(min=0.0)
    return Wasserstein(as_score(score), as_score(score / total.clamp(min=1e-300)), cov)


ROW = Metric(
    wasserstein,
    name="gaussian_wasserstein_correlation",
    title="Gaussian Wasserstein correlation",
    tells="The same question as total correlation, as a distance that stays finite.",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="less",
    invariant_to=("sample order", "latent order", "latent sign", "latent shift"),
    at_chance="0 for independent or constant codes",
    paper="locatello2019challenging",
    example="wasserstein(codes).normalised",
    scores=("score", "normalised"),
    batched=True,
)
