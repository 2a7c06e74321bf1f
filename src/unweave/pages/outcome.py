"""What a study has come to: everything that stands on the page of a reproduction, or of any study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unweave.studies.verdicts import Comparison

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Outcome:
    """Numbers beside published ones, figures, tables and notes, in the order of the page."""

    comparisons: tuple[Comparison, ...]
    figures: Mapping[str, "matplotlib.figure.Figure"] = field(default_factory=dict)
    """By title, made by functions of :mod:`unweave.plots`."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Further tables by title, one mapping a row."""
    notes: tuple[str, ...] = ()
    """What this size can and cannot tell, and what differs from the published protocol."""
