"""b-fig-B: AnnealedVAE has about as many passive latents at any capacity, but more correlated ones at a larger one.

Bonheme (2023), Appendix B.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.dependence import (
    LITTLE,
    MI,
    TC,
    Part,
    any_subset,
    column,
    gap_of,
    judge_of,
    keys,
    n_passive,
    study_of,
)
from unweave.recipes.bonheme2023.panels import Panel
from unweave.recipes.bonheme2023.results import SOURCE, Measured
from unweave.recipes.controls import Invented, altered, dealt
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.strength import strength_of
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend
from unweave.training.experiment import Experiment

TITLE = "AnnealedVAE: passive latents at every capacity (Figures B.1 to B.5)"


def annealed(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Appendix B.1: about as many passive latents at any capacity, but more correlated ones at a larger one."""
    capacity, seeds = [row.strength for row in rows], [row.seed for row in rows]
    passive = n_passive(rows)
    said = "passive latents against the capacity (fewer are expected, the source finds none fewer)"
    yield compare_trend(said, capacity, passive, 0, seeds=seeds, tolerance=LITTLE)
    for score, name in ((TC, "TC"), (MI, "MI")):
        yield compare_trend(f"{name} of mean codes against the capacity", capacity, column(rows, "mean", score), 1)
    mine = [row for row in rows if row.found["n_passive"] > 0 and row.found["n_active"] > 1]
    everything, active = (dict(zip(keys(mine), gap_of(mine, TC, subset))) for subset in ("all", "active"))
    # the TC of more latents is never less; what they add to means beyond samples may be
    yield compare_difference("TC of mean less sampled codes: all latents, less active ones only", everything, active, 1)


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


def _planted(results: Results, generator: np.random.Generator) -> Results:
    """Numbers of passive latents that fall with the capacity."""

    def found(experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
        given = results.found(experiment, measure)
        return given and {**given, "n_passive": 100.0 - strength_of(experiment.objective)}

    return Invented.of(results, found)


CONTROLS = (
    dealt(judge, "what was measured of a model given to another one, whatever its capacity.", about="of mean codes"),
    any_subset(judge, about="less active"),
    altered(
        judge,
        "planted",
        "numbers of passive latents that fall as the capacity rises.",
        _planted,
        draws=1,
        about="passive latents against",
    ),
)

REPRODUCTION = Reproduction("b-fig-B", TITLE, f"{SOURCE}, Appendix B", study, judge, CONTROLS)
