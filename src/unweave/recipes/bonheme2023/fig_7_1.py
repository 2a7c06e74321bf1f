"""b-fig-7.1: CKA and Procrustes need examples, Procrustes many more of them.

Bonheme (2023), §7.2.2, Figure 7.1.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unweave.metrics.similarity.cka import cka
from unweave.metrics.similarity.procrustes import procrustes
from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.extent import check_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean

TITLE = "CKA and Procrustes over numbers of examples"
N_FEATURES = 50
KEPT = {"B": 0.8, "C": 0.5, "D": 0.0}
"""Shares of the features of A that B, C and D keep."""
EXAMPLES = {
    "smoke": (50, 100, 300, 1_000, 3_000),
    "small": (50, 100, 300, 1_000, 3_000, 10_000),
    "paper": (50, 100, 300, 1_000, 3_000, 10_000, 30_000),
}
N_SEEDS = 10

Scores = dict[tuple[str, str, int], dict[int, float]]
"""By measure, matrix and number of examples, then by seed."""


def study(size: str) -> Study:
    """Matrices are drawn where they are judged."""
    check_size(size)
    return Study(f"b-fig-7.1-{size}", ())


def judge(results: Results, size: str) -> Outcome:
    """Similarity of A with B, C and D over numbers of examples."""
    return judge_with(KEPT, size)


def judge_with(kept: Mapping[str, float], size: str) -> Outcome:
    """The same, where B, C and D keep other shares than they are said to."""
    scores = _scores(EXAMPLES[size], kept)
    figures = {f"A and {other}": _figure(scores, other, EXAMPLES[size]) for other in KEPT}
    words = (
        "Matrices of independent standard normal features, ten seeds; the source does not say how its own were made."
    )
    return Outcome(
        tuple(_claims(scores, EXAMPLES[size])),
        figures,
        notes=(words, "Nothing is trained: sizes differ in the largest number of examples only."),
    )


def _claims(scores: Scores, examples: tuple[int, ...]) -> Iterator[Comparison]:
    most, few = examples[-1], 100
    for other in ("B", "C"):
        for measure in ("CKA", "Procrustes"):
            what = f"{measure} of A and {other}, {most:,} examples"
            yield compare_mean(what, scores[measure, other, most], KEPT[other], tolerance=0.15)
    what = f"Procrustes less CKA of A and D, {most:,} examples"
    yield compare_difference(what, scores["Procrustes", "D", most], scores["CKA", "D", most], 1)
    what = f"CKA of A and D: {most:,} less {few} examples"
    yield compare_difference(what, scores["CKA", "D", most], scores["CKA", "D", few], -1)


def _scores(examples: tuple[int, ...], shares: Mapping[str, float]) -> Scores:
    found: Scores = {}
    for seed in range(N_SEEDS):
        generator = np.random.default_rng(seed)
        first, fresh = generator.standard_normal((2, examples[-1], N_FEATURES))
        for other, share in shares.items():
            kept = round(share * N_FEATURES)
            second = np.concatenate([first[:, :kept], fresh[:, kept:]], axis=1)
            for n in examples:
                pair = first[:n], second[:n]
                found.setdefault(("CKA", other, n), {})[seed] = cka(*pair, estimator="biased")
                found.setdefault(("Procrustes", other, n), {})[seed] = procrustes(*pair)
    return found


def _figure(scores: Scores, other: str, examples: tuple[int, ...]) -> Any:
    lines = {
        measure: {float(n): list(scores[measure, other, n].values()) for n in examples}
        for measure in ("CKA", "Procrustes")
    }
    return line_bands(lines, "examples", "similarity", f"{other} keeps {KEPT[other]:.0%} of A's features")


CONTROLS = (
    Control(
        "other shares",
        "B and C keep nothing of A, and D keeps all of it.",
        lambda results, size, draw: judge_with({"B": 0.0, "C": 0.0, "D": 1.0}, size),
    ),
)

REPRODUCTION = Reproduction("b-fig-7.1", TITLE, f"{SOURCE}, Figure 7.1", study, judge, CONTROLS)
