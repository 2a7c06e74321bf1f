"""Figures 6.6 to 6.8 and Appendix B: what passive latents do to total correlation, mutual information and rank."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from unweave.plots.curves import line_bands, stacked_types
from unweave.recipes.reproductions.b_panels import Panel, grid_notes, n_samples, panel_study, shown
from unweave.recipes.reproductions.b_results import THESIS, Measured, notes
from unweave.recipes.reproductions.b_types import counts_by_strength
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

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


def judge(parts: Sequence[Part], results: Results, size: str) -> Outcome:
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


def correlation_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6a: passive latents leave the TC of samples as it is, and drive that of means away from it."""
    passive = _passive(rows)
    sampled, gap = _column(rows, "sampled", TC), _gap(rows, TC)
    yield compare_trend("TC of sampled codes against the number of passive latents", passive, sampled, 0, tolerance=0.5)
    yield compare_trend("TC of mean less sampled codes against the number of passive latents", passive, gap, 1)


def information_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6b: averaged MI falls in samples (Theorem 6.4.2) and parts from that of means."""
    passive = _passive(rows)
    sampled, gap = _column(rows, "sampled", MI), _gap(rows, MI)
    yield compare_trend("MI of sampled codes against the number of passive latents", passive, sampled, -1)
    yield compare_trend("MI of mean less sampled codes against the number of passive latents", passive, gap, 1)


def rank_and_passive(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figure 6.6c: the effective rank is the number of latents, for means less the passive ones."""
    mean, sampled = _keyed(rows, "mean", RANK), _keyed(rows, "sampled", RANK)
    size = {key: float(len(row.found["types"])) for key, row in zip(mean, rows)}
    used = {key: size[key] - row.found["n_passive"] for key, row in zip(mean, rows)}
    yield compare_difference("rank of mean codes less the latents that are not passive", mean, used, 0, tolerance=1.0)
    yield compare_difference("rank of sampled codes less the number of latents", sampled, size, 0, tolerance=1.0)


def only_passive(score: str, rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Figures 6.7 and 6.8: without passive latents, means are no more dependent than samples."""
    with_passive = [row for row in rows if row.found["n_passive"] > 0]
    short = "TC" if score == TC else "MI"
    gaps = {subset: dict(zip(_keys(with_passive), _gap(with_passive, score, subset))) for subset in SUBSETS}
    what = f"{short} of mean less sampled codes: all latents, less without passive"
    yield compare_difference(what, gaps["all"], gaps["without passive"], 1)
    what = f"{short} of mean less sampled codes: without passive, less active only"
    yield compare_difference(what, gaps["without passive"], gaps["active"], 1)
    share = {key: abs(gaps["active"][key]) / max(abs(gaps["all"][key]), 1e-9) for key in gaps["all"]}
    half = dict.fromkeys(share, 0.5)
    yield compare_difference(f"share of the {short} gap that active latents leave, less one half", share, half, -1)


def annealed(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """Appendix B.1: about as many passive latents at any capacity, but more correlated ones at a larger one."""
    capacity, seeds = [row.strength for row in rows], [row.seed for row in rows]
    passive = _passive(rows)
    said = "passive latents against the capacity (fewer are expected, the source finds none fewer)"
    yield compare_trend(said, capacity, passive, 0, seeds=seeds, tolerance=0.5)
    for score, name in ((TC, "TC"), (MI, "MI")):
        yield compare_trend(f"{name} of mean codes against the capacity", capacity, _column(rows, "mean", score), 1)
    mine = [row for row in rows if row.found["n_passive"] > 0]
    everything, active = _keyed(mine, "mean", TC), _keyed(mine, "mean", TC, "active")
    yield compare_difference("TC of mean codes: all latents less active ones only", everything, active, 1)


def _keys(rows: Sequence[Measured]) -> list[tuple[float, int]]:
    return [(row.strength, row.seed) for row in rows]


def _column(rows: Sequence[Measured], representation: str, score: str, subset: str = "all") -> np.ndarray:
    return np.array([row.found[representation][subset][score] for row in rows], dtype=np.float64)


def _keyed(
    rows: Sequence[Measured], representation: str, score: str, subset: str = "all"
) -> dict[tuple[float, int], float]:
    return dict(zip(_keys(rows), _column(rows, representation, score, subset).tolist()))


def _gap(rows: Sequence[Measured], score: str, subset: str = "all") -> np.ndarray:
    return _column(rows, "mean", score, subset) - _column(rows, "sampled", score, subset)


def _passive(rows: Sequence[Measured]) -> np.ndarray:
    return np.array([row.found["n_passive"] for row in rows], dtype=np.float64)


def _curves(rows: Sequence[Measured], score: str, subset: str) -> Mapping[str, Mapping[float, Sequence[float]]]:
    lines: dict[str, dict[float, list[float]]] = {"mean codes": {}, "sampled codes": {}}
    for row in rows:
        for representation in ("mean", "sampled"):
            line = lines[f"{representation} codes"]
            line.setdefault(row.strength, []).append(row.found[representation][subset][score])
    return lines


PARTS: dict[str, tuple[str, tuple[Part, ...]]] = {
    "6.6": (
        "TC, MI and effective rank against the number of passive latents",
        (
            Part(Panel("smallnorb", "beta_tcvae"), TC, correlation_and_passive),
            Part(Panel("cars3d", "dip_vae_ii"), MI, information_and_passive),
            Part(Panel("color_dsprites", "beta_tcvae"), RANK, rank_and_passive),
        ),
    ),
    "6.7": (
        "MI of mean and sampled codes, with and without passive latents",
        (Part(Panel("dsprites", "dip_vae_ii"), MI, partial(only_passive, MI), SUBSETS),),
    ),
    "6.8": (
        "TC of mean and sampled codes, with and without passive latents",
        (Part(Panel("noisy_dsprites", "beta_tcvae"), TC, partial(only_passive, TC), SUBSETS),),
    ),
    "B": (
        "AnnealedVAE: passive latents at every capacity (Figures B.1 to B.5)",
        tuple(
            Part(Panel(world, "annealed_vae"), TC, annealed, ("all", "active"))
            for world in ("dsprites", "scream_dsprites", "cars3d")
        ),
    ),
}


def _reproduction(number: str) -> Reproduction:
    title, parts = PARTS[number]
    name = f"b-fig-{number}"
    source = f"{THESIS}, {'Appendix B' if number == 'B' else f'Figure {number}'}"
    return Reproduction(name, title, source, partial(study_of, name, parts), partial(judge, parts))


REPRODUCED = {f"b-fig-{number}": _reproduction(number) for number in PARTS}
