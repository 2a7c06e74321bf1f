"""A study of tiny models that takes a second, and measures that misbehave."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised
from unweave.studies.measures.measure import Measure
from unweave.studies.study import Study

DENSE = uw.MLP((8,), (8,))
CONV = uw.Conv((2, 2), (2, 2), 4)


def tiny(seed: int = 0, **changes: Any) -> uw.Experiment:
    given: dict[str, Any] = {"network": DENSE, "latents": 2, "steps": 5, "batch_size": 8, "plan": uw.Plan("cpu", 1)}
    return uw.Experiment(Micro(), seed=seed, **(given | changes))


def tiny_study(n: int = 3, name: str = "tiny", **changes: Any) -> Study:
    return Study(name, tuple(tiny(seed, **changes) for seed in range(n)), (Polarised(32),))


@dataclass(frozen=True)
class Raises(Measure):
    """Fails for one seed."""

    name: ClassVar[str] = "raises"
    seed: int = 1

    def __call__(self, run: uw.Run) -> Mapping[str, Any]:
        if run.experiment.seed == self.seed:
            raise ValueError("no measure of this one")
        return {"value": 1}


@dataclass(frozen=True)
class Dies(Measure):
    """Takes its process with it, for one seed."""

    name: ClassVar[str] = "dies"
    seed: int = 1

    def __call__(self, run: uw.Run) -> Mapping[str, Any]:
        if run.experiment.seed == self.seed:
            os.kill(os.getpid(), 11)
        return {"value": 1}
