"""The objectives by name."""

from unweave.models.method import MODEL, Batch, Context, Draw, Method, Phase, Terms, kept_weights, new_networks
from unweave.models.objectives.ae import AE
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.objectives.beta_tcvae import BetaTCVAE
from unweave.models.objectives.beta_vae import VAE, BetaVAE, BetaVAEFull
from unweave.models.objectives.dip_vae import DIPVAEI, DIPVAEII
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.objectives.ivae import IVAE
from unweave.models.objectives.known_factors import KnownFactors
from unweave.models.objectives.label_gan import LabelGAN
from unweave.models.objectives.objective import Objective
from unweave.models.objectives.pair_vae import GVAE, MLVAE, AdaGVAE, AdaMLVAE
from unweave.models.objectives.pcl import PCL
from unweave.models.objectives.perturbation import Perturbation
from unweave.models.objectives.qlae import QLAE
from unweave.models.objectives.semi_supervised import SemiVAE
from unweave.models.objectives.slow_vae import SlowVAE
from unweave.models.objectives.ws_gan import WSGAN

OBJECTIVES: dict[str, type[Method]] = {
    "ae": AE,
    "vae": VAE,
    "beta_vae": BetaVAE,
    "beta_vae_full": BetaVAEFull,
    "annealed_vae": AnnealedVAE,
    "known_factors": KnownFactors,
    "factor_vae": FactorVAE,
    "beta_tcvae": BetaTCVAE,
    "dip_vae_i": DIPVAEI,
    "dip_vae_ii": DIPVAEII,
    "ivae": IVAE,
    "semi_vae": SemiVAE,
    "slow_vae": SlowVAE,
    "ada_gvae": AdaGVAE,
    "ada_ml_vae": AdaMLVAE,
    "gvae": GVAE,
    "ml_vae": MLVAE,
    "perturbation": Perturbation,
    "pcl": PCL,
    "ws_gan": WSGAN,
    "label_gan": LabelGAN,
    "qlae": QLAE,
}

__all__ = [
    "AE", "DIPVAEI", "DIPVAEII", "GVAE", "IVAE", "MLVAE", "MODEL", "OBJECTIVES", "PCL", "QLAE", "VAE", "WSGAN",
    "AdaGVAE", "AdaMLVAE", "AnnealedVAE", "Batch", "BetaTCVAE", "BetaVAE", "BetaVAEFull", "Context", "Draw",
    "FactorVAE", "KnownFactors", "LabelGAN", "Method", "Objective", "Perturbation", "Phase", "SemiVAE", "SlowVAE",
    "Terms", "kept_weights", "new_networks",
]  # fmt: skip
