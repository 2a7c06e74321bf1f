"""b-fig-5.2: an active latent is precise, and its prior as wide as its means.

Bonheme (2023), §5.3, Figure 5.2.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.identifiable import (
    chapter_notes,
    controls_of,
    figures_of,
    has_both,
    prior_study,
    rows_of,
)
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_mean

TITLE = "Active latents of an iVAE with prior mean 0"


def study(size: str) -> Study:
    """iVAEs with prior mean 0, and their priors."""
    return prior_study("b-fig-5.2", ("zero",), size)


def judge(results: Results, size: str) -> Outcome:
    """What the text says of the active latents, and the histograms of one of them."""
    rows = rows_of(results, size, "zero")
    figures = figures_of(rows, results, size, "active")
    return Outcome(tuple(claims(rows)), figures, notes=chapter_notes(size))


def claims(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """The sentences of §5.3.1."""
    yield has_both(rows, "prior mean 0")
    # Proposition 5.2.1: Σ† = Σ + μ²
    ratios = {row.seed: _ratio(row) for row in rows if "active" in row.found["types"]}
    yield compare_mean(
        "log of prior variance over E[μ²] + posterior variance, active latents", ratios, 0.0, tolerance=0.1
    )


def _ratio(row: Measured) -> float:
    """Over the active latents of a model, the mean of log Σ† − log(Σ + μ²)."""
    columns = (row.found[name] for name in ("types", "prior_variance", "mean_variance", "squared_mean"))
    widths = [(prior, spread + square) for kind, prior, spread, square in zip(*columns) if kind == "active"]
    # a width that is no positive number says nothing
    return fmean(math.log(prior / both) if min(prior, both) > 0 else math.nan for prior, both in widths)


REPRODUCTION = Reproduction("b-fig-5.2", TITLE, f"{SOURCE}, Figure 5.2", study, judge, controls_of(judge))
