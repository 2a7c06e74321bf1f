"""b-fig-7.6: Procrustes shows what CKA shows of two objectives, but overrates wide layers.

Bonheme (2023), Figure 7.6.
"""

from dataclasses import replace

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    PROCRUSTES_NOTE,
    Figure,
    by_both,
    controls_of,
    judge_of,
    shared_encoders,
    study_of,
    two_objectives,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA and Procrustes of two objectives"

FIGURE = Figure(
    (replace(two_objectives(dense=False)[0], procrustes=("encoder",)),), by_both(shared_encoders), (PROCRUSTES_NOTE,)
)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.6", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.6", TITLE, f"{SOURCE}, Figure 7.6", study, judge, controls_of(FIGURE))
