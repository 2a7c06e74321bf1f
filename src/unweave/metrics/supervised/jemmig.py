"""Joint entropy minus mutual information gap, JEMMIG (Do and Tran, 2020).

```
JEMMIG_k = H(z₁, v_k) − I(z₁; v_k) + I(z₂; v_k)
score = mean over factors of 1 − JEMMIG_k / (H(v_k) + log n_bins)
```

**Protocol.** The same counts as MIG, 20 bins. The authors bin the posterior, 100 bins over [−4, 4]; `raw` is their
quantity, in nats, less is better.

**Rewards.** Factors that live in one latent which holds nothing else.

**Misses.** Latents that are best for no factor.

## Known defects, and what is done about them

- **A constant code scores about a half** (0.66 in the picture): it tells nothing but is compact. Look at MIG beside
  it, or use `--adjust chance`, which compares with the same code in random order.
- The ceiling of 20 bins is MIG's.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.metrics.row import COUNTED, Metric
from unweave.metrics.supervised.mig import gap
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Jemmig:
    """``score`` is the mean of ``per_factor`` over the factors that vary; ``raw`` is in nats, the lower the better."""

    score: Score
    per_factor: Float[Tensor, "*model factor"]
    raw: Float[Tensor, "*model factor"]
    mutual: Float[Tensor, "*model latent factor"]


def jemmig(codes: Any, factors: Any = None, *, n_bins: int = 20) -> Jemmig:
    """The gap of MIG less what the best latent holds besides the factor, from 0 to 1.

    The definition is the authors', normalised by its bound H(v) + log(n_bins) and turned round so that more is
    better (as Carbonneau et al., 2022, do). The authors bin the posterior itself, 100 bins over [−4, 4]; here the
    codes are binned over their range as in MIG. A constant code is compact although it tells nothing: it scores
    log(n_bins) / (H(v) + log(n_bins)), not 0. Constant factors score 0 and are left out of the mean.
    """
    known = informed(codes, factors, n_bins)
    best = known.mutual.amax(-2, keepdim=True)
    # latents that tell equally much are told apart by their joint entropy, so that their order does not matter
    joint = known.joint_entropy.masked_fill(known.mutual < best, torch.inf).amin(-2)
    # JEMMIG_k = H(z_first, v_k) − I(z_first; v_k) + I(z_second; v_k)
    raw = joint - gap(known.mutual, dim=-2)
    bound = (known.factor_entropy + math.log(known.n_bins)).clamp(min=1e-300)
    varies = known.factor_entropy > 0
    per_factor = torch.where(varies, (1.0 - raw / bound).clamp(0.0, 1.0), 0.0)
    return Jemmig(as_score(per_factor.sum(-1) / varies.sum().clamp(min=1)), per_factor, raw, known.mutual)


ROW = Metric(
    jemmig,
    name="jemmig",
    label="JEMMIG",
    title="JEMMIG",
    tells="MIG, less what the best latent holds besides its factor.",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=COUNTED,
    at_chance="log(bins) / (H(v) + log(bins)), about a half, for a constant code; near 0 for random codes",
    paper="do2020theory",
    example="jemmig(codes, factors).raw",
    counted=True,
    batched=True,
    compact=True,
)
