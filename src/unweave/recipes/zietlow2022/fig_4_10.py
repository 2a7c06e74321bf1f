"""z-fig-4.10: planes of two latents of the four most disentangled models (Zietlow, 2022, §4.3.6)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias_planes import planes_outcome, planes_study, random_signs
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Disentangled models hold two factors along two axes"


def study(size: str) -> Study:
    """The models to choose from, on the original images."""
    return planes_study("z-fig-4.10", size, TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The planes, and a number for each."""
    return planes_outcome(results, size, "disentangled")


REPRODUCTION = Reproduction("z-fig-4.10", TITLE, f"{SOURCE}, Figure 4.10", study, judge, (random_signs(judge),))
