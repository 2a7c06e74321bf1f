"""The row that states what a metric needs, what its numbers mean, and where it comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

NEEDS = ("codes", "factors", "variance", "sampled", "kl", "split", "pairs", "models", "seed")
"""What a metric may ask for; see :class:`Metric`."""

Kind = Literal["supervised", "unsupervised", "downstream"]

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


@dataclass(frozen=True)
class Metric:
    """One row of ``METRICS``: a pure function of arrays, and the facts that reports, grids and tests read.

    ``needs`` holds space-separated words, in the order of the function's first arguments:

    - ``codes`` the representation, sample × latent (mean, sampled, or anyone's);
    - ``factors`` the truth, sample × factor;
    - ``variance`` posterior variances, ``sampled`` draws from the posterior, both sample × latent;
    - ``kl`` the KL divergence of each latent (models × latent where the metric compares models);
    - ``split`` a second table ``test_codes, test_factors`` beside the one to fit on;
    - ``pairs`` batches in which one factor is held fixed, drawn from the same table or handed in;
    - ``models`` a set of representations of the same samples, model × sample × latent;
    - ``seed`` a keyword argument: the metric draws at random.

    ``scores`` names the attributes of the result that are headline numbers, the first being the one to rank by;
    ``range`` and ``higher_is_better`` hold for all of them. ``at_chance`` says what a constant or random code gets.
    """

    function: Callable[..., Any]
    name: str
    needs: str
    range: tuple[float, float]
    higher_is_better: bool
    invariant_to: tuple[Invariance, ...]
    at_chance: str
    paper: str
    kind: Kind
    scores: tuple[str, ...] = ("score",)
    batched: bool = False
    """Whether ``codes`` may carry a leading model axis; the scores then carry it too."""
    compact: bool = False
    """Whether a factor written twice into the code is meant to cost something."""
    on_cpu: str = ""
    """What it fits on the CPU, wherever the arrays live; everything else runs where they do."""

    def __post_init__(self) -> None:
        unknown = set(self.needs.split()) - set(NEEDS)
        if unknown:
            raise ValueError(f"metric {self.name} needs {', '.join(sorted(unknown))}; known words: {', '.join(NEEDS)}")
