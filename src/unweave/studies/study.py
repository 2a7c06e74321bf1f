"""A study: which models to train, what to measure of each, and which models follow from what was measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
