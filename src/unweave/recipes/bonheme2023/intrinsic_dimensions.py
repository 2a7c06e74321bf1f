"""What Figures 8.9 and 8.10 share: the codes of VAEs with more and more latents (Bonheme, 2023, §8.8.1)."""

from collections.abc import Iterator, Sequence

from unweave.recipes.bonheme2023.elbows import CURVES, PLAIN, panels_at
from unweave.recipes.bonheme2023.results import Measured, chosen
from unweave.recipes.bonheme2023.rows import EXTENTS
from unweave.studies.measures.intrinsic import IntrinsicDimensions
from unweave.studies.study import Study


def codes_study(name: str, size: str) -> Study:
    """VAEs with more and more latents: the models of the elbow curves."""
    asked = [experiment for panel in panels_at(PLAIN, size) for experiment in panel.curve(size)]
    return Study(f"{name}-{size}", tuple(asked), (codes_measure(size),))


def codes_measure(size: str) -> IntrinsicDimensions:
    """On 10,000 examples as published."""
    return IntrinsicDimensions(EXTENTS[size].n_samples)


def by_world(rows: Sequence[Measured]) -> Iterator[tuple[str, list[Measured]]]:
    """Rows by world; two worlds of one name are told apart by their options."""
    for world in dict.fromkeys(row.experiment.world for row in rows):
        mine = [row for row in chosen(rows, world=world.name) if row.experiment.world == world]
        seed = getattr(world, "seed", 0)
        yield world.name + (f" {seed}" if seed else ""), mine


def over_latents(rows: Sequence[Measured], column: str) -> dict[float, list[float]]:
    """A column of all runs by their number of latents."""
    line: dict[float, list[float]] = {}
    for row in rows:
        line.setdefault(float(row.experiment.latents), []).append(float(row.found[column]))
    return line


def curve_notes(size: str) -> str:
    """Which models these are."""
    curves = CURVES[size]
    return f"The models of the elbow curves: {curves.n_seeds} seeds, {curves.steps:,} steps (published: 5 and 300,000)."
