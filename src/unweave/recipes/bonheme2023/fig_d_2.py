"""b-fig-D.2: FONDUE stops at the elbow for β-VAE of other strengths, on dSprites.

Bonheme (2023), Figure D.2.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.elbows import Panel, controls_of, judge_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Elbow curves of β-VAEs of several strengths, dSprites"

PANELS = tuple(Panel((row,)) for row in published.TABLE_8_2 if row.world == "dsprites")


def study(size: str) -> Study:
    """Every curve, and the searches whose answers are marked in it."""
    return study_of("b-fig-D.2", PANELS, size)


def judge(results: Results, size: str) -> Outcome:
    """How far the answers are from the elbow."""
    return judge_of(PANELS, results, size)


REPRODUCTION = Reproduction("b-fig-D.2", TITLE, f"{SOURCE}, Figure D.2", study, judge, controls_of(judge))
