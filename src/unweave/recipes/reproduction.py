"""A reproduction: a study at three sizes, and the judgement that sets its results beside the published ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Outcome:
    """Everything that stands on the page of a reproduction."""

    comparisons: tuple[Comparison, ...]
    figures: Mapping[str, "matplotlib.figure.Figure"] = field(default_factory=dict)
    """By title, made by functions of :mod:`unweave.plots`."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Further tables by title, one mapping a row."""
    notes: tuple[str, ...] = ()
    """What this size can and cannot tell, and what differs from the published protocol."""


@dataclass(frozen=True)
class Reproduction:
    """One row of the list of what to reproduce."""

    id: str
    title: str
    source: str
    """Author, year, table or figure."""
    study: Callable[[str], Study]
    """From a size (smoke, small or paper) to the study; one without experiments needs no training at all."""
    judge: Callable[[Results, str], Outcome]
    """From the results and the size to the page's contents."""
