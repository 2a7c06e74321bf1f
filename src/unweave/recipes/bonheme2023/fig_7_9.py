"""b-fig-7.9: over strengths dense encoders stay alike, their codes do not.

Bonheme (2023), Figure 7.9.
"""

from collections.abc import Iterator

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import CODES, LayerMap
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import Figure, Pair, beta_vae, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "CKA of strengths, fully connected"


def dense_strengths(found: LayerMap) -> Iterator[Comparison]:
    """Figure 7.9: encoders stay alike; mean, variance and sampled codes do not; decoders less unlike than conv ones."""
    encoder, codes = found.diagonal(found.encoder), found.diagonal(found.places(*CODES))
    yield compare_difference("similarity of the encoders' layers, less that of the codes", encoder, codes, 1)


STRENGTHS = tuple(Pair(beta_vae("dsprites", 1.0, True), beta_vae("dsprites", beta, True)) for beta in (8.0, 16.0))
FIGURE = Figure(STRENGTHS, dense_strengths)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.9", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.9", TITLE, f"{SOURCE}, Figure 7.9", study, judge)
