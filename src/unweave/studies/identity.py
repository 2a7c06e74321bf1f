"""What a run is an example of, whatever machine trained it."""

from dataclasses import replace
from functools import lru_cache

from unweave.config import fingerprint
from unweave.training.experiment import Experiment, Plan, experiment_from


@lru_cache(maxsize=100_000)
def identity(experiment: Experiment) -> str:
    """A resolved experiment without its plan: device and threads change bits, not what a run is an example of."""
    # as resolve does: BetaVAE(6) and BetaVAE(6.0) are one
    return fingerprint(experiment_from(replace(experiment, plan=Plan())))


@lru_cache(maxsize=100_000)
def identity_of_asked(experiment: Experiment) -> str:
    """The same of an experiment that is not resolved."""
    return identity(replace(experiment, world=experiment.world.resolve()))
