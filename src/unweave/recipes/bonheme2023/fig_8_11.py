"""b-fig-8.11: dimensions of layers hardly change after the first epoch.

Bonheme (2023), §8.8.1, Figure 8.11.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.elbows import CURVES, PLAIN, panels_at
from unweave.recipes.bonheme2023.intrinsic_dimensions import (
    by_world,
)
from unweave.recipes.bonheme2023.results import SOURCE, Measured, measured, notes
from unweave.recipes.bonheme2023.rows import base_of
from unweave.recipes.controls import before_training, untrained
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.intrinsic import IntrinsicDimensions
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference
from unweave.training.experiment import Experiment

TITLE = "Intrinsic dimension of layers over training"
Layers = Mapping[str, float | None]
"""Dimensions by layer."""
N_SNAPSHOTS = 5
LATENTS = {"smoke": 6, "small": 10, "paper": 10}


def study(size: str) -> Study:
    """VAEs with ten latents and snapshots."""
    return Study(f"b-fig-8.11-{size}", tuple(layers_experiments(size)), (layers_measure(size),))


def judge(results: Results, size: str) -> Outcome:
    """Dimensions of layers hardly change after the first epoch."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    start = measured(untrained(results), layers_measure(size))
    for name, rows in by_world(measured(results, layers_measure(size))):
        figures[name] = line_bands(_layer_lines(rows), "step", "intrinsic dimension", name, even=False)
        first = {row.seed: _end(row.found["layers"]) for row in dict(by_world(start)).get(name, [])}
        # a collapsed model hardly changes either: it has nothing to learn
        learned = [row for row in rows if row.found["n_active"] > 0]
        early = {
            row.seed: _change(first[row.seed], _begin(row.found["layers"])) for row in learned if row.seed in first
        }
        late = {row.seed: _change(_begin(row.found["layers"]), _end(row.found["layers"])) for row in learned}
        what = (
            f"{name}: mean relative change of a layer's dimension, up to the first snapshot less from there to the end"
        )
        comparisons.append(compare_difference(what, early, late, 1))
    words = (
        "'Not much' is read as less than before the first snapshot: layers that are not trained do not change at all."
    )
    return Outcome(tuple(comparisons), figures, notes=notes(size, words))


def layers_experiments(size: str) -> Iterator[Experiment]:
    """The first snapshot comes after the published first epoch, or after a tenth of a shorter training."""
    for panel in panels_at(PLAIN, size):
        base = replace(base_of(panel.rows[0], size), steps=CURVES[size].steps, latents=LATENTS[size])
        first = base.steps // 10 if size != "paper" else base_of(replace(panel.rows[0], epochs=1), size).steps
        later = (base.steps * place // N_SNAPSHOTS for place in range(1, N_SNAPSHOTS))
        kept = tuple(sorted({first, *later}))
        yield from (replace(base, snapshots=kept, seed=seed) for seed in range(CURVES[size].n_seeds))


def layers_measure(size: str) -> IntrinsicDimensions:
    """All layers at all snapshots; a fifth of the examples at small, where wide layers are measured on a CPU."""
    n_samples = {"smoke": 1_000, "small": 2_000, "paper": 10_000}[size]
    return IntrinsicDimensions(n_samples, layers=True)


def _layer_lines(rows: Sequence[Measured]) -> dict[str, dict[float, list[float]]]:
    lines: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        for step, layers in row.found["layers"].items():
            for layer, value in layers.items():
                if value is not None:
                    lines.setdefault(layer, {}).setdefault(float(step), []).append(value)
    return lines


def _begin(layers: Mapping[str, Layers]) -> Layers:
    return layers[min(layers, key=int)]


def _end(layers: Mapping[str, Layers]) -> Layers:
    return layers[max(layers, key=int)]


def _change(first: Layers, last: Layers) -> float:
    pairs = [(first[name], last[name]) for name in last if name != "input"]
    changes = [abs(one - other) / other for one, other in pairs if one is not None and other]
    return fmean(changes) if changes else float("nan")


CONTROLS = (before_training(judge, again=False),)

REPRODUCTION = Reproduction("b-fig-8.11", TITLE, f"{SOURCE}, Figure 8.11", study, judge, CONTROLS)
