"""The objectives by name."""

from unweave.models.method import Batch, Context, Method, Phase, Terms, new_networks
from unweave.models.objectives.ae import AE
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.objectives.beta_tcvae import BetaTCVAE
from unweave.models.objectives.beta_vae import VAE, BetaVAE, BetaVAEFull
from unweave.models.objectives.dip_vae import DIPVAEI, DIPVAEII
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.objectives.ivae import IVAE
from unweave.models.objectives.objective import MODEL, Objective
from unweave.models.objectives.semi_supervised import SemiVAE

OBJECTIVES: dict[str, type[Method]] = {
    "ae": AE,
    "vae": VAE,
    "beta_vae": BetaVAE,
    "beta_vae_full": BetaVAEFull,
    "annealed_vae": AnnealedVAE,
    "factor_vae": FactorVAE,
    "beta_tcvae": BetaTCVAE,
    "dip_vae_i": DIPVAEI,
    "dip_vae_ii": DIPVAEII,
    "ivae": IVAE,
    "semi_vae": SemiVAE,
}

__all__ = [
    "AE", "DIPVAEI", "DIPVAEII", "IVAE", "MODEL", "OBJECTIVES", "VAE", "AnnealedVAE", "Batch", "BetaTCVAE", "BetaVAE",
    "BetaVAEFull", "Context", "FactorVAE", "Method", "Objective", "Phase", "SemiVAE", "Terms", "new_networks",
]  # fmt: skip
