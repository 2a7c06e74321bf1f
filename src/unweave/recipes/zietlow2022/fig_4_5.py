"""z-fig-4.5: DCI on modified images as the main hyperparameter is scaled (Zietlow, 2022, §4.3.4)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import bias_study
from unweave.recipes.zietlow2022.bias_search import ASKED, judge_search
from unweave.recipes.zietlow2022.bias_table import controls_of
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "No strength brings DCI back on modified images"


def study(size: str) -> Study:
    """Every VAE on modified images at every scale, and unscaled on original and noisy ones."""
    return bias_study("z-fig-4.5", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """Whether any scale brings the score back."""
    return judge_search("DCI", results, size)


CONTROLS = controls_of(judge)

REPRODUCTION = Reproduction("z-fig-4.5", TITLE, f"{SOURCE}, Figure 4.5", study, judge, CONTROLS)
