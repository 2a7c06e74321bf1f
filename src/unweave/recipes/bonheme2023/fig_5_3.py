"""b-fig-5.3: a passive latent keeps a learned prior mean too.

Bonheme (2023), §5.3, Figure 5.3.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.identifiable import (
    chapter_notes,
    controls_of,
    figures_of,
    has_both,
    near_zero,
    prior_study,
    rows_of,
    smaller_when_passive,
)
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison

TITLE = "Passive latents of an iVAE with a learned prior mean"


def study(size: str) -> Study:
    """iVAEs with a learned prior mean, and their priors."""
    return prior_study("b-fig-5.3", ("learned",), size)


def judge(results: Results, size: str) -> Outcome:
    """What the text says of the passive latents, and the histograms of one of them."""
    rows = rows_of(results, size, "learned")
    figures = figures_of(rows, results, size, "passive")
    return Outcome(tuple(claims(rows)), figures, notes=chapter_notes(size))


def claims(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """The sentences of §5.3.2."""
    yield has_both(rows, "learned prior mean")
    yield smaller_when_passive(rows, "squared_shift", "E[(μ − μ†)²]")
    yield near_zero(rows, "squared_mean", "passive", "E[μ²]")
    yield near_zero(rows, "prior_variance", "passive", "prior variance")


REPRODUCTION = Reproduction("b-fig-5.3", TITLE, f"{SOURCE}, Figure 5.3", study, judge, controls_of(judge))
