"""b-fig-8.7: FONDUE stops at the elbow for stronger β-VAEs and for DIP-VAE-II.

Bonheme (2023), Figure 8.7.
"""

from unweave.models.objectives import DIPVAEII, BetaVAE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.elbows import Panel, controls_of, judge_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Elbow curves of other objectives"

PANELS = tuple(
    Panel((row,))
    for row in (*published.TABLE_8_2, *published.TABLE_8_3)
    if (row.world, row.objective) in (("symsol", BetaVAE(4.0)), ("dsprites", DIPVAEII(0.5)))
)


def study(size: str) -> Study:
    """Every curve, and the searches whose answers are marked in it."""
    return study_of("b-fig-8.7", PANELS, size)


def judge(results: Results, size: str) -> Outcome:
    """How much of the improvement the answers reach, and how far they are from the elbow."""
    return judge_of(PANELS, results, size)


REPRODUCTION = Reproduction("b-fig-8.7", TITLE, f"{SOURCE}, Figure 8.7", study, judge, controls_of(judge))
