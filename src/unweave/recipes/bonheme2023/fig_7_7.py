"""b-fig-7.7: over the input and the first layers CKA and Procrustes differ by about 0.1.

Bonheme (2023), Figure 7.7.
"""

from collections.abc import Iterator

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import CKA, PROCRUSTES, LayerMap
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.similarity import Figure, Pair, beta_vae, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_mean

TITLE = "CKA and Procrustes of the first layers"


def early_layers(found: LayerMap) -> Iterator[Comparison]:
    """Figure 7.7: over the input and the first layers the two measures differ by about 0.1."""
    places = found.places("input") + found.encoder
    gaps = {
        seed: abs(found.block(places, places, CKA)[seed] - found.block(places, places, PROCRUSTES)[seed])
        for seed in found.left.seeds
    }
    yield compare_mean("|CKA − Procrustes| over the encoder's layers", gaps, 0.1, tolerance=0.1)


FIGURE = Figure(
    tuple(Pair(beta_vae("cars3d", beta), beta_vae("cars3d", beta), procrustes=True) for beta in (1.0, 8.0)),
    early_layers,
    ("Pairs of different seeds only. 'Around 0.1' is read as between 0 and 0.2.",),
)


def study(size: str) -> Study:
    """Five seeds of every setting of the figure."""
    return study_of("b-fig-7.7", FIGURE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every heat map, and what is claimed of it."""
    return judge_of(FIGURE, results, size)


REPRODUCTION = Reproduction("b-fig-7.7", TITLE, f"{SOURCE}, Figure 7.7", study, judge)
