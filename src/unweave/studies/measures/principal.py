"""A linear VAE beside PCA and beside its closed form (Zietlow, 2022, Theorem 2; Lucas et al., 2019)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.metrics.geometry.orthogonality import dto
from unweave.models.closed_form import linear_optimum
from unweave.models.likelihoods import Gaussian, Likelihood, SquaredError
from unweave.models.networks import Linear
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

ACTIVE_BELOW = 0.9
"""Mean posterior variance below which a latent counts as active: a passive one has 1."""


@dataclass(frozen=True)
class PrincipalDirections(Measure):
    """How far a linear decoder's columns are from principal directions of the data, matched one to one.

    ``angles`` are in degrees, for every active latent, the largest eigenvalue first. Needs a linear network with a
    Gaussian likelihood of known variance.
    """

    name: ClassVar[str] = "principal"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        run.require_decoder()
        noise = _noise(run)
        data = run.data.store.double()
        covariance = torch.cov(data.T, correction=0)
        code = encoded(run, self.n_samples)
        beta = float(getattr(run.experiment.objective, "beta", 1.0))
        optimum = linear_optimum(covariance, run.experiment.latents, noise=noise, beta=beta)
        weight = _weight(run.model.decoder)
        active = code.variance.mean(0) < ACTIVE_BELOW
        places, latents, angles = matched(weight[:, active], optimum.weight[:, : optimum.n_active])
        variance = code.variance.mean(0).double()[active][latents]
        return {
            "angles": angles.tolist(),
            "largest_angle": float(angles.max()) if len(angles) else None,
            "n_active": int(active.sum()),
            "n_active_theory": optimum.n_active,
            "variance": variance.tolist(),
            "variance_theory": optimum.variance[places].tolist(),
            "rate": code.kl.sum(1).mean().item(),
            "rate_theory": optimum.rate,
            "dto": dto((weight.T @ weight)[None], active=active).score if bool(active.any()) else None,
        }


def matched(
    weight: Float[Tensor, "feature latent"], directions: Float[Tensor, "feature direction"]
) -> tuple[list[int], list[int], Float[Tensor, " pair"]]:
    """Pairs of a direction and a column, up to sign, and the angle between the two in degrees."""
    from scipy.optimize import linear_sum_assignment

    columns = weight / weight.norm(dim=0).clamp(min=1e-300)
    units = directions / directions.norm(dim=0).clamp(min=1e-300)
    cosines = (units.T @ columns).abs().clamp(max=1.0)
    places, latents = linear_sum_assignment(cosines.numpy(), maximize=True)
    return places.tolist(), latents.tolist(), torch.rad2deg(torch.arccos(cosines[places, latents]))


def _noise(run: Run) -> float:
    likelihood: Likelihood = run.experiment.likelihood
    if not isinstance(run.experiment.network, Linear):
        raise ValueError(f"principal directions are those of a linear network, not of {run.experiment.network.name}")
    if isinstance(likelihood, SquaredError) and likelihood.squash == "identity":
        # ‖x − x̂‖² = ‖x − x̂‖² / 2γ with γ = ½
        return 0.5
    if isinstance(likelihood, Gaussian) and likelihood.squash == "identity":
        return likelihood.variance
    raise ValueError(f"principal directions need a Gaussian likelihood of known variance, not {likelihood.name}")


def _weight(decoder: torch.nn.Module) -> Float[Tensor, "feature latent"]:
    weight: Tensor = dict(decoder.named_parameters())["output.weight"]
    return weight.detach().double()
