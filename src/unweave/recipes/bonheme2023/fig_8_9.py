"""b-fig-8.9: dimensions of mean and sampled codes part once there are latents to spare.

Bonheme (2023), §8.8.1, Figure 8.9.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.intrinsic_dimensions import (
    by_world,
    codes_measure,
    codes_study,
    curve_notes,
    over_latents,
)
from unweave.recipes.bonheme2023.results import SOURCE, Measured, measured, notes
from unweave.recipes.controls import before_training, changed
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "Intrinsic dimension of mean and sampled codes"


def study(size: str) -> Study:
    """VAEs with more and more latents: the models of the elbow curves."""
    return codes_study("b-fig-8.9", size)


def judge(results: Results, size: str) -> Outcome:
    """Dimensions of mean and sampled codes part where latents turn passive."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in by_world(measured(results, codes_measure(size))):
        lines = {f"{kind} codes": over_latents(rows, kind) for kind in ("mean", "sampled")}
        figures[name] = line_bands(lines, "latents", "intrinsic dimension", name, even=False)
        comparisons.append(_parting(name, rows))
    return Outcome(tuple(comparisons), figures, notes=notes(size, curve_notes(size)))


def _parting(name: str, rows: Sequence[Measured]) -> Comparison:
    """The dimensions remain alike while all latents are active, and part where some are not.

    That they part with the number of latents is found in untrained networks too, whose latents are all passive.
    """
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        spare = row.found["n_passive"] + row.found["n_mixed"] > 0
        gaps[spare].append(row.found["sampled"] - row.found["mean"])
    what = f"{name}: sampled less mean dimension, of models with unused latents beside those without"
    return compare_difference(what, gaps[True], gaps[False], 1)


def _any_use(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
    return {**found, "n_passive": int(generator.integers(2)), "n_mixed": 0}


CONTROLS = (
    before_training(judge),
    changed(judge, "shuffled", "numbers of unused latents drawn at random.", _any_use),
)

REPRODUCTION = Reproduction("b-fig-8.9", TITLE, f"{SOURCE}, Figure 8.9", study, judge, CONTROLS)
