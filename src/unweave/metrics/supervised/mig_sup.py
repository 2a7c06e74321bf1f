"""MIG-sup, the supplement to the mutual information gap (Li et al., 2020).

```
MIG-sup = mean over active latents j of (I(z_j; v₁)/H(v₁) − I(z_j; v₂)/H(v₂))

v₁ and v₂ are the two factors of which latent j tells the largest shares.
```

**Protocol.** The same counts as MIG, 20 bins. Active are the latents that vary, or those that `active=` marks.

**Rewards.** Latents that hold one factor each. Copies cost nothing.

**Misses.** A factor that no latent holds: only latents are averaged.

## Known defects, and what is done about them

- **Noise counts.** A latent of pure noise varies, tells nothing and pulls the mean down: the ideal code with four
  latents of noise falls from 0.99 to 0.50. The authors average over active latents without saying how to find them;
  hand in `active=`, for example from the posterior variances.
- The ceiling of 20 bins is MIG's.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.metrics.row import COUNTED, Metric
from unweave.metrics.supervised.mig import gap
from unweave.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class MigSup:
    """``score`` is the mean of ``per_latent`` over the active latents."""

    score: Score
    per_latent: Float[Tensor, "*model latent"]
    share: Float[Tensor, "*model latent factor"]
    active: Bool[Tensor, "*model latent"]


def mig_sup(codes: Any, factors: Any = None, *, n_bins: int = 20, active: Any = None) -> MigSup:
    """Lead of the factor a latent tells most about over the second, as shares of the factors' entropies.

    Where MIG asks whether a factor lives in one latent, this asks whether a latent holds one factor. The authors'
    code averages over active latents; here these are the latents that vary, or those that ``active`` marks. A latent
    of noise varies and pulls the score down unless it is marked inactive (0.45 for an ideal dSprites code with five
    of noise).
    With one factor the lead is all the latent tells. Constant factors have nothing to tell: their share is 0.
    Without an active latent the score is 0.
    """
    known = informed(codes, factors, n_bins)
    mask = known.varies if active is None else _mask(active, known.varies)
    # share_jk = I(z_j; v_k) / H(v_k)
    share = torch.where(known.factor_entropy > 0, known.mutual / known.factor_entropy.clamp(min=1e-300), 0.0)
    per_latent = gap(share, dim=-1)
    score = torch.where(mask, per_latent, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)
    return MigSup(as_score(score), per_latent, share, mask)


def _mask(active: Any, varies: Bool[Tensor, "*model latent"]) -> Bool[Tensor, "*model latent"]:
    mask = torch.as_tensor(active, device=varies.device)
    if mask.dtype != torch.bool or mask.shape[-1:] != varies.shape[-1:]:
        raise ValueError(f"active must hold one true or false per latent ({varies.shape[-1]}), given {active!r}")
    return mask.expand_as(varies)


ROW = Metric(
    mig_sup,
    name="mig_sup",
    label="MIG-sup",
    title="MIG-sup",
    tells="Does each latent tell about one factor only? MIG with the roles exchanged.",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=COUNTED,
    at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
    paper="li2020progressive",
    example="mig_sup(codes, factors).per_latent",
    counted=True,
    batched=True,
)
