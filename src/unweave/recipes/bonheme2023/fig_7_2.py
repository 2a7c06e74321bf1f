"""b-fig-7.2: encoders are learned before decoders.

Bonheme (2023), Figure 7.2.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    EARLY,
    Figure,
    controls_of,
    encoder_first,
    judge_of,
    over_epochs,
    study_of,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA early in training and at its end"

FIGURE = Figure(over_epochs(EARLY), encoder_first)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.2", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.2", TITLE, f"{SOURCE}, Figure 7.2", study, judge, controls_of(FIGURE))
