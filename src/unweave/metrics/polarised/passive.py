"""Correlation of passive latents with the others (Bonheme, 2023, §6.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes
from unweave.metrics.estimators.correlation import correlation
from unweave.metrics.polarised.types import Type
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class PassiveCorrelation:
    """``score`` is the largest |correlation| of a passive latent with one that is not; 0 where there is no such pair.

    ``strongest`` and ``partner`` give for every latent its largest |correlation| with any other, and which one that
    is (−1 for a single latent); with snapshots of a training they carry a leading axis.
    """

    score: float
    strongest: Float[Tensor, "*snapshot latent"]
    partner: Int[Tensor, "*snapshot latent"]
    correlation: Float[Tensor, "*snapshot latent latent"]
    often: Float[Tensor, " latent"]
    """Share of the snapshots in which a latent's strongest |correlation| exceeds the threshold (Figure 6.10)."""


def passive_correlation(mean: Any, types: Sequence[Type], *, threshold: float = 0.2) -> PassiveCorrelation:
    """How strongly the means of each latent go with those of another, though passive ones should tell nothing.

    ``mean`` is sample × latent, or snapshot × sample × latent for the course of a training; ``types`` are those at its
    end. A constant latent correlates 0 with everything.
    """
    table = as_codes(mean, "mean", batched=True)
    if len(types) != table.shape[-1]:
        raise ValueError(f"types must name each of the {table.shape[-1]} latents, given {len(types)}")
    matrix = correlation(table, table)
    others = matrix.abs() - 2.0 * torch.eye(len(types), dtype=matrix.dtype, device=matrix.device)
    strongest, partner = others.max(-1)
    if len(types) == 1:
        strongest, partner = torch.zeros_like(strongest), torch.full_like(partner, -1)
    passive = torch.tensor([kind == "passive" for kind in types], device=matrix.device)
    last = matrix.abs() if matrix.ndim == 2 else matrix[-1].abs()
    pairs = last[passive][:, ~passive]
    often = (strongest > threshold).double().reshape(-1, len(types)).mean(0)
    return PassiveCorrelation(float(pairs.max()) if pairs.numel() else 0.0, strongest, partner, matrix, often)
