"""The objectives by name."""

from unweave.models.objectives.ae import AE
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.objectives.beta_tcvae import BetaTCVAE
from unweave.models.objectives.beta_vae import VAE, BetaVAE, BetaVAEFull
from unweave.models.objectives.dip_vae import DIPVAEI, DIPVAEII
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.objectives.objective import Context, Objective, Terms

OBJECTIVES: dict[str, type[Objective]] = {
    "ae": AE,
    "vae": VAE,
    "beta_vae": BetaVAE,
    "beta_vae_full": BetaVAEFull,
    "annealed_vae": AnnealedVAE,
    "factor_vae": FactorVAE,
    "beta_tcvae": BetaTCVAE,
    "dip_vae_i": DIPVAEI,
    "dip_vae_ii": DIPVAEII,
}

__all__ = [
    "AE",
    "DIPVAEI",
    "DIPVAEII",
    "OBJECTIVES",
    "VAE",
    "AnnealedVAE",
    "BetaTCVAE",
    "BetaVAE",
    "BetaVAEFull",
    "Context",
    "FactorVAE",
    "Objective",
    "Terms",
]  # fmt: skip
