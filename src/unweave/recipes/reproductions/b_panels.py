"""The models of Bonheme (2023), chapter 6: panels of the large study's grid, one world and one objective each."""

from collections.abc import Sequence
from dataclasses import dataclass

from unweave.recipes.reproductions.b_results import Measured, check_size, chosen, measured
from unweave.recipes.reproductions.k_grid import EXTENTS, grid
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.study import Study

BY_HAND = ("smallnorb", "scream_dsprites")
"""Worlds that must be fetched first: left to the paper size."""


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: all strengths and seeds of one objective on one world."""

    world: str
    objective: str

    @property
    def name(self) -> str:
        return f"{self.objective} on {self.world}"

    def rows(self, results: Results, measure: Measure, size: str) -> list[Measured]:
        """What was measured of the panel's runs."""
        world = "micro" if size == "smoke" else self.world
        return chosen(measured(results, measure), world=world, objective=self.objective)


def shown(panels: Sequence[Panel], size: str) -> tuple[Panel, ...]:
    """The panels of a size: the micro-world stands in for every world at smoke, so that equal objectives are one."""
    check_size(size)
    if size == "smoke":
        return tuple({panel.objective: panel for panel in panels}.values())
    kept = tuple(panel for panel in panels if size == "paper" or panel.world not in BY_HAND)
    return kept or tuple(Panel("dsprites", panel.objective) for panel in panels)


def panel_study(name: str, panels: Sequence[Panel], measures: Sequence[Measure], size: str) -> Study:
    """The models of these panels. They are those of the large study, so one store serves both."""
    asked = [
        experiment
        for panel in shown(panels, size)
        for experiment in grid(size, (panel.world,))
        if experiment.objective.name == panel.objective
    ]
    return Study(f"{name}-{size}", tuple(asked), tuple(measures))


def n_samples(size: str) -> int:
    """Examples that codes are measured on: 10,000 as published, where the world has so many."""
    check_size(size)
    return min(10_000, EXTENTS[size].n_samples)


def grid_notes(size: str) -> tuple[str, ...]:
    """What the grid of a size leaves out."""
    extent = EXTENTS[size]
    words = f"{len(extent.places)} of six strengths, {extent.n_seeds} seeds, {extent.steps:,} steps a model"
    if size == "paper":
        return (f"{words}: trained anew here, where the source used the models that Locatello et al. (2019) released.",)
    where = (
        "the micro-world (three factors, six latents) for every world"
        if size == "smoke"
        else "worlds that must be fetched by hand (SmallNORB, Scream-dSprites) are left out, or dSprites stands in"
    )
    return (f"{words}; {where}. The source had 50 seeds and 300,000 steps.",)
