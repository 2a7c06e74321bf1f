"""The demonstration: a small model with more latents than the world has factors, which switches the spare ones off."""

from unweave.data.micro import Micro
from unweave.models.networks.conv import Conv
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.train.experiment import Experiment


def experiment(seed: int = 0) -> Experiment:
    """The demo's model. On every seed from 0 to 9 it uses as many latents as there are factors."""
    return Experiment(
        world=Micro(),
        objective=BetaVAE(10.0),
        network=Conv((16, 32, 32), (4, 4, 4), 128),
        optimiser=Adam(1e-3),
        latents=6,
        steps=2600,
        seed=seed,
        history_every=20,
    )
