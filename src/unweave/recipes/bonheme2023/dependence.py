"""What Figures 6.6 to 6.8 and Appendix B share: what passive latents do to TC, MI and rank (Bonheme, 2023)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands, stacked_types
from unweave.recipes.bonheme2023.latent_types import counts_by_strength
from unweave.recipes.bonheme2023.panels import Panel, grid_notes, n_samples, panel_study, shown
from unweave.recipes.bonheme2023.results import Measured, notes
from unweave.recipes.controls import changed
from unweave.recipes.reproduction import Control, Judge
from unweave.studies.measures.by_type import ByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

LITTLE = 0.3
"""A rank correlation below which there is no trend: it explains less than a tenth of the ranks' variance."""
TC, MI, RANK = "total_correlation", "averaged_mi", "effective_rank"
SUBSETS = ("all", "without passive", "active")

Claims = Callable[[Sequence[Measured]], Iterator[Comparison]]


@dataclass(frozen=True)
class Part:
    """One panel with the score that it shows, over which latents, and what it claims."""

    panel: Panel
    score: str
    claims: Claims
    subsets: tuple[str, ...] = ("all",)


def study_of(name: str, parts: Sequence[Part], size: str) -> Study:
    """The models of all parts."""
    return panel_study(name, [part.panel for part in parts], (ByType(n_samples(size)),), size)


def judge_of(parts: Sequence[Part], results: Results, size: str) -> Outcome:
    """Every part's curves over the strength, the numbers of types below them, and its claims."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    missing, seen = [], set()
    for part in parts:
        panels = shown([part.panel], size)
        same = ("" if size == "smoke" else panels[0].world, panels[0].objective, part.score, part.claims)
        if same in seen:
            continue
        seen.add(same)
        if panels[0] != part.panel and size != "smoke":
            missing.append(f"{part.panel.name} is left out at this size; {panels[0].name} stands in.")
        rows = panels[0].rows(results, ByType(n_samples(size)), size)
        if not rows:
            continue
        comparisons += [replace(one, what=f"{panels[0].name}: {one.what}") for one in part.claims(rows)]
        along = "capacity" if panels[0].objective == "annealed_vae" else "strength"
        for subset in part.subsets:
            title = f"{part.score.replace('_', ' ')}, {panels[0].name}, {subset} latents"
            figures[title] = line_bands(_curves(rows, part.score, subset), along, part.score.replace("_", " "))
        counts = stacked_types(*counts_by_strength(rows), x=along, title=f"Types, {panels[0].name}")
        figures.setdefault(f"Types, {panels[0].name}", counts)
    return Outcome(tuple(comparisons), figures, notes=notes(size, *grid_notes(size), *missing))


def only_passive(score: str, rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figures 6.7 and 6.8: without passive latents, means are no more dependent than samples.

    A model with fewer than two active latents has collapsed: what one latent shares with itself is 0 by definition.
    """
    with_passive = [row for row in rows if row.found["n_passive"] > 0 and row.found["n_active"] > 1]
    short = "TC" if score == TC else "MI"
    gaps = {subset: dict(zip(keys(with_passive), gap_of(with_passive, score, subset))) for subset in SUBSETS}
    what = f"{short} of mean less sampled codes: all latents, less without passive"
    yield compare_difference(what, gaps["all"], gaps["without passive"], 1)
    what = f"{short} of mean less sampled codes: without passive, less active only"
    yield compare_difference(what, gaps["without passive"], gaps["active"], 1)
    share = {key: abs(gaps["active"][key]) / max(abs(gaps["all"][key]), 1e-9) for key in gaps["all"]}
    half = dict.fromkeys(share, 0.5)
    yield compare_difference(f"share of the {short} gap that active latents leave, less one half", share, half, -1)


def any_subset(judge: Judge, *, about: str = "") -> Control:
    """What all latents, those that are not passive and the active ones share, dealt to these three at random."""

    def change(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
        order = generator.permutation(SUBSETS).tolist()
        moved = {part: {a: found[part][b] for a, b in zip(SUBSETS, order)} for part in ("mean", "sampled")}
        return {**found, **moved}

    sentence = "scores of all latents, of those not passive and of the active ones exchanged at random in every model."
    return changed(judge, "shuffled", sentence, change, about=about)


def keys(rows: Sequence[Measured]) -> list[tuple[float, int]]:
    """Strength and seed of every run."""
    return [(row.strength, row.seed) for row in rows]


def column(rows: Sequence[Measured], representation: str, score: str, subset: str = "all") -> np.ndarray:
    """A score of some latents, by run."""
    return np.array([row.found[representation][subset][score] for row in rows], dtype=np.float64)


def keyed(
    rows: Sequence[Measured], representation: str, score: str, subset: str = "all"
) -> dict[tuple[float, int], float]:
    """The same by strength and seed."""
    return dict(zip(keys(rows), column(rows, representation, score, subset).tolist()))


def gap_of(rows: Sequence[Measured], score: str, subset: str = "all") -> np.ndarray:
    """By how much the score of mean codes exceeds that of sampled ones."""
    return column(rows, "mean", score, subset) - column(rows, "sampled", score, subset)


def n_passive(rows: Sequence[Measured]) -> np.ndarray:
    """Passive latents, by run."""
    return np.array([row.found["n_passive"] for row in rows], dtype=np.float64)


def _curves(rows: Sequence[Measured], score: str, subset: str) -> Mapping[str, Mapping[float, Sequence[float]]]:
    lines: dict[str, dict[float, list[float]]] = {"mean codes": {}, "sampled codes": {}}
    for row in rows:
        for representation in ("mean", "sampled"):
            line = lines[f"{representation} codes"]
            line.setdefault(row.strength, []).append(row.found[representation][subset][score])
    return lines
