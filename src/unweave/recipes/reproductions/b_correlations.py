"""Figures 6.9 to 6.11: passive latents follow others in the mean codes, at the end and before it (Bonheme, 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from unweave.data.dsprites import ColorDSprites
from unweave.models.objectives import BetaVAE
from unweave.plots.curves import line_bands
from unweave.plots.matrices import bars, heat_map
from unweave.plots.style import COLOURS
from unweave.recipes.reproductions.b_panels import n_samples
from unweave.recipes.reproductions.b_results import THESIS, Measured, check_size, measured, notes
from unweave.recipes.reproductions.b_rows import stand_in
from unweave.recipes.reproductions.k_grid import grid
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.studies.measures.passive import PassiveCorrelations
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference
from unweave.training.experiment import Experiment

N_SEEDS, N_SNAPSHOTS = 5, {"smoke": 20, "small": 30, "paper": 300}
"""The source shows one model each; five let the claim be tested."""


def experiments(beta: float, colour: bool, size: str) -> tuple[Experiment, ...]:
    """β-VAEs with snapshots over all of training; every 1,000 of 300,000 steps at paper size."""
    check_size(size)
    if size == "smoke":
        # the flat square keeps two active latents and four passive ones up to a quarter of the published strength
        base = replace(stand_in("symsol", BetaVAE(beta / 4)), latents=6)
    else:
        base = replace(grid(size, ("dsprites",))[0], objective=BetaVAE(beta))
    world = ColorDSprites() if colour and size != "smoke" else base.world
    every = base.steps // N_SNAPSHOTS[size]
    steps = tuple(range(every, base.steps + 1, every)) if not colour else ()
    made = replace(base, world=world, snapshots=steps)
    return tuple(replace(made, seed=seed) for seed in range(N_SEEDS))


def measure_of(size: str) -> PassiveCorrelations:
    """On 10,000 examples, 2,000 at smoke."""
    return PassiveCorrelations(n_samples(size) if size == "smoke" else 10_000)


def study_of(name: str, beta: float, colour: bool, size: str) -> Study:
    """Five seeds of one β-VAE."""
    return Study(f"{name}-{size}", experiments(beta, colour, size), (measure_of(size),))


def judge_matrix(results: Results, size: str) -> Outcome:
    """Figure 6.9: at the end of training, passive latents stand out by their correlations."""
    rows = measured(results, measure_of(size))
    figures: dict[str, Any] = {}
    for row in rows[:1]:
        names = _names(row)
        figures[f"Correlation of mean codes, seed {row.seed}"] = heat_map(
            np.array(row.found["correlation"]), names, names, "", limits=(-1.0, 1.0), diverging=True
        )
    passive, others = _strongest(rows, ("passive",)), _strongest(rows, ("active", "mixed"))
    what = "strongest |correlation| of passive latents, less that of the others"
    return Outcome((compare_difference(what, passive, others, 1),), figures, notes=_notes(size))


def judge_often(results: Results, size: str) -> Outcome:
    """Figure 6.10: passive latents are the ones most often correlated above 0.2."""
    rows = measured(results, measure_of(size))
    figures = {
        f"Share of snapshots with a correlation above 0.2, seed {row.seed}": bars(
            row.found["often"], _names(row), colours=[COLOURS[kind] for kind in row.found["types"]]
        )
        for row in rows[:1]
    }
    passive, active = _per_run(rows, "often", ("passive",)), _per_run(rows, "often", ("active",))
    what = "share of snapshots with |correlation| > 0.2: passive less active latents"
    return Outcome((compare_difference(what, passive, active, 1),), figures, notes=_notes(size))


def judge_course(results: Results, size: str) -> Outcome:
    """Figure 6.11: an active latent's correlations with passive ones wander, those with active ones stay small."""
    rows = measured(results, measure_of(size))
    figures: dict[str, Any] = {}
    for row in rows[:1]:
        first = row.found["types"].index("active") if "active" in row.found["types"] else 0
        figures[f"Correlations of latent {first} over training, seed {row.seed}"] = line_bands(
            _course(row, first), "step", "correlation", even=False
        )
    return Outcome(tuple(_wandering(rows)), figures, notes=_notes(size))


def _wandering(rows: Sequence[Measured]) -> Iterator[Comparison]:
    passive, active = (_pairs(rows, kind) for kind in ("passive", "active"))
    height = [{seed: one[0] for seed, one in group.items()} for group in (passive, active)]
    what = "mean |correlation| over training: of active with passive, less of active with active"
    yield compare_difference(what, height[0], height[1], 1)
    spread = [{seed: one[1] for seed, one in group.items()} for group in (passive, active)]
    what = "sd of the correlation over training: of active with passive, less of active with active"
    yield compare_difference(what, spread[0], spread[1], 1)


def _pairs(rows: Sequence[Measured], kind: str) -> dict[int, tuple[float, float]]:
    """Mean size and spread over snapshots of the correlations of active latents with those of a type, by seed."""
    found = {}
    for row in rows:
        types = row.found["types"]
        course = np.array(row.found["course"])
        chosen = [
            course[:, i, j]
            for i, one in enumerate(types)
            for j, other in enumerate(types)
            if one == "active" and other == kind and i != j
        ]
        if chosen:
            values = np.stack(chosen)
            found[row.seed] = (float(np.abs(values).mean()), float(values.std(1).mean()))
    return found


def _course(row: Measured, latent: int) -> dict[str, dict[float, list[float]]]:
    course = np.array(row.found["course"])
    return {
        f"{other} {kind}": {
            float(step): [float(value)] for step, value in zip(row.found["steps"], course[:, latent, other])
        }
        for other, kind in enumerate(row.found["types"])
        if other != latent
    }


def _strongest(rows: Sequence[Measured], kinds: tuple[str, ...]) -> dict[int, float]:
    return _per_run(rows, "strongest", kinds)


def _per_run(rows: Sequence[Measured], column: str, kinds: tuple[str, ...]) -> dict[int, float]:
    found = {}
    for row in rows:
        values = [value for value, kind in zip(row.found[column], row.found["types"]) if kind in kinds]
        if values:
            found[row.seed] = fmean(values)
    return found


def _names(row: Measured) -> list[str]:
    return [f"{place} {kind}" for place, kind in enumerate(row.found["types"])]


def _notes(size: str) -> tuple[str, ...]:
    smoke = ("Synth-Lin with a quarter of the published β, so that both types of latents occur.",)
    return notes(
        size,
        *(smoke if size == "smoke" else ()),
        f"{N_SEEDS} seeds where the source shows one model; a run whose latents are all of one type says nothing.",
        f"{N_SNAPSHOTS[size]} snapshots over training; the source has 300.",
    )


def _fig(number: str, title: str, beta: float, colour: bool, judge: Any) -> Reproduction:
    name = f"b-fig-{number}"
    return Reproduction(name, title, f"{THESIS}, Figure {number}", partial(study_of, name, beta, colour), judge)


REPRODUCED = {
    one.id: one
    for one in (
        _fig("6.9", "Correlations of passive latents", 16.0, True, judge_matrix),
        _fig("6.10", "How often latents are correlated over training", 8.0, False, judge_often),
        _fig("6.11", "Correlations of an active latent over training", 8.0, False, judge_course),
    )
}
