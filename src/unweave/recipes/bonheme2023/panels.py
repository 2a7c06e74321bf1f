"""The models of Bonheme (2023), chapter 6: panels of the large study's grid, one world and one objective each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unweave.models.objectives import AnnealedVAE
from unweave.models.optimisers import Adam
from unweave.recipes.bonheme2023.results import Measured, chosen, measured
from unweave.recipes.bonheme2023.rows import stand_in
from unweave.recipes.extent import check_size
from unweave.recipes.locatello2019.settings import EXTENTS, MODELS, grid
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.training.experiment import Experiment

BY_HAND = ("smallnorb", "scream_dsprites")
"""Worlds that must be fetched first: left to the paper size."""

SMOKE_WORLD, SMOKE_STEPS, SMOKE_SEEDS, SMOKE_SAMPLES = "synth_nonlin", 1_000, 5, 2_000
"""Synth-NonLin stands in for every world at smoke: there, spare latents turn passive within a thousand steps."""


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
        world = SMOKE_WORLD if size == "smoke" else self.world
        return chosen(measured(results, measure), world=world, objective=self.objective)


def shown(panels: Sequence[Panel], size: str) -> tuple[Panel, ...]:
    """The panels of a size: one world stands in for all at smoke, so that equal objectives are one."""
    check_size(size)
    if size == "smoke":
        return tuple(Panel(SMOKE_WORLD, objective) for objective in dict.fromkeys(one.objective for one in panels))
    kept = tuple(panel for panel in panels if size == "paper" or panel.world not in BY_HAND)
    return kept or tuple(Panel("dsprites", panel.objective) for panel in panels)


def panel_study(name: str, panels: Sequence[Panel], measures: Sequence[Measure], size: str) -> Study:
    """The models of these panels. They are those of the large study, so one store serves both."""
    asked = [
        experiment
        for panel in shown(panels, size)
        for experiment in (smoke_grid() if size == "smoke" else grid(size, (panel.world,)))
        if experiment.objective.name == panel.objective
    ]
    return Study(f"{name}-{size}", tuple(asked), tuple(measures))


def smoke_grid() -> tuple[Experiment, ...]:
    """The objectives of the large study's smoke grid on the stand-in, five seeds each."""
    objectives = dict.fromkeys(experiment.objective for experiment in grid("smoke", ("dsprites",)))
    scaled = (replace(one, rise=SMOKE_STEPS // 3) if isinstance(one, AnnealedVAE) else one for one in objectives)
    return tuple(
        # with 0.003, latents that β-TCVAE has no use for still have variances of 0.65 to 0.82 after a thousand steps:
        # mixed by the rule of §6.4.1, though nothing is encoded in them
        replace(stand_in("dsprites", objective, SMOKE_STEPS), optimiser=Adam(1e-2), latents=6, seed=seed)
        for objective in scaled
        for seed in range(SMOKE_SEEDS)
    )


def n_samples(size: str) -> int:
    """Examples that codes are measured on: 10,000 as published, where the world has so many."""
    check_size(size)
    return SMOKE_SAMPLES if size == "smoke" else min(10_000, EXTENTS[size].n_samples)


def grid_notes(size: str) -> tuple[str, ...]:
    """What the grid of a size leaves out."""
    extent = EXTENTS[size]
    n_seeds, steps = (SMOKE_SEEDS, SMOKE_STEPS) if size == "smoke" else (extent.n_seeds, extent.steps)
    words = f"{len(MODELS[size].places)} of six strengths, {n_seeds} seeds, {steps:,} steps a model"
    if size == "paper":
        return (f"{words}: trained anew here, where the source used the models that Locatello et al. (2019) released.",)
    where = (
        "Synth-NonLin (two factors, six latents, a small dense network, learning rate 0.01, with which latents that are"
        " not used reach the variances of passive ones in time) for every world"
        if size == "smoke"
        else "worlds that must be fetched by hand (SmallNORB, Scream-dSprites) are left out, or dSprites stands in"
    )
    return (f"{words}; {where}. The source had 50 seeds and 300,000 steps.",)
