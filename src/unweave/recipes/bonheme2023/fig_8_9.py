"""b-fig-8.9: dimensions of mean and sampled codes part once there are latents to spare.

Bonheme (2023), §8.8.1, Figure 8.9.
"""

from typing import Any

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.intrinsic_dimensions import (
    by_world,
    codes_measure,
    codes_study,
    curve_notes,
    over_latents,
)
from unweave.recipes.bonheme2023.results import SOURCE, measured, notes
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend

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
        gap = [row.found["sampled"] - row.found["mean"] for row in rows]
        unused = [float(row.found["n_passive"] + row.found["n_mixed"]) for row in rows]
        latents, seeds = [row.experiment.latents for row in rows], [row.seed for row in rows]
        comparisons += [
            compare_trend(f"{name}: sampled less mean dimension against latents", latents, gap, 1, seeds=seeds),
            compare_trend(f"{name}: sampled less mean dimension against unused latents", unused, gap, 1, seeds=seeds),
        ]
    return Outcome(tuple(comparisons), figures, notes=notes(size, curve_notes(size)))


REPRODUCTION = Reproduction("b-fig-8.9", TITLE, f"{SOURCE}, Figure 8.9", study, judge)
