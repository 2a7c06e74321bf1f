"""A reproduction: a study at three sizes, and the judgement that sets its results beside the published ones."""

from collections.abc import Callable
from dataclasses import dataclass

from unweave.pages.outcome import Outcome
from unweave.studies.results import Results
from unweave.studies.study import Study


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
