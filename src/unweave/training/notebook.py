"""Training in one call, for notebooks: what ``uw.train`` does."""

from pathlib import Path
from typing import Any

from unweave.data import World
from unweave.training.experiment import experiment_from
from unweave.training.loop import Manner
from unweave.training.loop import train as train_experiment
from unweave.training.progress import progress
from unweave.training.run import Run


def train(
    world: str | World | dict[str, Any], folder: str | Path | None = None, *, quiet: bool = False, **settings: Any
) -> Run:
    """Train one model and return its run. The same call again resumes it, or returns at once.

    Settings are the fields of :class:`Experiment`, as objects (``objective=uw.BetaVAE(6)``), as names
    (``network="mlp"``) or as in ``config.json``.
    """
    experiment = experiment_from({"world": world} | settings)
    if quiet:
        return Run(train_experiment(experiment, folder))
    with progress(f"{experiment.objective.name} on {experiment.world.name}") as watch:
        return Run(train_experiment(experiment, folder, how=Manner((watch,))))
