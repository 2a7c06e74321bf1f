"""Effective rank (Roy and Vetterli, 2007).

```
erank = exp(−Σ p_i log p_i), p_i = s_i / Σ s, s the singular values of the codes
```

**Protocol.** The matrix as it is, as published; `centre=True` subtracts the means first.

**Rewards.** Codes spread evenly over many directions.

**Misses.** Meaning: noise has full rank. It is a description rather than a mark; whether more is better depends on
how many factors there are.

## Known defects, and what is done about them

- Without centring a constant code has rank 1, and a large mean hides the rest. A matrix of zeros has rank 0.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_codes, as_score
from unweave.metrics.row import Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class EffectiveRank:
    """``score`` lies between 1 and the number of latents (or samples, if fewer)."""

    score: Score
    singular_values: Float[Tensor, "*model direction"]


def effective_rank(codes: Any, *, centre: bool = False) -> EffectiveRank:
    """Exponential of the entropy of the codes' normalised singular values.

    The matrix is taken as it is, as published; ``centre`` subtracts the mean of every latent first. A matrix of
    zeros has no direction: 0.
    """
    table = as_codes(codes, batched=True).to(torch.float64)
    if centre:
        table = table - table.mean(-2, keepdim=True)
    values = torch.linalg.svdvals(table)
    total = values.sum(-1, keepdim=True)
    # p_i = s_i / Σ s, erank = exp(−Σ p_i log p_i)
    share = values / total.clamp(min=1e-300)
    rank = torch.exp(-torch.xlogy(share, share).sum(-1))
    return EffectiveRank(as_score(torch.where(total[..., 0] > 0, rank, 0.0)), values)


ROW = Metric(
    effective_rank,
    name="effective_rank",
    title="Effective rank",
    tells="In how many directions do the codes really vary?",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="neither",
    invariant_to=("sample order", "latent order", "latent sign", "rotation", "global scale"),
    at_chance="1 for a constant code, 0 for one of zeros; the number of latents for white noise",
    paper="roy2007effective",
    example="effective_rank(codes, centre=True).singular_values",
    batched=True,
)
