"""b-fig-D.4: FONDUE stops at the elbow for DIP-VAE-II of other strengths, on dSprites.

Bonheme (2023), Figure D.4.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.elbows import Panel, controls_of, judge_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.strength import strength_of
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Elbow curves of DIP-VAE-II of two strengths, dSprites"

PANELS = tuple(
    Panel((row,)) for row in published.TABLE_8_3 if row.world == "dsprites" and strength_of(row.objective) in (0.5, 2.0)
)


def study(size: str) -> Study:
    """Every curve, and the searches whose answers are marked in it."""
    return study_of("b-fig-D.4", PANELS, size)


def judge(results: Results, size: str) -> Outcome:
    """How far the answers are from the elbow."""
    return judge_of(PANELS, results, size)


REPRODUCTION = Reproduction("b-fig-D.4", TITLE, f"{SOURCE}, Figure D.4", study, judge, controls_of(judge))
