"""What Figures 6.2, 6.3, 6.5 and those of dependence share: types of latents over strengths (Bonheme, 2023, §6.4)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.latents import histograms
from unweave.recipes.bonheme2023.panels import Panel, grid_notes, n_samples, panel_study
from unweave.recipes.bonheme2023.results import Measured, notes
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.measure import Measure
from unweave.studies.measures.spread import Spread
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison

BETA_VAE = (Panel("dsprites", "beta_vae"),)


SHOWN_BETA = 8.0
"""Figures 6.2 and 6.3."""


Claims = Callable[[Sequence[Measured]], Iterator[Comparison]]


def types_study(name: str, panels: Sequence[Panel], size: str) -> Study:
    """The panels' models with the types of their latents and what these share."""
    return panel_study(name, panels, (ByType(n_samples(size)),), size)


def judge_distributions(claims: Claims, results: Results, size: str, measure: Measure | None = None) -> Outcome:
    """Figures 6.2 (mean codes) and 6.3 (sampled codes) of a β-VAE with β = 8, or the nearest there is."""
    rows = BETA_VAE[0].rows(results, measure or ByType(n_samples(size)), size)
    beta = min({row.strength for row in rows}, key=partial(_shows_less, rows), default=SHOWN_BETA)
    mine = [row for row in rows if row.strength == beta]
    words = (f"β is {beta:g}; the published figures have 8.",) if beta != SHOWN_BETA else ()
    return Outcome(
        tuple(claims(mine)),
        figures=_histograms(mine, results, size),
        notes=notes(size, *grid_notes(size), *words, "'Close to' is read as within 0.1, the α of the rule for types."),
    )


def counts_by_strength(rows: Sequence[Measured]) -> tuple[list[float], dict[str, list[float]]]:
    """Strengths, and for each the mean number of latents of every type."""
    strengths = sorted({row.strength for row in rows})
    kinds = ("active", "mixed", "passive")
    counts = {
        kind: [fmean(row.found[f"n_{kind}"] for row in rows if row.strength == one) for one in strengths]
        for kind in kinds
    }
    return strengths, counts


def _shows_less(rows: Sequence[Measured], beta: float) -> tuple[bool, int, float]:
    """The published strength first; else the one with most models that have active and passive latents."""
    mine = [row for row in rows if row.strength == beta]
    telling = sum(row.found["n_active"] > 0 and row.found["n_passive"] > 0 for row in mine)
    return beta != SHOWN_BETA, -telling, abs(beta - SHOWN_BETA)


def per_run(rows: Sequence[Measured], column: str, kind: str) -> dict[int, float]:
    """By seed, the mean of a column over the latents of a type; runs without such latents are left out."""
    found = {}
    for row in rows:
        values = [value for value, one in zip(row.found[column], row.found["types"]) if one == kind]
        if values:
            found[row.seed] = fmean(values)
    return found


def spread_measure(size: str) -> Spread:
    """What the histograms of Figures 6.2 and 6.3 are drawn from."""
    return Spread(n_samples(size))


def _histograms(rows: Sequence[Measured], results: Results, size: str) -> dict[str, Any]:
    """The model with most types among its latents, every latent mean beside sampled."""
    best = max(rows, key=lambda row: len(set(row.found["types"])), default=None)
    values = None if best is None else results.found(best.experiment, spread_measure(size))
    if best is None or not values:
        return {}
    mean, sampled = (np.array(values[name]).T for name in ("mean", "sampled"))
    if not np.isfinite(mean).all() or not np.isfinite(sampled).all():
        return {}
    words = f"Seed {best.seed}; active latents blue, mixed ones vermilion, passive ones grey"
    return {words: histograms(mean, sampled, values["types"])}
