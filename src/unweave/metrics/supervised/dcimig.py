"""DCIMIG, also called 3CharM (Sepliarskaia et al., 2019).

```
R_j = I(z_j; v_first) − I(z_j; v_second)
S_k = max over latents j whose first factor is k of R_j
DCIMIG = Σ_k S_k / Σ_k H(v_k)
```

**Protocol.** The same counts as MIG, 20 bins.

**Rewards.** Every factor having a latent that tells all about it and nothing about others. Noise, dead and doubled
latents cost nothing.

**Misses.** Copies: only the best latent of a factor counts.

## Known defects, and what is done about them

- The ceiling of 20 bins is MIG's.
- Factors with more entropy weigh more: it is a share of all nats, not a mean over factors.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.metrics.row import COUNTED, Metric
from unweave.metrics.supervised.mig import gap
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Dcimig:
    """``score`` is the sum of ``per_factor``, in nats, as a share of all the factors' entropy."""

    score: Score
    per_factor: Float[Tensor, "*model factor"]
    per_latent: Float[Tensor, "*model latent"]
    mutual: Float[Tensor, "*model latent factor"]


def dcimig(codes: Any, factors: Any = None, *, n_bins: int = 20) -> Dcimig:
    """Every latent stands for its best factor by its lead over the second; every factor takes its best latent.

    The three characters in one number: a latent with two factors has no lead, a factor without a latent adds
    nothing, and what is missing from its entropy was not told. Duplicated latents cost nothing. With one factor the
    lead is all the latent tells; when all factors are constant the score is 0.
    """
    known = informed(codes, factors, n_bins)
    # R_j = I(z_j; v_first) − I(z_j; v_second), S_k = max over latents whose first factor is k
    lead = gap(known.mutual, dim=-1)
    first = torch.nn.functional.one_hot(known.mutual.argmax(-1), known.mutual.shape[-1])
    per_factor = (first * lead[..., None]).amax(-2)
    # Σ_k S_k / Σ_k H(v_k)
    score = (per_factor.sum(-1) / known.factor_entropy.sum().clamp(min=1e-300)).clamp(max=1.0)
    return Dcimig(as_score(score), per_factor, lead, known.mutual)


ROW = Metric(
    dcimig,
    name="dcimig",
    label="DCIMIG",
    title="DCIMIG (3CharM)",
    tells="Disentanglement, completeness and informativeness in one number, by information.",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=COUNTED,
    at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
    paper="sepliarskaia2019not",
    example="dcimig(codes, factors).per_factor",
    counted=True,
    batched=True,
)
