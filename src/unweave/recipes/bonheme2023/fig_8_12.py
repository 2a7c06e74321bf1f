"""b-fig-8.12: FONDUE_IDE stops near the elbow as well.

Bonheme (2023), Figure 8.12.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.elbows import Panel, controls_of, judge_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Elbow curves and FONDUE_IDE"

PANELS = tuple(Panel((one, other)) for one, other in zip(published.TABLE_8_8[:3], published.TABLE_8_8[3:], strict=True))


def study(size: str) -> Study:
    """Every curve, and the searches whose answers are marked in it."""
    return study_of("b-fig-8.12", PANELS, size)


def judge(results: Results, size: str) -> Outcome:
    """How much of the improvement the answers reach, and how far they are from the elbow."""
    return judge_of(PANELS, results, size)


REPRODUCTION = Reproduction("b-fig-8.12", TITLE, f"{SOURCE}, Figure 8.12", study, judge, controls_of(judge))
