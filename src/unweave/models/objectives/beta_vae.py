"""VAE (Kingma & Welling, 2014), β-VAE (Higgins et al., 2017) and β-VAE with a full-covariance posterior."""

from dataclasses import dataclass
from typing import ClassVar

from unweave.config import number
from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code, FullCovariance, Posterior
from unweave.shapes import Scalar


@dataclass(frozen=True)
class VAE(Objective):
    """The evidence lower bound: reconstruction + KL."""

    name: ClassVar[str] = "vae"
    sees_totals: ClassVar[bool] = True
    weighs_totals: ClassVar[bool] = True

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": kl, "kl": kl}


@dataclass(frozen=True)
class BetaVAE(Objective):
    """β KL: the larger β, the fewer latents are worth their price."""

    name: ClassVar[str] = "beta_vae"
    sees_totals: ClassVar[bool] = True
    weighs_totals: ClassVar[bool] = True
    beta: Scalar = number(4.0, least=0, help="weight of the KL")

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": self.beta * kl, "kl": kl}


@dataclass(frozen=True)
class BetaVAEFull(BetaVAE):
    """β-VAE_Σ: without the diagonal posterior that makes latents line up with principal directions."""

    name: ClassVar[str] = "beta_vae_full"
    posterior: ClassVar[Posterior] = FullCovariance()
