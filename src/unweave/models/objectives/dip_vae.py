"""DIP-VAE-I and DIP-VAE-II (Kumar et al., 2018): the aggregate posterior's covariance is drawn to the identity."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.config import number
from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor


@dataclass(frozen=True)
class DIPVAEI(Objective):
    """Penalises the covariance of the means. λ_d = ``diagonal_factor`` · λ_od."""

    name: ClassVar[str] = "dip_vae_i"
    off_diagonal: Scalar = number(10.0, least=0, help="weight of the covariances")
    diagonal_factor: Scalar = number(10.0, least=0, help="weight of the variances, in units of off_diagonal")

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        penalty = self._penalty(covariance(code.mean))
        return {"regulariser": kl + penalty, "kl": kl, "covariance_penalty": penalty}

    def _penalty(self, cov: Float[Tensor, "latent latent"]) -> Float[Tensor, ""]:
        diagonal = torch.diagonal(cov)
        off = cov - torch.diag(diagonal)
        # λ_od Σ_{i≠j} Cov_ij² + λ_d Σ_i (Cov_ii − 1)²
        return self.off_diagonal * (off.square().sum() + self.diagonal_factor * (diagonal - 1.0).square().sum())


@dataclass(frozen=True)
class DIPVAEII(DIPVAEI):
    """Penalises the covariance of the samples: Cov[μ] + E[diag σ²]."""

    name: ClassVar[str] = "dip_vae_ii"
    diagonal_factor: Scalar = number(1.0, least=0, help="weight of the variances, in units of off_diagonal")

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        penalty = self._penalty(covariance(code.mean) + torch.diag(code.variance.mean(0)))
        return {"regulariser": kl + penalty, "kl": kl, "covariance_penalty": penalty}


def covariance(codes: Float[Tensor, "batch latent"]) -> Float[Tensor, "latent latent"]:
    """E[zzᵀ] − E[z]E[z]ᵀ over the batch: divided by the batch, as the published code does."""
    centred = codes - codes.mean(0)
    return centred.T @ centred / len(codes)
