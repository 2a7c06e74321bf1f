"""Effective rank (Roy and Vetterli, 2007)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_codes, as_score
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
