"""The demonstration: a small model with more latents than the world has factors, which switches the spare ones off."""

from unweave.data.micro import Micro
from unweave.models.networks.conv import Conv
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.training.experiment import Experiment, Plan


def experiment(seed: int = 0) -> Experiment:
    """The demo's model. On every seed from 0 to 9 it uses as many latents as there are factors.

    Each choice has a reason (benchmarks/demo_seeds.py): a learning rate of 1e-3 or a longer warm-up leaves some seeds
    with a fourth latent in use, no warm-up lets some collapse at the start, and β below 7 prunes too slowly. One
    thread, because on a busy machine two are slower than one.
    """
    return Experiment(
        world=Micro(),
        objective=BetaVAE(8.0),
        network=Conv((16, 32, 32), (4, 4, 4), 128),
        optimiser=Adam(2e-3),
        latents=6,
        steps=1800,
        warmup=100,
        init="pytorch",
        seed=seed,
        history_every=20,
        plan=Plan("cpu", 1),
    )
