"""Published beside ours: each comparison has a stated statistical rule, and says when it cannot tell."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["agrees", "differs", "cannot tell"]


@dataclass(frozen=True)
class Comparison:
    """One published claim beside what we found."""

    what: str
    published: float | str
    ours: float | None
    interval: tuple[float, float] | None
    """95 % over seeds."""
    n: int
    """Seeds, or whatever the spread is over."""
    rule: str
    """The rule in one sentence, so that anyone can apply it again."""
    verdict: Verdict
    note: str = ""
