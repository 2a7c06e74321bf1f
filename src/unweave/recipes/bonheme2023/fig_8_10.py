"""b-fig-8.10: beyond the number that is needed, further latents are mixed or passive.

Bonheme (2023), §8.8.1, Figure 8.10.
"""

from statistics import fmean
from typing import Any

from unweave.pages.outcome import Outcome
from unweave.plots.curves import stacked_types
from unweave.recipes.bonheme2023.intrinsic_dimensions import (
    by_world,
    codes_measure,
    codes_study,
    curve_notes,
    over_latents,
)
from unweave.recipes.bonheme2023.results import SOURCE, measured, notes
from unweave.recipes.controls import before_training, dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend

TITLE = "Types of latents against their number"


def study(size: str) -> Study:
    """VAEs with more and more latents: the models of the elbow curves."""
    return codes_study("b-fig-8.10", size)


def judge(results: Results, size: str) -> Outcome:
    """Beyond what is needed, further latents are mixed or passive."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in by_world(measured(results, codes_measure(size))):
        numbers = sorted({row.experiment.latents for row in rows})
        kinds = {kind: over_latents(rows, f"n_{kind}") for kind in ("active", "mixed", "passive")}
        counts = {kind: [fmean(line[float(n)]) for n in numbers] for kind, line in kinds.items()}
        figures[name] = stacked_types([float(n) for n in numbers], counts, x="latents", title=name)
        latents, seeds = [row.experiment.latents for row in rows], [row.seed for row in rows]
        # their number rises in untrained networks too, where it is all of them: what is learned is their share
        unused = [(row.found["n_passive"] + row.found["n_mixed"]) / row.experiment.latents for row in rows]
        what = f"{name}: share of mixed and passive latents against their number"
        comparisons.append(compare_trend(what, latents, unused, 1, seeds=seeds))
    return Outcome(tuple(comparisons), figures, notes=notes(size, curve_notes(size)))


CONTROLS = (
    before_training(judge),
    dealt(judge, "what was measured of a model given to another one, whatever its number of latents."),
)

REPRODUCTION = Reproduction("b-fig-8.10", TITLE, f"{SOURCE}, Figure 8.10", study, judge, CONTROLS)
