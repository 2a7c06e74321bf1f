"""b-fig-5.4: an active latent departs from a learned prior mean.

Bonheme (2023), §5.3, Figure 5.4.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.identifiable import (
    chapter_notes,
    controls_of,
    figures_of,
    has_both,
    prior_study,
    rows_of,
    smaller_when_passive,
)
from unweave.recipes.bonheme2023.latent_types import per_run
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "Active latents of an iVAE with a learned prior mean"


def study(size: str) -> Study:
    """iVAEs of both kinds, and their priors."""
    return prior_study("b-fig-5.4", ("learned", "zero"), size)


def judge(results: Results, size: str) -> Outcome:
    """What the text says of the active latents, and the histograms of one of them."""
    rows = rows_of(results, size, "learned")
    figures = figures_of(rows, results, size, "active")
    return Outcome(tuple(claims(rows, rows_of(results, size, "zero"))), figures, notes=chapter_notes(size))


def claims(rows: Sequence[Measured], fixed: Sequence[Measured]) -> Iterator[Comparison]:
    """The sentences of §5.3.2."""
    yield has_both(rows, "learned prior mean")
    yield smaller_when_passive(rows, "variance_of_mean", "variance of the means")
    learned, zero = (per_run(one, "prior_variance", "active") for one in (rows, fixed))
    yield compare_difference("prior variance of active latents, learned less fixed mean", learned, zero, -1)


REPRODUCTION = Reproduction("b-fig-5.4", TITLE, f"{SOURCE}, Figure 5.4", study, judge, controls_of(judge))
