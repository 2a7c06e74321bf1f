"""Deterministic and stochastic parts of the reconstruction loss (Zietlow, 2022, equations 3.8 to 3.10)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class ReconstructionSplit:
    """Squared errors, summed over an example and averaged over examples; ``per_example`` ones carry that axis.

    ``rest`` = total − deterministic − stochastic: 0 in expectation when the noisy reconstruction is unbiased around
    the one at the mean (Proposition 4), so it measures the decoder's curvature and the sampling error.
    """

    total: float
    deterministic: float
    stochastic: float
    rest: float
    deterministic_per_example: Float[Tensor, " sample"]
    stochastic_per_example: Float[Tensor, " sample"]


def reconstruction_split(images: Any, at_mean: Any, at_samples: Any) -> ReconstructionSplit:
    """The loss of the decoded mean code, and what the noise of the encoder adds to it.

    ``images`` and ``at_mean`` (decoded means) are sample × …, ``at_samples`` (decoded draws from the posteriors)
    draw × sample × …; more draws mean less sampling error. An autoencoder without noise has a stochastic part of 0.
    """
    truth, fixed, drawn = (torch.as_tensor(part).detach().double() for part in (images, at_mean, at_samples))
    if truth.shape != fixed.shape or drawn.shape[1:] != truth.shape or truth.ndim < 2 or len(drawn) == 0:
        raise ValueError(
            "images and at_mean must have the same shape, sample × …, and at_samples that shape behind an axis of at"
            f" least one draw; given {tuple(truth.shape)}, {tuple(fixed.shape)} and {tuple(drawn.shape)}"
        )
    # deterministic: ‖Dec(μ) − x‖²   stochastic: E ‖Dec(μ) − Dec(z)‖²   total: E ‖Dec(z) − x‖²
    deterministic = (fixed - truth).square().flatten(1).sum(1)
    stochastic = (drawn - fixed).square().flatten(2).sum(2).mean(0)
    total = (drawn - truth).square().flatten(2).sum(2).mean(0)
    rest = total - deterministic - stochastic
    return ReconstructionSplit(
        float(total.mean()), float(deterministic.mean()), float(stochastic.mean()), float(rest.mean()),
        deterministic, stochastic,
    )  # fmt: skip


def linear_stochastic_loss(
    gram: Float[Tensor, "sample latent latent"], variance: Float[Tensor, "sample latent"]
) -> Float[Tensor, " sample"]:
    """The stochastic part of a decoder that is linear over the noise, E ‖J ε‖² = Σ_j σ_j² ‖J_j‖² (equation 3.13).

    ``gram`` holds JᵀJ of the decoder at each mean (:func:`unweave.metrics.geometry.jacobian.decoder_gram`).
    """
    return (torch.diagonal(gram, dim1=-2, dim2=-1) * variance).sum(-1)
