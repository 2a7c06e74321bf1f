"""b-fig-6.10: passive latents are the ones most often correlated over training.

Bonheme (2023), Figure 6.10.
"""

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.matrices import bars
from unweave.plots.style import COLOURS
from unweave.recipes.bonheme2023.correlations import measure_of, names_of, notes_of, per_run, study_of
from unweave.recipes.bonheme2023.results import SOURCE, measured
from unweave.recipes.controls import types_dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import compare_difference

TITLE = "How often latents are correlated over training"


def study(size: str) -> Study:
    """Five seeds of one β-VAE."""
    return study_of("b-fig-6.10", 8.0, False, size)


def judge(results: Results, size: str) -> Outcome:
    """Passive latents are the ones most often correlated above 0.2."""
    rows = measured(results, measure_of(size))
    figures = {
        f"Share of snapshots with a correlation above 0.2, seed {row.seed}": bars(
            row.found["often"], names_of(row), colours=[COLOURS[kind] for kind in row.found["types"]]
        )
        for row in [row for row in rows if np.isfinite(row.found["often"]).all()][:1]
    }
    passive, active = per_run(rows, "often", ("passive",)), per_run(rows, "often", ("active",))
    what = "share of snapshots with |correlation| > 0.2: passive less active latents"
    return Outcome((compare_difference(what, passive, active, 1),), figures, notes=notes_of(size))


CONTROLS = (types_dealt(judge),)

REPRODUCTION = Reproduction("b-fig-6.10", TITLE, f"{SOURCE}, Figure 6.10", study, judge, CONTROLS)
