"""MIG-sup, the supplement to the mutual information gap (Li et al., 2020)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
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
