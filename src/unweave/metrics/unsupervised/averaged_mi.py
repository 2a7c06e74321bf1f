"""Averaged mutual information of the codes with each other (Locatello et al., 2019)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import code_information
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class AveragedMi:
    """``score`` in nats; the diagonal of ``mutual`` holds the entropies of the binned codes."""

    score: Score
    mutual: Float[Tensor, "*model latent latent"]


def averaged_mi(codes: Any, *, n_bins: int = 20) -> AveragedMi:
    """Mean mutual information over all ordered pairs of different latents; 0 for a single latent.

    Counting is biased upwards: independent codes get 0.0145 nats from 10,000 samples, 1.07 from 100.
    """
    mutual = code_information(codes, n_bins)
    n_latents = mutual.shape[-1]
    others = mutual.sum((-1, -2)) - torch.diagonal(mutual, dim1=-2, dim2=-1).sum(-1)
    # Σ_{i≠j} I(z_i; z_j) / (d² − d)
    return AveragedMi(as_score((others / max(1, n_latents**2 - n_latents)).clamp(min=0.0)), mutual)
