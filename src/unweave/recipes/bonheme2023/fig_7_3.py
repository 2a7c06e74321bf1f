"""b-fig-7.3: what strongly regularised models sample is unlike the layers of weakly regularised ones.

Bonheme (2023), Figure 7.3.
"""

from collections.abc import Iterator

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import LayerMap, Learned
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import Figure, Pair, beta_vae, controls_of, dip_vae, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

TITLE = "CKA of weakly and strongly regularised models"


def collapse(found: Learned) -> Iterator[Comparison]:
    """Fact 2: what a strongly regularised model samples is unlike the layers of a weakly regularised one."""
    after, before = (_one_sided(one) for one in (found.after, found.before))
    what = "sampled codes of the strong model to layers of the weak one, less the other way round, less before training"
    yield compare_difference(what, {seed: after[seed] - before[seed] for seed in after}, dict.fromkeys(after, 0.0), -1)


def _one_sided(found: LayerMap) -> dict[int, float]:
    sampled, layers = found.places("sampled"), found.encoder + found.decoder
    strong, weak = found.block(layers, sampled), found.block(sampled, layers)
    return {seed: strong[seed] - weak[seed] for seed in strong}


STRENGTHS = (
    Pair(beta_vae("dsprites", 1.0), beta_vae("dsprites", 8.0)),
    Pair(dip_vae("dsprites", 1.0), dip_vae("dsprites", 20.0)),
)
FIGURE = Figure(STRENGTHS, collapse)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.3", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.3", TITLE, f"{SOURCE}, Figure 7.3", study, judge, controls_of(FIGURE))
