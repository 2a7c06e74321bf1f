"""Mutual information gap, MIG (Chen et al., 2018)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Mig:
    """``score`` is the mean of ``per_factor`` over the factors that vary."""

    score: Score
    per_factor: Float[Tensor, "*model factor"]
    mutual: Float[Tensor, "*model latent factor"]
    denominator: Float[Tensor, " factor"]


def mig(codes: Any, factors: Any = None, *, n_bins: int = 20, normalise: str = "entropy") -> Mig:
    """Lead of the best-informed latent over the second best, as a share of each factor's entropy.

    In ``n_bins`` bins a code tells at most log(n_bins) nats, so with the published ``normalise="entropy"`` an ideal
    code stays below 1 for factors of more values (0.80 for the 40 orientations of dSprites). ``"ceiling"`` divides
    by what an ideal code in as many bins attains; it is the same for factors of at most ``n_bins`` values.

    A single latent has no rival: its lead is all it tells. Constant factors score 0 and are left out of the mean;
    without any factor that varies the score is 0.
    """
    if normalise not in ("entropy", "ceiling"):
        raise ValueError(f"normalise must be 'entropy' or 'ceiling', not {normalise!r}")
    known = informed(codes, factors, n_bins)
    denominator = known.factor_entropy if normalise == "entropy" else known.ceiling
    # MIG_k = (I(z_first; v_k) − I(z_second; v_k)) / H(v_k)
    per_factor = (gap(known.mutual, dim=-2) / denominator.clamp(min=1e-300)).clamp(max=1.0)
    varies = known.factor_entropy > 0
    per_factor = torch.where(varies, per_factor, 0.0)
    return Mig(as_score(per_factor.sum(-1) / varies.sum().clamp(min=1)), per_factor, known.mutual, denominator)


def gap(table: Float[Tensor, "*any"], dim: int) -> Float[Tensor, "*less"]:
    """Largest less second largest entry along an axis; the largest itself where there is only one."""
    best = table.topk(min(2, table.shape[dim]), dim=dim).values
    return best.select(dim, 0) - best.select(dim, 1) if best.shape[dim] == 2 else best.select(dim, 0)
