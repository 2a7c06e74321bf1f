"""A study: which models to train, what to measure of each, and which models follow from what was measured."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unweave.data.world import World, called
from unweave.studies.measures.measure import Measure
from unweave.training.experiment import Experiment

if TYPE_CHECKING:
    from unweave.studies.results import Results

SIZES = ("smoke", "small", "paper")
"""Minutes on two cores; under half an hour on one GPU; as published."""

FollowUp = Callable[["Results"], Sequence[Experiment]]
"""From all that is finished to the experiments that should come next; none ends the study. A pure function of the
results, so that a study that was interrupted asks for the same models again."""


@dataclass(frozen=True)
class Study:
    """A grid of experiments and the measures taken of every run. Variants are made with ``dataclasses.replace``."""

    name: str
    experiments: tuple[Experiment, ...]
    measures: tuple[Measure, ...] = ()
    title: str = ""
    follow_up: FollowUp | None = None
    opened: Callable[["Results"], Sequence[str]] | None = None
    """Ids of the runs that whoever judges the results opens: their weights travel with what was found."""
    between: Callable[[Sequence[Experiment]], Sequence[tuple[Experiment, Measure]]] | None = None
    """Measures of several runs at once (``Measure.others``), each with the run that keeps it."""

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {words}" for name, words in self._told().items())
        return f"Study {self.name!r}, {told}"

    def _repr_html_(self) -> str:
        """What it will train and measure, for notebooks."""
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(words)}</td></tr>" for name, words in self._told().items())
        return f"<p><b>{html.escape(self.title or self.name)}</b></p><table>{rows}</table>"

    def _told(self) -> dict[str, str]:
        worlds = dict.fromkeys(_world_of(one) for one in self.experiments)
        methods = dict.fromkeys(str(one.objective) for one in self.experiments)
        return {
            "models": f"{len(self.experiments):,}",
            "worlds": ", ".join(worlds),
            "methods": ", ".join([*methods][:12]) + ", …" * (len(methods) > 12),
            "measures": ", ".join(measure.file.removesuffix(".json") for measure in self.measures) or "none",
        }


def _world_of(experiment: Experiment) -> str:
    """Its name, also where it is not resolved and says its world by name, as in ``Experiment("micro")``."""
    world: object = experiment.world
    return called(world) if isinstance(world, World) else str(world)
