"""b-fig-6.3: the peak of a mixed latent is smoothed out in sampled codes.

Bonheme (2023), §6.4.1, Figure 6.3.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.latent_types import BETA_VAE, judge_distributions, per_run, spread_measure
from unweave.recipes.bonheme2023.panels import n_samples, panel_study
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.controls import types_dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.code_shapes import CodeShapes
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "Sampled codes of passive, mixed and active latents"


def study(size: str) -> Study:
    """The β-VAEs, with the types of their latents and the shapes of their codes."""
    measures = ByType(n_samples(size)), CodeShapes(n_samples(size)), spread_measure(size)
    return panel_study("b-fig-6.3", BETA_VAE, measures, size)


def judge(results: Results, size: str) -> Outcome:
    """The peaks of each type, and the histograms of one model."""
    return judge_distributions(of_sampled, results, size, CodeShapes(n_samples(size)))


def of_sampled(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """What the text says of mixed latents: a sharp peak around zero, which sampling smooths out.

    That passive latents have unit variance and active ones hardly any noise is how the types are defined.
    """
    mean = per_run(rows, "kurtosis_of_mean", "mixed")
    what = "excess kurtosis of mixed latents: mean less sampled codes"
    yield compare_difference(what, mean, per_run(rows, "kurtosis_of_sampled", "mixed"), 1)
    active = per_run(rows, "kurtosis_of_mean", "active")
    what = "excess kurtosis of mean codes: mixed less active latents"
    yield compare_difference(what, list(mean.values()), list(active.values()), 1)


CONTROLS = (types_dealt(judge),)

REPRODUCTION = Reproduction("b-fig-6.3", TITLE, f"{SOURCE}, Figure 6.3", study, judge, CONTROLS)
