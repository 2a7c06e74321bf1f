"""b-fig-6.7: without passive latents, mean codes share no more information than sampled ones.

Bonheme (2023), Figure 6.7.
"""

from functools import partial

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.dependence import MI, SUBSETS, Part, any_subset, judge_of, only_passive, study_of
from unweave.recipes.bonheme2023.panels import Panel
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "MI of mean and sampled codes, with and without passive latents"

PARTS = (Part(Panel("dsprites", "dip_vae_ii"), MI, partial(only_passive, MI), SUBSETS),)


def study(size: str) -> Study:
    """All strengths and seeds of every panel."""
    return study_of("b-fig-6.7", PARTS, size)


def judge(results: Results, size: str) -> Outcome:
    """Curves over the strength, numbers of types below them, and the claims of each panel."""
    return judge_of(PARTS, results, size)


CONTROLS = (any_subset(judge),)

REPRODUCTION = Reproduction("b-fig-6.7", TITLE, f"{SOURCE}, Figure 6.7", study, judge, CONTROLS)
