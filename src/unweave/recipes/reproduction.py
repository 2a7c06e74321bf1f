"""A reproduction: a study at three sizes, the judge that sets it beside the published, and what must not pass."""

from collections.abc import Callable
from dataclasses import dataclass

from unweave.pages.outcome import Outcome
from unweave.studies.results import Results
from unweave.studies.study import Study

Judge = Callable[[Results, str], Outcome]
"""From the results and the size to the page's contents."""


@dataclass(frozen=True)
class Control:
    """Something that must not pass the judge: where it agrees, a claim that agrees too is no evidence."""

    name: str
    """A word or two: untrained, shuffled, always 1."""
    sentence: str
    """What was judged in place of the results."""
    judge: Callable[[Results, str, int], Outcome]
    """From the results, the size and the number of the draw to what the judge says of the control."""
    draws: int = 1
    """How often chance is asked; a control passes where more than half of its draws agree."""
    about: str = ""
    """A regular expression of the claims it is for; all of them where it is empty."""


@dataclass(frozen=True)
class Reproduction:
    """One row of the list of what to reproduce."""

    id: str
    title: str
    source: str
    """Author, year, table or figure."""
    study: Callable[[str], Study]
    """From a size (smoke, small or paper) to the study; one without experiments needs no training at all."""
    judge: Judge
    controls: tuple[Control, ...] = ()
    """At least one for every claim: a test walks the list."""
