"""Self-consistency of encoder and decoder (Reizinger et al., 2022)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class SelfConsistency:
    """``score`` is 1 − Σ error / Σ variance over latents: 1 when the encoder inverts the decoder at every mean code.

    It falls to 0 when a code that comes back is no better than the average code, and below when it is worse.
    ``per_latent`` is the same for each latent, 0 for one whose means do not vary.
    """

    score: float
    per_latent: Float[Tensor, " latent"]
    error: Float[Tensor, " latent"]
    variance: Float[Tensor, " latent"]


def self_consistency(mean: Any, again: Any, *, active: Any = None) -> SelfConsistency:
    """How well a mean code survives decoding and encoding: ``again`` is the mean code of the decoded ``mean``.

    ``active`` restricts the score to the latents that are used. Where nothing varies the score is 0.
    """
    first, second = as_codes(mean, "mean").double(), as_codes(again, "again").double()
    check_lengths(first, second, ("mean", "again"))
    if first.shape != second.shape:
        raise ValueError(f"mean and again must be equal tables, given {tuple(first.shape)} and {tuple(second.shape)}")
    error = (second - first).square().mean(0)
    variance = first.var(0, correction=0)
    per_latent = torch.where(variance > 0, 1.0 - error / variance.clamp(min=1e-300), 0.0)
    kept = torch.ones_like(variance, dtype=torch.bool) if active is None else torch.as_tensor(active, dtype=torch.bool)
    if kept.shape != variance.shape:
        raise ValueError(f"active must mark each of the {len(variance)} latents, not {tuple(kept.shape)} entries")
    total = float(variance[kept].sum())
    return SelfConsistency(1.0 - float(error[kept].sum()) / total if total > 0 else 0.0, per_latent, error, variance)
