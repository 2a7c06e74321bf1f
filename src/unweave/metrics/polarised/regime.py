"""The polarised regime, Δ_KL (Rolínek, Zietlow and Martius, 2019; Zietlow, 2022, §3.2.2 and Table 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.shapes import Bool, Float, Tensor

SPREAD = 0.5
"""A latent counts as active when the standard deviation of its means exceeds this (Zietlow, 2022, §3.3.2)."""


@dataclass(frozen=True)
class Regime:
    """``delta`` is the relative error of the KL divergence of a model that is polarised without rest.

    Passive latents have exactly the prior then, and the variance of active ones is negligible beside its logarithm.
    ``delta`` is 0 when there is no KL at all, neither true nor approximate: a collapsed model is polarised.
    """

    delta: float
    kl: float
    approximate: float
    per_latent: Float[Tensor, " latent"]
    active: Bool[Tensor, " latent"]


@dataclass(frozen=True)
class RegimeShare:
    """``share`` of the training for which ``delta`` stays below the threshold until the end; from step ``since`` on."""

    share: float
    since: int | None
    delta: Float[Tensor, " row"]
    threshold: float


def regime(mean: Any, variance: Any, *, active: Any = None) -> Regime:
    """How far a model is from the polarised regime, from its posteriors over a sample.

    ``active`` marks the active latents; without it, those with std(μ) > 0.5.
    """
    mean, variance = _posteriors(mean, variance)
    used = mean.std(0, correction=0) > SPREAD if active is None else torch.as_tensor(active, dtype=torch.bool)
    if used.shape != mean.shape[1:]:
        raise ValueError(f"active must mark each of the {mean.shape[1]} latents, not {tuple(used.shape)} entries")
    # KL_j = ½ (μ² + σ² − log σ² − 1)
    per_latent = 0.5 * (mean.square() + variance - variance.log() - 1.0).mean(0)
    # KL≈ = ½ Σ_active (μ² − log σ² − 1) = Σ_active (KL_j − ½ σ²)
    approximate = (per_latent - 0.5 * variance.mean(0))[used].sum()
    kl = per_latent.sum()
    return Regime(float(_delta(kl, approximate)), float(kl), float(approximate), per_latent, used)


def regime_share(
    kl: Float[Tensor, "..."],
    variance_of_mean: Float[Tensor, "..."],
    mean_variance: Float[Tensor, "..."],
    *,
    steps: Sequence[int] | None = None,
    threshold: float = 0.03,
) -> RegimeShare:
    """Share of the training spent in the polarised regime, counted back from its end.

    Takes what the history of a run keeps of every latent, row by row: its KL, the variance of its means, and the mean
    of its variances, from which Δ_KL follows exactly. ``steps`` are the steps of the rows (evenly spaced without);
    the share is of the steps. The source looks every 500 batches: hand in those rows to repeat it.
    """
    if not kl.shape == variance_of_mean.shape == mean_variance.shape or kl.ndim != 2 or len(kl) == 0:
        raise ValueError(
            f"kl, variance_of_mean and mean_variance must be equal tables (row × latent) with at least one row, given"
            f" {tuple(kl.shape)}, {tuple(variance_of_mean.shape)} and {tuple(mean_variance.shape)}"
        )
    places = list(range(len(kl))) if steps is None else [int(step) for step in steps]
    if len(places) != len(kl) or any(later <= earlier for earlier, later in pairwise(places)):
        raise ValueError(f"steps must be {len(kl)} ascending numbers, one for each row")
    active = variance_of_mean.sqrt() > SPREAD
    approximate = ((kl.double() - 0.5 * mean_variance.double()) * active).sum(1)
    delta = _delta(kl.double().sum(1), approximate)
    below = (delta < threshold).flip(0).long().cumprod(0).flip(0).bool()
    n_rows = int(below.sum())
    first = len(kl) - n_rows
    length = places[-1] - places[0]
    share = float(n_rows > 0) if length == 0 else (places[-1] - places[first]) / length if n_rows else 0.0
    return RegimeShare(share, places[first] if n_rows else None, delta, threshold)


def _delta(kl: Tensor, approximate: Tensor) -> Tensor:
    error = (kl - approximate).abs()
    return torch.where(error > 0, error / kl.clamp(min=1e-300), 0.0)


def _posteriors(mean: Any, variance: Any) -> tuple[Tensor, Tensor]:
    mean, variance = as_codes(mean, "mean").double(), as_codes(variance, "variance").double()
    check_lengths(mean, variance, ("mean", "variance"))
    if mean.shape != variance.shape:
        raise ValueError(f"mean and variance must be equal tables, given {tuple(mean.shape)}, {tuple(variance.shape)}")
    if bool((variance <= 0).any()):
        raise ValueError(
            "variance must be positive for a KL divergence: a deterministic autoencoder has none, and no polarised"
            " regime; give variances, not their logarithms"
        )
    return mean, variance
