"""Difference of the traces of sampled and mean codes (Bonheme, 2023, Propositions 8.3.1 to 8.3.3).

```
Tr Var[Z] − Tr Var[M] = Σ_j E[σ²_j],   Z sampled and M mean codes
```

**Protocol.** From the posterior variances, whose mean is the expected difference; `sampled=` takes drawn codes
instead, as published. It is the criterion of FONDUE ([how many latents?](../dimension.md)).

**Rewards.** Models that use every latent precisely: 0. Each passive latent adds 1, each mixed one something between.

**Misses.** Which latents they are, and whether what the others say is of any use. Many imprecise latents add up to
what one passive one gives.

## Known defects, and what is done about them

- A deterministic autoencoder scores 0 whatever it learned.
- Codes without variances are refused: there is no noise to compare.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.metrics.row import Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Traces:
    """``score`` is Tr Var[Z] − Tr Var[M]: 0 with active latents only, s with s passive ones, between with mixed ones.

    ``per_latent`` holds what every latent adds, 0 for an ideal active and 1 for an ideal passive one; ``counts`` is
    the number of passive latents that the score stands for when there are no mixed ones. Sampling error is
    about √(2 Σ σ⁴ / samples) for the draws, and none for ``variance``.
    """

    score: float
    sampled: float
    mean: float
    per_latent: Float[Tensor, " latent"]
    counts: int


def traces(mean: Any, variance: Any = None, *, sampled: Any = None) -> Traces:
    """How many latents carry the prior's noise instead of the data, without a threshold on any single one.

    From ``sampled`` codes as published, or from the posteriors' ``variance``, whose mean is the expected difference:
    Var[Z] = Var[M] + E[σ²] latent by latent. A deterministic autoencoder (variance 0) scores 0.
    """
    if (variance is None) == (sampled is None):
        raise ValueError("give either variance or sampled codes beside the mean")
    table = as_codes(mean, "mean codes").double()
    name = "variance" if sampled is None else "sampled"
    other = as_codes(variance if sampled is None else sampled, name).double()
    check_lengths(table, other, ("mean codes", name))
    if table.shape != other.shape:
        raise ValueError(f"mean and {name} must be equal tables, given {tuple(table.shape)} and {tuple(other.shape)}")
    if len(table) < 2:
        raise ValueError("a variance needs at least two samples, given one")
    if sampled is None and bool((other < 0).any()):
        raise ValueError("variance has negative entries; give variances, not their logarithms")
    of_mean = table.var(0, correction=1)
    per_latent = other.mean(0) if sampled is None else other.var(0, correction=1) - of_mean
    score, trace = float(per_latent.sum()), float(of_mean.sum())
    return Traces(score, trace + score, trace, per_latent, int(torch.tensor(score).round().clamp(min=0)))


ROW = Metric(
    traces,
    name="traces",
    title="Trace difference",
    tells="How many latents carry the prior's noise in place of the data?",
    kind="unsupervised",
    needs="codes variance",
    range=(0.0, math.inf),
    better="less",
    invariant_to=("sample order", "latent order", "latent sign", "latent shift"),
    at_chance="the number of latents for a collapsed model; 0 for a deterministic one",
    paper="bonheme2023polarised",
    example="traces(codes, variance).per_latent",
)
