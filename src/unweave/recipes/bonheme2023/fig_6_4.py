"""b-fig-6.4: what passive latents know of the factors is lost by sampling.

Bonheme (2023), §6.4.1, Figure 6.4.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.latent_types import (
    BETA_VAE,
)
from unweave.recipes.bonheme2023.panels import grid_notes, panel_study
from unweave.recipes.bonheme2023.results import SOURCE, Measured, notes
from unweave.recipes.controls import before_training, changed
from unweave.recipes.extent import check_size
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.accuracy_by_type import AccuracyByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

TITLE = "Accuracy by type of latent"


def study(size: str) -> Study:
    """The β-VAEs with the accuracy of every combination of types."""
    return panel_study("b-fig-6.4", BETA_VAE, (accuracy_measure(size),), size)


def judge(results: Results, size: str) -> Outcome:
    """What each combination of types knows of the factors."""
    rows = BETA_VAE[0].rows(results, accuracy_measure(size), size)
    known: dict[str, dict[tuple[str, float], list[float]]] = {"mean": {}, "sampled": {}}
    for row in rows:
        for representation, lines in known.items():
            for name, value in row.found[representation].items():
                lines.setdefault((name, row.strength), []).append(value)
    figures = {
        f"Accuracy, {representation} codes": line_bands(_lines(lines), "β", "test accuracy", representation)
        for representation, lines in known.items()
        if lines
    }
    return Outcome(tuple(_accuracies(rows)), figures, notes=notes(size, *grid_notes(size)))


def accuracy_measure(size: str) -> AccuracyByType:
    """10,000 examples to learn from and 5,000 to test, as published; few at smoke."""
    check_size(size)
    return AccuracyByType(400, 200) if size == "smoke" else AccuracyByType()


def _accuracies(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Every claim of §6.4.1; values are paired by run."""

    def column(representation: str, name: str) -> dict[tuple[float, int], float]:
        found = ((row, row.found[representation].get(name)) for row in rows)
        return {(row.strength, row.seed): value for row, value in found if value is not None}

    chance = {(row.strength, row.seed): row.found["chance"] for row in rows}
    passive = column("sampled", "passive")
    yield compare_difference("sampled passive latents less a random guess", passive, chance, 0, tolerance=0.05)
    used, everything = column("sampled", "active+mixed"), column("sampled", "all")
    yield compare_difference("sampled active and mixed less all latents", used, everything, 0, tolerance=0.02)
    active, mixed = column("sampled", "active"), column("sampled", "mixed")
    yield compare_difference("sampled active less sampled mixed latents", active, mixed, 1)
    known = column("mean", "passive")
    yield compare_difference("passive latents, mean less sampled codes", known, passive, 1)
    if known:
        beta, seeds = zip(*known)
        yield compare_trend("accuracy of passive mean codes against β", beta, list(known.values()), 1, seeds=seeds)


def _lines(values: Mapping[tuple[str, float], Sequence[float]]) -> dict[str, dict[float, list[float]]]:
    lines: dict[str, dict[float, list[float]]] = {}
    for (name, strength), found in values.items():
        lines.setdefault(name, {})[strength] = list(found)
    return lines


def _mixed_up(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
    """The accuracies of a model dealt to its combinations of types and representations at random."""
    cells = [(part, name) for part in ("mean", "sampled") for name in found[part]]
    values = iter(generator.permutation([found[part][name] for part, name in cells]).tolist())
    dealt: dict[str, dict[str, float]] = {"mean": {}, "sampled": {}}
    for part, name in cells:
        dealt[part][name] = next(values)
    return {**found, **dealt}


SENTENCE = "the accuracies of a model dealt to its types and representations at random."
CONTROLS = (changed(judge, "shuffled", SENTENCE, _mixed_up), before_training(judge))

REPRODUCTION = Reproduction("b-fig-6.4", TITLE, f"{SOURCE}, Figure 6.4", study, judge, CONTROLS)
