"""b-fig-8.6: what FONDUE finds with a VAE holds for deterministic autoencoders.

Bonheme (2023), Figure 8.6.
"""

from dataclasses import replace

from unweave.models.objectives import AE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.elbows import PLAIN, controls_of, judge_of, study_of
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Elbow curves of deterministic autoencoders"

PANELS = tuple(replace(panel, objective=AE()) for panel in PLAIN)


def study(size: str) -> Study:
    """Every curve, and the searches whose answers are marked in it."""
    return study_of("b-fig-8.6", PANELS, size)


def judge(results: Results, size: str) -> Outcome:
    """How much of the improvement the answers reach, and how far they are from the elbow."""
    return judge_of(PANELS, results, size)


REPRODUCTION = Reproduction("b-fig-8.6", TITLE, f"{SOURCE}, Figure 8.6", study, judge, controls_of(judge))
