"""Rate and distortion of a model (Alemi et al., 2018; Bonheme, 2023, equation 4.21)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class RateDistortion:
    """In nats. ``elbo`` is −(distortion + rate); it bounds the log-likelihood of the data from below.

    The rate bounds the information between examples and codes from above.
    """

    rate: float
    distortion: float
    elbo: float
    rate_in_bits: float
    per_latent: Float[Tensor, " latent"]


def rate_distortion(kl: Any, reconstruction: Any) -> RateDistortion:
    """The mean KL divergence and the mean reconstruction loss, from those of every example.

    ``kl`` is sample × latent, ``reconstruction`` the negative log-likelihood of each example with its constants.
    """
    divergence = as_codes(kl, "kl").double()
    losses = torch.as_tensor(reconstruction).detach().double()
    if losses.shape != divergence.shape[:1]:
        raise ValueError(
            f"reconstruction must hold one loss for each of the {len(divergence)} examples, not {tuple(losses.shape)}"
        )
    if not bool(torch.isfinite(losses).all()):
        raise ValueError("reconstruction must be finite: it holds NaN or infinity")
    per_latent, distortion = divergence.mean(0), float(losses.mean())
    rate = float(per_latent.sum())
    return RateDistortion(rate, distortion, -(rate + distortion), rate / math.log(2.0), per_latent)
