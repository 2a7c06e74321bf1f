"""b-fig-8.1: the trace of mean codes levels off where that of sampled codes goes on.

Bonheme (2023), §8.3.2, Figure 8.1.
"""

from collections.abc import Mapping, Sequence
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
from unweave.studies.verdicts import Comparison, compare_difference

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
    words = (
        "That the difference grows with unused latents follows from what it is, the sum of their noise: not judged.",
        "Nor is the trace of mean codes over the number of latents: any number over a growing one falls.",
    )
    return Outcome(tuple(comparisons), figures, notes=notes(size, curve_notes(size), *words))


def trace_measure(size: str) -> FondueReading:
    """On 10,000 examples as published."""
    return FondueReading("trace", EXTENTS[size].n_samples)


def _levels(name: str, rows: Sequence[Measured]) -> Comparison:
    """A latent of the curve's first half adds more to the trace of mean codes than one of its second half."""
    early: dict[int, float] = {}
    late: dict[int, float] = {}
    for seed in dict.fromkeys(row.seed for row in rows):
        own = {row.experiment.latents: float(row.found["trace"]["second"]) for row in rows if row.seed == seed}
        if len(own) > 2:
            early[seed], late[seed] = gains(own)
    what = f"{name}: what a latent adds to Tr Var[M], in the first half of the curve less in the second"
    return compare_difference(what, early, late, 1)


def gains(curve: Mapping[int, float]) -> tuple[float, float]:
    """What a further latent adds on the way to the middle one of a curve's numbers of latents, and from there on."""
    first, *between, last = sorted(curve)
    middle = between[len(between) // 2]
    return (
        (curve[middle] - curve[first]) / (middle - first),
        (curve[last] - curve[middle]) / (last - middle),
    )


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
