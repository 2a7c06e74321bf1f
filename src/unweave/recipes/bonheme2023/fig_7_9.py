"""b-fig-7.9: over strengths dense encoders stay alike, their codes do not.

Bonheme (2023), Figure 7.9.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    Figure,
    Pair,
    beta_vae,
    controls_of,
    encoders_not_codes,
    judge_of,
    study_of,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA of strengths, fully connected"


STRENGTHS = tuple(Pair(beta_vae("dsprites", 1.0, True), beta_vae("dsprites", beta, True)) for beta in (8.0, 16.0))
FIGURE = Figure(STRENGTHS, encoders_not_codes)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.9", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.9", TITLE, f"{SOURCE}, Figure 7.9", study, judge, controls_of(FIGURE))
