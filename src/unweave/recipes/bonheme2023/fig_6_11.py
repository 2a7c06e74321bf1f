"""b-fig-6.11: an active latent's correlations with passive ones wander, those with active ones stay small.

Bonheme (2023), Figure 6.11.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.correlations import measure_of, notes_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE, Measured, measured
from unweave.recipes.controls import types_dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "Correlations of an active latent over training"


def study(size: str) -> Study:
    """Five seeds of one β-VAE."""
    return study_of("b-fig-6.11", 8.0, False, size)


def judge(results: Results, size: str) -> Outcome:
    """An active latent's correlations with passive ones wander, those with active ones stay small."""
    rows = measured(results, measure_of(size))
    figures: dict[str, Any] = {}
    for row in rows[:1]:
        first = row.found["types"].index("active") if "active" in row.found["types"] else 0
        figures[f"Correlations of latent {first} over training, seed {row.seed}"] = line_bands(
            _course(row, first), "step", "correlation", even=False
        )
    return Outcome(tuple(_wandering(rows)), figures, notes=notes_of(size))


def _wandering(rows: Sequence[Measured]) -> Iterator[Comparison]:
    passive, active = (_pairs(rows, kind) for kind in ("passive", "active"))
    height = [{seed: one[0] for seed, one in group.items()} for group in (passive, active)]
    what = "mean |correlation| over training: of active with passive, less of active with active"
    yield compare_difference(what, height[0], height[1], 1)
    spread = [{seed: one[1] for seed, one in group.items()} for group in (passive, active)]
    what = "sd of the correlation over training: of active with passive, less of active with active"
    yield compare_difference(what, spread[0], spread[1], 1)


def _pairs(rows: Sequence[Measured], kind: str) -> dict[int, tuple[float, float]]:
    """Mean size and spread over snapshots of the correlations of active latents with those of a type, by seed."""
    found = {}
    for row in rows:
        types = row.found["types"]
        course = np.array(row.found["course"])
        chosen = [
            course[:, i, j]
            for i, one in enumerate(types)
            for j, other in enumerate(types)
            if one == "active" and other == kind and i != j
        ]
        if chosen:
            values = np.stack(chosen)
            found[row.seed] = (float(np.abs(values).mean()), float(values.std(1).mean()))
    return found


def _course(row: Measured, latent: int) -> dict[str, dict[float, list[float]]]:
    course = np.array(row.found["course"])
    return {
        f"{other} {kind}": {
            float(step): [float(value)] for step, value in zip(row.found["steps"], course[:, latent, other])
        }
        for other, kind in enumerate(row.found["types"])
        if other != latent
    }


CONTROLS = (types_dealt(judge),)

REPRODUCTION = Reproduction("b-fig-6.11", TITLE, f"{SOURCE}, Figure 6.11", study, judge, CONTROLS)
