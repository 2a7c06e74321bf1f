"""b-fig-7.7: over the input and the first layers CKA and Procrustes show the same.

Bonheme (2023), Figure 7.7.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import (
    PROCRUSTES_NOTE,
    Figure,
    Pair,
    beta_vae,
    by_both,
    controls_of,
    judge_of,
    shared_encoders,
    study_of,
)
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA and Procrustes of the first layers"


FIGURE = Figure(
    tuple(Pair(beta_vae("cars3d", beta), beta_vae("cars3d", beta), procrustes=("encoder",)) for beta in (1.0, 8.0)),
    by_both(shared_encoders),
    (
        "Pairs of different seeds only. That the two differ by about 0.1 holds for untrained networks too.",
        PROCRUSTES_NOTE,
    ),
)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.7", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.7", TITLE, f"{SOURCE}, Figure 7.7", study, judge, controls_of(FIGURE))
