"""Averaged mutual information of the codes with each other (Locatello et al., 2019).

```
mean over ordered pairs i ≠ j of I(z_i; z_j), in nats
```

**Protocol.** 20 bins, all rows; no labels.

**Rewards.** Independent latents, in every sense that bins can see: the codes turned by 45° are found out (0.74 nats).
Less is better.

**Misses.** Whether the latents mean anything.

## Known defects, and what is done about them

- Biased upwards: independent codes get 1.07 nats from 100 samples, 0.136 from 1,000, 0.0145 from 10,000. Compare
  equal sample sizes only.
- The original fails for a single latent; here 0.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import code_information
from unweave.metrics.row import AFFINE, Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class AveragedMi:
    """``score`` in nats; the diagonal of ``mutual`` holds the entropies of the binned codes."""

    score: Score
    mutual: Float[Tensor, "*model latent latent"]


def averaged_mi(codes: Any, *, n_bins: int = 20) -> AveragedMi:
    """Mean mutual information over all ordered pairs of different latents; 0 for a single latent.

    Counting is biased upwards: independent codes get 0.0145 nats from 10,000 samples, 1.07 from 100.
    """
    mutual = code_information(codes, n_bins)
    n_latents = mutual.shape[-1]
    others = mutual.sum((-1, -2)) - torch.diagonal(mutual, dim1=-2, dim2=-1).sum(-1)
    # Σ_{i≠j} I(z_i; z_j) / (d² − d)
    return AveragedMi(as_score((others / max(1, n_latents**2 - n_latents)).clamp(min=0.0)), mutual)


ROW = Metric(
    averaged_mi,
    name="mutual_info_score",
    title="Averaged mutual information",
    tells="How much do latents tell about each other?",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="less",
    invariant_to=("sample order", "latent order", *AFFINE),
    at_chance="0 for constant codes; about 180/samples nats for independent ones (20 bins)",
    paper="locatello2019challenging",
    example="averaged_mi(codes).mutual",
    batched=True,
)
