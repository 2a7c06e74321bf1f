"""b-fig-6.9: at the end of training, passive latents stand out by their correlations.

Bonheme (2023), Figure 6.9.
"""

from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import heat_map
from unweave.recipes.bonheme2023.correlations import measure_of, names_of, notes_of, per_run, study_of
from unweave.recipes.bonheme2023.results import SOURCE, measured
from unweave.recipes.controls import types_dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import compare_difference

TITLE = "Correlations of passive latents"


def study(size: str) -> Study:
    """Five seeds of one β-VAE."""
    return study_of("b-fig-6.9", 16.0, True, size)


def judge(results: Results, size: str) -> Outcome:
    """At the end of training, passive latents stand out by their correlations."""
    rows = measured(results, measure_of(size))
    figures: dict[str, Any] = {}
    for row in rows[:1]:
        names = names_of(row)
        figures[f"Correlation of mean codes, seed {row.seed}"] = heat_map(
            np.array(row.found["correlation"]), names, names, "", limits=(-1.0, 1.0), diverging=True
        )
    passive, others = per_run(rows, "strongest", ("passive",)), per_run(rows, "strongest", ("active", "mixed"))
    what = "strongest |correlation| of passive latents, less that of the others"
    return Outcome((compare_difference(what, passive, others, 1),), figures, notes=notes_of(size))


CONTROLS = (types_dealt(judge),)

REPRODUCTION = Reproduction("b-fig-6.9", TITLE, f"{SOURCE}, Figure 6.9", study, judge, CONTROLS)
