"""The micro-world's own search for its dimension: a small model under which the published threshold is clear."""

from unweave.data.micro import Micro
from unweave.models.networks.mlp import MLP
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.recipes.dimension_search import DimensionSearch
from unweave.training.experiment import Experiment, Plan

STEPS = 1000


def experiment(seed: int = 0) -> Experiment:
    """The model whose latents are counted; the search sets their number and the steps.

    A trace difference of 1 rejects the first passive latent only because active ones have a little variance too
    (docs/dimension.md). So β is chosen large enough that they have enough of it, and small enough that the disc's size,
    which matters least to the pixels, is learned by every seed. Fully connected layers learn this world in a tenth of
    the time of the demo's convolutions.
    """
    return Experiment(
        world=Micro(),
        objective=BetaVAE(12.0),
        network=MLP((128, 128), (128, 128), "relu", "relu"),
        optimiser=Adam(2e-3),
        steps=STEPS,
        warmup=100,
        init="pytorch",
        seed=seed,
        history_every=100,
        plan=Plan("cpu", 1),
    )


def search(start: float | None = None) -> DimensionSearch:
    """FONDUE as published, with so few steps that a search takes seconds."""
    return DimensionSearch(start=start, steps=STEPS)
