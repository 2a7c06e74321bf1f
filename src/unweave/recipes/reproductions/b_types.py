"""Figures 6.2 to 6.5: what active, mixed and passive latents look like, know, and how many they are (Bonheme, 2023)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from unweave.metrics.polarised.types import variable_types
from unweave.plots.curves import line_bands, stacked_types
from unweave.plots.latents import histograms
from unweave.recipes.reproductions.b_panels import Panel, grid_notes, n_samples, panel_study, shown
from unweave.recipes.reproductions.b_results import THESIS, Measured, check_size, finished, notes
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.studies.measures.accuracy_by_type import AccuracyByType
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.encoded import encoded
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean, compare_trend

BETA_VAE = (Panel("dsprites", "beta_vae"),)
ALL = tuple(Panel("dsprites", name) for name in ("beta_vae", "beta_tcvae", "factor_vae", "dip_vae_i", "dip_vae_ii"))
"""Figure 6.5 names neither its objectives nor its world: every objective but AnnealedVAE (Appendix B.1), dSprites."""

SHOWN_BETA = 8.0
"""Figures 6.2 and 6.3."""


def types_study(name: str, panels: Sequence[Panel], size: str) -> Study:
    """The panels' models with the types of their latents and what these share."""
    return panel_study(name, panels, (ByType(n_samples(size)),), size)


def accuracy_study(name: str, size: str) -> Study:
    """The β-VAEs with the accuracy of every combination of types."""
    return panel_study(name, BETA_VAE, (accuracy_measure(size),), size)


def accuracy_measure(size: str) -> AccuracyByType:
    """10,000 examples to learn from and 5,000 to test, as published; few at smoke."""
    check_size(size)
    return AccuracyByType(400, 200) if size == "smoke" else AccuracyByType()


def judge_distributions(representation: str, results: Results, size: str) -> Outcome:
    """Figures 6.2 (mean codes) and 6.3 (sampled codes) of a β-VAE with β = 8, or the nearest there is."""
    rows = BETA_VAE[0].rows(results, ByType(n_samples(size)), size)
    beta = min({row.strength for row in rows}, key=partial(_shows_less, rows), default=SHOWN_BETA)
    mine = [row for row in rows if row.strength == beta]
    words = (f"β is {beta:g}; the published figures have 8.",) if beta != SHOWN_BETA else ()
    judged = _of_mean(mine) if representation == "mean" else _of_sampled(mine)
    return Outcome(
        tuple(judged),
        figures=_histograms(mine, results),
        notes=notes(size, *grid_notes(size), *words, "'Close to' is read as within 0.1, the α of the rule for types."),
    )


def judge_accuracy(results: Results, size: str) -> Outcome:
    """Figure 6.4: what each combination of types knows of the factors."""
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


def judge_counts(results: Results, size: str) -> Outcome:
    """Figure 6.5: more passive latents under stronger regularisers."""
    comparisons, figures = [], {}
    for panel in shown(ALL, size):
        rows = panel.rows(results, ByType(n_samples(size)), size)
        comparisons += list(_counts(panel, rows))
        if rows:
            figures[panel.name] = stacked_types(*counts_by_strength(rows), x="strength", title=panel.name)
    return Outcome(tuple(comparisons), figures, notes=notes(size, *grid_notes(size)))


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


def _of_mean(rows: Sequence[Measured]) -> Iterator[Comparison]:
    passive = _per_run(rows, "variance_of_mean", "passive")
    yield compare_mean("variance of passive latents in mean codes", passive, 0.0, tolerance=0.1)
    active = _per_run(rows, "variance_of_mean", "active")
    what = "variance of active less that of passive latents, mean codes"
    yield compare_difference(what, list(active.values()), list(passive.values()), 1)
    mixed = _per_run(rows, "variance_of_mean", "mixed")
    what = "variance of mixed less that of passive latents, mean codes"
    yield compare_difference(what, list(mixed.values()), list(passive.values()), 1)


def _of_sampled(rows: Sequence[Measured]) -> Iterator[Comparison]:
    passive = _per_run(rows, "variance_of_sampled", "passive")
    yield compare_mean("variance of passive latents in sampled codes", passive, 1.0, tolerance=0.1)
    what = "variance of active latents, sampled over mean codes"
    yield compare_mean(what, _ratios(rows, "active"), 1.0, tolerance=0.1)
    what = "added variance of mixed less that of active latents"
    mixed, active = (list(_added(rows, kind).values()) for kind in ("mixed", "active"))
    yield compare_difference(what, mixed, active, 1)


def _per_run(rows: Sequence[Measured], column: str, kind: str) -> dict[int, float]:
    found = {}
    for row in rows:
        values = [value for value, one in zip(row.found[column], row.found["types"]) if one == kind]
        if values:
            found[row.seed] = fmean(values)
    return found


def _ratios(rows: Sequence[Measured], kind: str) -> dict[int, float]:
    sampled, mean = _per_run(rows, "variance_of_sampled", kind), _per_run(rows, "variance_of_mean", kind)
    return {seed: sampled[seed] / mean[seed] for seed in sampled}


def _added(rows: Sequence[Measured], kind: str) -> dict[int, float]:
    sampled, mean = _per_run(rows, "variance_of_sampled", kind), _per_run(rows, "variance_of_mean", kind)
    return {seed: sampled[seed] - mean[seed] for seed in sampled}


def _histograms(rows: Sequence[Measured], results: Results) -> dict[str, Any]:
    """The model with most types among its latents, every latent mean beside sampled; none where weights were left."""
    best = max(rows, key=lambda row: len(set(row.found["types"])), default=None)
    runs = [] if best is None else finished(results, [best.experiment])
    if best is None or not runs:
        return {}
    code = encoded(runs[0], 10_000)
    types = variable_types(code.mean, code.variance)
    words = f"Seed {best.seed}; active latents blue, mixed ones vermilion, passive ones grey"
    return {words: histograms(code.mean.numpy(), code.sampled.numpy(), types)}


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


def _counts(panel: Panel, rows: Sequence[Measured]) -> Iterator[Comparison]:
    if not rows:
        return
    x, seeds = np.array([row.strength for row in rows]), [row.seed for row in rows]
    unused = np.array([row.found["n_passive"] + row.found["n_mixed"] for row in rows], dtype=float)
    what = f"{panel.name}: passive and mixed latents against the strength"
    yield compare_trend(what, x, unused, 1, seeds=seeds)


def _fig(number: str, title: str, study: Any, judge: Any) -> Reproduction:
    return Reproduction(f"b-fig-{number}", title, f"{THESIS}, Figure {number}", study, judge)


REPRODUCED = {
    one.id: one
    for one in (
        _fig(
            "6.2",
            "Mean codes of passive, mixed and active latents",
            partial(types_study, "b-fig-6.2", BETA_VAE),
            partial(judge_distributions, "mean"),
        ),
        _fig(
            "6.3",
            "Sampled codes of passive, mixed and active latents",
            partial(types_study, "b-fig-6.3", BETA_VAE),
            partial(judge_distributions, "sampled"),
        ),
        _fig("6.4", "Accuracy by type of latent", partial(accuracy_study, "b-fig-6.4"), judge_accuracy),
        _fig("6.5", "Types of latents against the strength", partial(types_study, "b-fig-6.5", ALL), judge_counts),
    )
}
