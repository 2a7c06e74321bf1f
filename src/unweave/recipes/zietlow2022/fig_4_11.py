"""z-fig-4.11: planes of two latents of the four most entangled models (Zietlow, 2022, §4.3.6)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias_planes import planes_outcome, planes_study, random_signs
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "Entangled models hold two factors as angle and radius"


def study(size: str) -> Study:
    """The models to choose from, on the original images."""
    return planes_study("z-fig-4.11", size, TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The planes, and a number for each."""
    return planes_outcome(results, size, "entangled")


REPRODUCTION = Reproduction("z-fig-4.11", TITLE, f"{SOURCE}, Figure 4.11", study, judge, (random_signs(judge),))
