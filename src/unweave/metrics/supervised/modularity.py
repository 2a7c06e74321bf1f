"""Modularity (Ridgeway and Mozer, 2018)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Modularity:
    """``score`` is the mean of ``per_latent``, plain or weighted by what each latent tells."""

    score: Score
    per_latent: Float[Tensor, "*model latent"]
    mutual: Float[Tensor, "*model latent factor"]


def modularity(codes: Any, factors: Any = None, *, n_bins: int = 20, average: str = "latents") -> Modularity:
    """How nearly each latent tells about one factor only: 1 less its mean squared deviation from that template.

    The published ``average="latents"`` counts every latent alike, dead ones with 0 and noise with about 0.4, so an
    ideal code with idle latents loses (0.82 for ten latents on dSprites). ``"information"`` weights every latent by
    the information it holds, Σ_k I(z_j; v_k): idle latents drop out.

    With one factor every latent that tells anything is modular. A code that tells nothing scores 0. A constant
    factor counts among the factors a latent does not tell about, which raises the score.
    """
    if average not in ("latents", "information"):
        raise ValueError(f"average must be 'latents' or 'information', not {average!r}")
    mutual = informed(codes, factors, n_bins).mutual
    per_latent = _per_latent(mutual)
    weight = mutual.sum(-1) if average == "information" else torch.ones_like(per_latent)
    score = (weight * per_latent).sum(-1) / weight.sum(-1).clamp(min=1e-300)
    return Modularity(as_score(score), per_latent, mutual)


def _per_latent(mutual: Float[Tensor, "*model latent factor"]) -> Float[Tensor, "*model latent"]:
    best = mutual.amax(-1)
    # by the largest entry before squaring: an information of 1e-200 nats must not vanish
    squares = (mutual / best.clamp(min=1e-300)[..., None]).square()
    # 1 − (Σ_k I_jk² − max_k I_jk²) / (max_k I_jk² (K − 1))
    deviation = (squares.sum(-1) - 1.0) / max(1, mutual.shape[-1] - 1)
    return torch.where(best > 0, 1.0 - deviation, 0.0)
