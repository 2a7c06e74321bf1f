"""Networks, posteriors, likelihoods and objectives: maths for one model, without files or loops."""

from unweave.models.autoencoder import Architecture, Autoencoder, Model
from unweave.models.likelihoods import LIKELIHOODS, Likelihood
from unweave.models.networks import NETWORKS, Network
from unweave.models.objectives import OBJECTIVES, Method, Objective
from unweave.models.optimisers import OPTIMISERS, Optimiser
from unweave.models.posteriors import POSTERIORS, Posterior

__all__ = [
    "LIKELIHOODS", "NETWORKS", "OBJECTIVES", "OPTIMISERS", "POSTERIORS",
    "Architecture", "Autoencoder", "Likelihood", "Method", "Model", "Network", "Objective", "Optimiser",
    "Posterior",
]  # fmt: skip
