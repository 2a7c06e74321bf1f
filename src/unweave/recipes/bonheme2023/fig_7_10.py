"""b-fig-7.10: dense encoders are alike whatever the objective.

Bonheme (2023), Figure 7.10.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    Figure,
    controls_of,
    judge_of,
    shared_encoders,
    study_of,
    two_objectives,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA of β-VAE and DIP-VAE-II, fully connected"

FIGURE = Figure(two_objectives(dense=True), shared_encoders)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.10", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.10", TITLE, f"{SOURCE}, Figure 7.10", study, judge, controls_of(FIGURE))
