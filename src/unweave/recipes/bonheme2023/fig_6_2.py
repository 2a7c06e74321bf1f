"""b-fig-6.2: passive latents hardly vary in mean codes.

Bonheme (2023), §6.4.1, Figure 6.2.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.latent_types import BETA_VAE, judge_distributions, per_run, spread_measure
from unweave.recipes.bonheme2023.panels import n_samples, panel_study
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.controls import before_training, types_dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean

TITLE = "Mean codes of passive, mixed and active latents"


def study(size: str) -> Study:
    """The β-VAEs, with the types of their latents."""
    return panel_study("b-fig-6.2", BETA_VAE, (ByType(n_samples(size)), spread_measure(size)), size)


def judge(results: Results, size: str) -> Outcome:
    """The variances of each type, and the histograms of one model."""
    return judge_distributions(of_mean, results, size)


def of_mean(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """What the text says of the variances."""
    passive = per_run(rows, "variance_of_mean", "passive")
    yield compare_mean("variance of passive latents in mean codes", passive, 0.0, tolerance=0.1)
    active = per_run(rows, "variance_of_mean", "active")
    what = "variance of active less that of passive latents, mean codes"
    yield compare_difference(what, list(active.values()), list(passive.values()), 1)
    mixed = per_run(rows, "variance_of_mean", "mixed")
    what = "variance of mixed less that of passive latents, mean codes"
    yield compare_difference(what, list(mixed.values()), list(passive.values()), 1)


CONTROLS = (types_dealt(judge), before_training(judge))

REPRODUCTION = Reproduction("b-fig-6.2", TITLE, f"{SOURCE}, Figure 6.2", study, judge, CONTROLS)
