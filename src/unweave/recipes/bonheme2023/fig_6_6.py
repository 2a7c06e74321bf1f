"""b-fig-6.6: passive latents part the TC and MI of mean codes from those of sampled ones, and lower their rank.

Bonheme (2023), Figure 6.6.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.dependence import (
    LITTLE,
    MI,
    RANK,
    TC,
    Part,
    column,
    gap_of,
    judge_of,
    keyed,
    n_passive,
    study_of,
)
from unweave.recipes.bonheme2023.panels import Panel
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.controls import swapped
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

TITLE = "TC, MI and effective rank against the number of passive latents"


def correlation_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6a: passive latents leave the TC of samples as it is, and drive that of means away from it."""
    passive = n_passive(rows)
    sampled, gap = column(rows, "sampled", TC), gap_of(rows, TC)
    yield compare_trend(
        "TC of sampled codes against the number of passive latents", passive, sampled, 0, tolerance=LITTLE
    )
    yield compare_trend("TC of mean less sampled codes against the number of passive latents", passive, gap, 1)


def information_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6b: averaged MI falls in samples (Theorem 6.4.2) and parts from that of means."""
    passive = n_passive(rows)
    sampled, gap = column(rows, "sampled", MI), gap_of(rows, MI)
    yield compare_trend("MI of sampled codes against the number of passive latents", passive, sampled, -1)
    yield compare_trend("MI of mean less sampled codes against the number of passive latents", passive, gap, 1)


def rank_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6c: the effective rank is the number of latents, for means less the passive ones."""
    mean, sampled = keyed(rows, "mean", RANK), keyed(rows, "sampled", RANK)
    size = {key: float(len(row.found["types"])) for key, row in zip(mean, rows)}
    used = {key: size[key] - row.found["n_passive"] for key, row in zip(mean, rows)}
    yield compare_difference("rank of mean codes less the latents that are not passive", mean, used, 0, tolerance=1.0)
    yield compare_difference("rank of sampled codes less the number of latents", sampled, size, 0, tolerance=1.0)


PARTS = (
    Part(Panel("smallnorb", "beta_tcvae"), TC, correlation_and_passive),
    Part(Panel("cars3d", "dip_vae_ii"), MI, information_and_passive),
    Part(Panel("color_dsprites", "beta_tcvae"), RANK, rank_and_passive),
)


def study(size: str) -> Study:
    """All strengths and seeds of every panel."""
    return study_of("b-fig-6.6", PARTS, size)


def judge(results: Results, size: str) -> Outcome:
    """Curves over the strength, numbers of types below them, and the claims of each panel."""
    return judge_of(PARTS, results, size)


CONTROLS = (swapped(judge),)

REPRODUCTION = Reproduction("b-fig-6.6", TITLE, f"{SOURCE}, Figure 6.6", study, judge, CONTROLS)
