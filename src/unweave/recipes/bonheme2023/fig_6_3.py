"""b-fig-6.3: passive latents have unit variance in sampled codes.

Bonheme (2023), §6.4.1, Figure 6.3.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.latent_types import BETA_VAE, judge_distributions, per_run, types_study
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean

TITLE = "Sampled codes of passive, mixed and active latents"


def study(size: str) -> Study:
    """The β-VAEs, with the types of their latents."""
    return types_study("b-fig-6.3", BETA_VAE, size)


def judge(results: Results, size: str) -> Outcome:
    """The variances of each type, and the histograms of one model."""
    return judge_distributions(of_sampled, results, size)


def of_sampled(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """What the text says of the variances."""
    passive = per_run(rows, "variance_of_sampled", "passive")
    yield compare_mean("variance of passive latents in sampled codes", passive, 1.0, tolerance=0.1)
    what = "variance of active latents, sampled over mean codes"
    yield compare_mean(what, _ratios(rows, "active"), 1.0, tolerance=0.1)
    what = "added variance of mixed less that of active latents"
    mixed, active = (list(_added(rows, kind).values()) for kind in ("mixed", "active"))
    yield compare_difference(what, mixed, active, 1)


def _ratios(rows: Sequence[Measured], kind: str) -> dict[int, float]:
    sampled, mean = per_run(rows, "variance_of_sampled", kind), per_run(rows, "variance_of_mean", kind)
    return {seed: sampled[seed] / mean[seed] for seed in sampled}


def _added(rows: Sequence[Measured], kind: str) -> dict[int, float]:
    sampled, mean = per_run(rows, "variance_of_sampled", kind), per_run(rows, "variance_of_mean", kind)
    return {seed: sampled[seed] - mean[seed] for seed in sampled}


REPRODUCTION = Reproduction("b-fig-6.3", TITLE, f"{SOURCE}, Figure 6.3", study, judge)
