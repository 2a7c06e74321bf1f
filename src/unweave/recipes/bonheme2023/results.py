"""Reading results of the reproductions of Bonheme (2023): by what was measured, whatever machine trained the runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unweave.papers import SHORT
from unweave.recipes.strength import strength_of
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.training.experiment import Experiment
from unweave.training.run import Run

SOURCE = SHORT["bonheme2023polarised"]

STAND_IN = "At this size a small synthetic world stands in for the published one: its numbers are not comparable, its"
FIRST_NOTES = {
    "smoke": (
        f"{STAND_IN} directions and equalities are. Models are small and train for minutes, so a claim that needs a"
        " long training may fail here and hold at paper size.",
    ),
    "small": (
        "At this size models are those of the source on worlds that can be had anywhere (dSprites is re-rendered unless"
        " the published file is on this machine), with fewer seeds or steps: a verdict is about this shorter protocol.",
    ),
    "paper": ("The published protocol, as far as it is printed; what differs is said below.",),
}


def notes(size: str, *more: str) -> tuple[str, ...]:
    """What the size can tell, then what is particular."""
    return (*FIRST_NOTES[size], *more)


@dataclass(frozen=True)
class Measured:
    """A finished run's experiment with what one measure says of it."""

    experiment: Experiment
    found: Mapping[str, Any]

    @property
    def strength(self) -> float:
        """The number that the published figures have on their x-axis: β, λ_od or the capacity."""
        return strength_of(self.experiment.objective)

    @property
    def seed(self) -> int:
        return self.experiment.seed


def measured(results: Results, measure: Measure) -> list[Measured]:
    """What a measure says of every run that has it, in the order of the study."""
    asked = ((experiment, results.found(experiment, measure)) for experiment in results.experiments)
    return [Measured(experiment, found) for experiment, found in asked if found is not None]


def chosen(rows: Sequence[Measured], *, world: str = "", objective: str = "") -> list[Measured]:
    """The rows of one world and one objective, by name."""
    return [
        row
        for row in rows
        if (not world or row.experiment.world.name == world)
        and (not objective or row.experiment.objective.name == objective)
    ]


def finished(results: Results, experiments: Sequence[Experiment]) -> list[Run]:
    """The runs of these experiments that are done, on the device that is here, in the given order."""
    import torch

    known = {identity(one): one for one in results.experiments}
    runs = []
    for experiment in experiments:
        found = known.get(identity_of_asked(experiment))
        if found is not None and results.store.folder(found.id).has("model.safetensors"):
            device = "cuda" if torch.cuda.is_available() else "cpu"
            runs.append(Run(results.store.folder(found.id).path, device))
    return runs
