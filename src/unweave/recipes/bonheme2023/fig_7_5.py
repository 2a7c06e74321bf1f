"""b-fig-7.5: Procrustes shows what CKA shows over epochs, but overrates wide layers.

Bonheme (2023), Figure 7.5.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    PROCRUSTES_NOTE,
    TC_CARS,
    Figure,
    by_both,
    controls_of,
    encoder_first,
    judge_of,
    over_epochs,
    study_of,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA and Procrustes over epochs"

FIGURE = Figure(over_epochs((TC_CARS,), ("encoder", "decoder", "output")), by_both(encoder_first), (PROCRUSTES_NOTE,))


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.5", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.5", TITLE, f"{SOURCE}, Figure 7.5", study, judge, controls_of(FIGURE))
