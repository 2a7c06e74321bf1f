"""Joint entropy minus mutual information gap, JEMMIG (Do and Tran, 2020)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
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
