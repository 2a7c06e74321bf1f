"""b-fig-8.1: the trace of mean codes levels off where that of sampled codes goes on.

Bonheme (2023), §8.3.2, Figure 8.1.
"""

from collections.abc import Sequence
from typing import Any

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.bonheme2023.elbows import PLAIN, panels_at
from unweave.recipes.bonheme2023.intrinsic_dimensions import by_world, curve_notes
from unweave.recipes.bonheme2023.results import SOURCE, Measured, measured, notes
from unweave.recipes.bonheme2023.rows import EXTENTS
from unweave.recipes.controls import before_training, dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend

TITLE = "Traces of mean and sampled codes against the number of latents"


def study(size: str) -> Study:
    """VAEs with more and more latents: the models of the elbow curves, CelebA's first."""
    panels = sorted(panels_at(PLAIN, size), key=lambda panel: panel.rows[0].world != "celeba")
    asked = [experiment for panel in panels for experiment in panel.curve(size)]
    return Study(f"b-fig-8.1-{size}", tuple(asked), (trace_measure(size),))


def judge(results: Results, size: str) -> Outcome:
    """Both traces over the number of latents, and whether that of mean codes levels off."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in by_world(measured(results, trace_measure(size))):
        lines = {"Tr Var[Z]": _line(rows, "first"), "Tr Var[M]": _line(rows, "second")}
        figures[name] = line_bands(lines, "latents", "trace", name, even=False)
        comparisons.append(_levels(name, rows))
    words = "That the difference grows with unused latents follows from what it is, the sum of their noise: not judged."
    return Outcome(tuple(comparisons), figures, notes=notes(size, curve_notes(size), words))


def trace_measure(size: str) -> FondueReading:
    """On 10,000 examples as published."""
    return FondueReading("trace", EXTENTS[size].n_samples)


def _levels(name: str, rows: Sequence[Measured]) -> Comparison:
    """A further latent adds less and less to the trace of mean codes: its share of a latent falls."""
    latents, seeds = [row.experiment.latents for row in rows], [row.seed for row in rows]
    shares = [row.found["trace"]["second"] / row.experiment.latents for row in rows]
    return compare_trend(f"{name}: Tr Var[M] a latent against latents", latents, shares, -1, seeds=seeds)


def _line(rows: Sequence[Measured], column: str) -> dict[float, list[float]]:
    line: dict[float, list[float]] = {}
    for row in rows:
        line.setdefault(float(row.experiment.latents), []).append(float(row.found["trace"][column]))
    return line


CONTROLS = (
    before_training(judge),
    dealt(judge, "what was measured of a model given to another one, whatever its number of latents."),
)

REPRODUCTION = Reproduction("b-fig-8.1", TITLE, f"{SOURCE}, Figure 8.1", study, judge, CONTROLS)
