"""b-fig-7.8: dense encoders are learned before dense decoders.

Bonheme (2023), Figure 7.8.
"""

from unweave.models.objectives import AnnealedVAE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.settings import Setting
from unweave.recipes.bonheme2023.similarity import Figure, Pair, controls_of, encoder_first, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "CKA over epochs, fully connected"

DENSE_ANNEALED = Setting("smallnorb", AnnealedVAE(capacity=5.0), dense=True)
FIGURE = Figure(tuple(Pair(DENSE_ANNEALED, DENSE_ANNEALED, place) for place in (0, 1)), encoder_first)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.8", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.8", TITLE, f"{SOURCE}, Figure 7.8", study, judge, controls_of(FIGURE))
