"""The row that states what a metric needs, what its numbers mean, and where it comes from.

It stands in the metric's own file, under the name ``ROW``. `make docs` makes its page in ``docs/metrics`` of the row
and the docstring of the file, which is Markdown: a line that names the metric, the formula between fences, then
**Protocol.**, **Rewards.**, **Misses.**, and "## Known defects, and what is done about them".
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

NEEDS = ("codes", "factors", "variance", "sampled", "kl", "split", "pairs", "models", "seed")
"""What a metric may ask for; see :class:`Metric`."""

Kind = Literal["supervised", "unsupervised", "downstream"]
Direction = Literal["more", "less", "neither"]

Invariance = Literal[
    "sample order",
    "latent order",
    "factor order",
    "latent sign",
    "latent scale",
    "latent shift",
    "global scale",
    "rotation",
    "factor relabelling",
    "model order",
]
_Same = tuple[Invariance, ...]

ORDER: _Same = ("sample order", "latent order", "factor order")
AFFINE: _Same = ("latent sign", "latent scale", "latent shift")
COUNTED: _Same = (*ORDER, *AFFINE, "factor relabelling")
"""Of what is counted in bins over the range of each latent."""
FITTED: _Same = ("latent order", "factor order", *AFFINE)
"""Of what is fitted to the first rows and tested on the others."""
DRAWN: _Same = ("latent order", "latent sign", "latent shift")
"""Of what draws batches at random."""
DISTANCES: _Same = ("sample order", "latent order", "latent sign", "latent shift", "rotation", "global scale")
"""Of what compares distances between samples."""

CURVE = {"curve": True}
"""Metadata of a result's field that may have an entry a sample, in order: files keep evenly spaced ones."""


@dataclass(frozen=True)
class Metric:
    """One row of ``METRICS``: a pure function of arrays, and the facts that reports, grids and tests read.

    ``needs`` holds space-separated words, in the order of the function's first arguments:

    - ``codes`` the representation, sample × latent (mean, sampled, or anyone's);
    - ``factors`` the truth, sample × factor;
    - ``variance`` posterior variances, ``sampled`` draws from the posterior, both sample × latent;
    - ``kl`` the KL divergence of each latent (models × latent where the metric compares models);
    - ``split`` a second table ``test_codes, test_factors`` beside the one to fit on; without it the keyword ``seed``
      says how the only table is shuffled and divided;
    - ``pairs`` batches in which one factor is held fixed, drawn from the same table or handed in;
    - ``models`` a set of representations of the same samples, model × sample × latent;
    - ``seed`` a keyword argument: the metric draws at random.

    ``scores`` names the attributes of the result that are headline numbers, the first being the one to rank by;
    ``range`` and ``better`` hold for all of them. ``at_chance`` says what a constant or random code gets.
    """

    function: Callable[..., Any]
    name: str
    title: str
    tells: str
    """The question that it answers, in one line."""
    kind: Kind
    needs: str
    range: tuple[float, float]
    better: Direction
    """Neither for what describes a code and does not judge it."""
    invariant_to: tuple[Invariance, ...]
    at_chance: str
    paper: str
    example: str
    """A call with codes, factors, variance or models at hand, and something of its result that the score hides."""
    scores: tuple[str, ...] = ("score",)
    label: str = ""
    """What narrow tables call it; its name in words unless it is told."""
    ordered: bool = False
    """Whether factors must be numbers: words have no order."""
    counted: bool = False
    """Whether it starts from counts, and takes a ready Information in place of codes and factors."""
    nearest: bool = False
    """Whether it starts from distances to nearest neighbours, and takes a ready Nearest in place of codes."""
    batched: bool = False
    """Whether ``codes`` may carry a leading model axis; the scores then carry it too."""
    compact: bool = False
    """Whether a factor written twice into the code is meant to cost something."""
    on_cpu: str = ""
    """What it fits on the CPU, wherever the arrays live; everything else runs where they do."""
    most_rows: int | None = None
    """Rows that it uses at most, drawn at random from a longer table."""

    def __post_init__(self) -> None:
        unknown = set(self.needs.split()) - set(NEEDS)
        if unknown:
            raise ValueError(f"metric {self.name} needs {', '.join(sorted(unknown))}; known words: {', '.join(NEEDS)}")

    @property
    def higher_is_better(self) -> bool | None:
        """None where neither is."""
        return None if self.better == "neither" else self.better == "more"

    @property
    def labels(self) -> dict[str, str]:
        """What narrow tables call its numbers, by their full names: ``DCI-D`` for ``dci.disentanglement``."""
        label = self.label or self.name.replace("_", " ")
        if self.scores[0] == "score":
            return {self.name: label} | {f"{self.name}.{part}": f"{label}, {part}" for part in self.scores[1:]}
        return {f"{self.name}.{part}": f"{label}-{part[0].upper()}" for part in self.scores}

    @property
    def options(self) -> list[str]:
        """The keyword arguments of the function."""
        parameters = inspect.signature(self.function).parameters.values()
        return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]


def row_of(function: Callable[..., Any]) -> Metric:
    """The row in the file of a metric."""
    row: Metric = sys.modules[function.__module__].ROW
    return row
