"""b-fig-B: AnnealedVAE has about as many passive latents at any capacity, but more correlated ones at a larger one.

Bonheme (2023), Appendix B.
"""

from collections.abc import Iterator, Sequence

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.dependence import (
    MI,
    TC,
    Part,
    column,
    judge_of,
    keyed,
    n_passive,
    study_of,
)
from unweave.recipes.bonheme2023.panels import Panel
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

TITLE = "AnnealedVAE: passive latents at every capacity (Figures B.1 to B.5)"


def annealed(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Appendix B.1: about as many passive latents at any capacity, but more correlated ones at a larger one."""
    capacity, seeds = [row.strength for row in rows], [row.seed for row in rows]
    passive = n_passive(rows)
    said = "passive latents against the capacity (fewer are expected, the source finds none fewer)"
    yield compare_trend(said, capacity, passive, 0, seeds=seeds, tolerance=0.5)
    for score, name in ((TC, "TC"), (MI, "MI")):
        yield compare_trend(f"{name} of mean codes against the capacity", capacity, column(rows, "mean", score), 1)
    mine = [row for row in rows if row.found["n_passive"] > 0]
    everything, active = keyed(mine, "mean", TC), keyed(mine, "mean", TC, "active")
    yield compare_difference("TC of mean codes: all latents less active ones only", everything, active, 1)


PARTS = tuple(
    Part(Panel(world, "annealed_vae"), TC, annealed, ("all", "active"))
    for world in ("dsprites", "scream_dsprites", "cars3d")
)


def study(size: str) -> Study:
    """All strengths and seeds of every panel."""
    return study_of("b-fig-B", PARTS, size)


def judge(results: Results, size: str) -> Outcome:
    """Curves over the strength, numbers of types below them, and the claims of each panel."""
    return judge_of(PARTS, results, size)


REPRODUCTION = Reproduction("b-fig-B", TITLE, f"{SOURCE}, Appendix B", study, judge)
