"""z-fig-3.7: a plateau over β, then a collapse in steps (Zietlow, 2022, §3.3.6 and Figure 3.7)."""

import functools
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave.data.synthetic import SynthLin
from unweave.models.closed_form import linear_optimum
from unweave.models.objectives import BetaVAE
from unweave.pages.outcome import Outcome
from unweave.plots.bands import Band, bands
from unweave.recipes.controls import apart
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.settings import (
    BROAD,
    CONVOLUTIONAL,
    QUICK,
    QUICKENED,
    SETTINGS,
    SOURCE,
    UNSAID,
    by_seed,
    changes_at,
    experiment,
    notes,
    spread_rows,
    where,
)
from unweave.shapes import Tensor
from unweave.studies.measures.decoder import DecoderGeometry
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.statistics.settings import column
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean, compare_share

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "Over β: a plateau, then a collapse in steps"

PUBLISHED_PLATEAU = 1.0
"""Z, §3.3.6: on Synth. Lin. the score "reaches almost 1.0 and forms a plateau", then "collapses in discrete stages"."""

PLATEAU_TOLERANCE = 0.05
"""What "almost" may be."""


LINEAR = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
WIDE = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
NONLINEAR = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
IMAGES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
EVERY_WORLD = {"synth_lin": WIDE, "synth_nonlin": NONLINEAR, "dsprites": IMAGES}
BETAS: dict[str, dict[str, tuple[float, ...]]] = {
    "smoke": {"synth_lin": LINEAR},
    "small": EVERY_WORLD,
    "paper": EVERY_WORLD,
}
"""The values of β are ours: the figure shows its axis without listing them."""

EXTENTS = {
    "smoke": Extent(5, changes={"synth_lin": QUICK | {"steps": 8_000}}),
    "small": Extent(
        8,
        changes={
            "synth_lin": QUICK | {"steps": 20_000},
            "synth_nonlin": BROAD,
            "dsprites": CONVOLUTIONAL | {"steps": 24_000},
        },
    ),
    "paper": Extent(5),
}


def study(size: str) -> Study:
    """The β-VAE of every world over a grid of β."""
    extent = at_size(size, EXTENTS)
    runs = [
        experiment(world, BetaVAE(beta), seed, **changes_at(extent, world))
        for world, betas in BETAS[size].items()
        for beta in betas
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-fig-3.7-{size}", tuple(runs), (DecoderGeometry(5_000, 128),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The plateau and the steps on Synth. Lin., with the closed form beside them; the fall at both ends elsewhere."""
    lines = {world: _by_beta(results, world, betas) for world, betas in at_size(size, BETAS).items()}
    comparisons = _linear(lines["synth_lin"])
    for world, parts in lines.items():
        comparisons += _ends(world, parts)
    figures = {
        f"Figure 3.7: {shown} over β": _figure(lines, name, shown)
        for shown, name in (("DS", "decoder.ds"), ("DtO", "decoder.dto_active"), ("active latents", "decoder.n_active"))
    }
    groups = {f"{SETTINGS[w].title}, β = {b:g}": part for w, parts in lines.items() for b, part in parts.items()}
    columns = {"DS": "decoder.ds", "DtO": "decoder.dto", "active": "decoder.n_active"}
    return Outcome(tuple(comparisons), figures, {"Every β": spread_rows(groups, columns)}, _notes(size))


def expected_active(beta: float) -> int:
    """How many latents a linear β-VAE keeps on Synth. Lin.: the directions with an eigenvalue above β/2."""
    return linear_optimum(_covariance(), SETTINGS["synth_lin"].latents, noise=0.5, beta=beta).n_active


@functools.cache
def _covariance() -> Tensor:
    return torch.cov(SynthLin().load().store.double().T, correction=0)


def _by_beta(results: Results, world: str, betas: tuple[float, ...]) -> "dict[float, pl.DataFrame]":
    table = where(results.table, world__name=world)
    return {beta: where(table, objective__beta=beta) for beta in betas}


@dataclass(frozen=True)
class Best:
    """For every seed the β of the highest mean DS over the other seeds: no run has a say in its own choice."""

    betas: dict[int, float]
    scores: dict[int, float]
    """DS of every seed at its β."""

    @property
    def words(self) -> str:
        """Which β were chosen, the most frequent first."""
        return f"β = {' or '.join(f'{beta:g}' for beta, _ in Counter(self.betas.values()).most_common())}"


def best_of(parts: "dict[float, pl.DataFrame]") -> Best:
    """The best β of a world, chosen for every seed by the others; the first one where these have no score."""
    scores = {beta: by_seed(part, "decoder.ds") for beta, part in parts.items()}
    seeds = dict.fromkeys(seed for found in scores.values() for seed in found)
    betas = {seed: _highest(scores, seed) for seed in seeds}
    return Best(betas, {seed: scores[beta].get(seed, math.nan) for seed, beta in betas.items()})


def _highest(scores: dict[float, dict[int, float]], without: int) -> float:
    others = {beta: [found[seed] for seed in found if seed != without] for beta, found in scores.items()}
    means = {beta: float(np.mean(known)) for beta, found in others.items() if (known := _finite(found))}
    return max(means, key=lambda beta: means[beta]) if means else next(iter(scores))


def _finite(values: list[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _linear(parts: "dict[float, pl.DataFrame]") -> list[Comparison]:
    best = best_of(parts)
    what = "Synth. Lin.: DS on the plateau, at the best β"
    found = [_noted(compare_mean(what, best.scores, PUBLISHED_PLATEAU, tolerance=PLATEAU_TOLERANCE), best.words)]
    right, n = 0, 0
    for beta, part in parts.items():
        counted = column(part, "decoder.n_active")
        right += int((counted == expected_active(beta)).sum())
        n += int(np.isfinite(counted).sum())
    found.append(
        compare_share(
            "Synth. Lin.: runs that keep as many latents as the closed form says", right, n, 1.0, tolerance=0.15
        )
    )
    steps = {expected_active(beta): beta for beta in parts}
    before, words = best.scores, best.words
    for kept in (1, 0):
        if kept in steps:
            what = f"Synth. Lin.: DS one step before {kept} of 2 latents are left, beside there"
            there = by_seed(parts[steps[kept]], "decoder.ds")
            found.append(_noted(compare_difference(what, before, there, 1), f"{words} and {steps[kept]:g}"))
            before, words = there, f"β = {steps[kept]:g}"
    return found


def _ends(world: str, parts: "dict[float, pl.DataFrame]") -> list[Comparison]:
    """Too small a β does not orthogonalise, too large a one prunes too much."""
    title, best = SETTINGS[world].title, best_of(parts)
    first, last = min(parts), max(parts)
    found = []
    for end, words in ((first, "too small"), (last, "too large")):
        if set(best.betas.values()) != {end}:
            what = f"{title}: DS at the best β beside one that is {words}"
            compared = compare_difference(what, best.scores, by_seed(parts[end], "decoder.ds"), 1)
            found.append(_noted(compared, f"{best.words} and {end:g}"))
    return found


def _noted(one: Comparison, words: str) -> Comparison:
    return replace(one, note="; ".join(filter(None, (words, one.note))))


def _figure(lines: "dict[str, dict[float, pl.DataFrame]]", name: str, shown: str) -> "matplotlib.figure.Figure":
    drawn = {world: parts for world, parts in lines.items() if any(part.height for part in parts.values())}
    panels = {SETTINGS[world].title: {"mean over seeds": _band(parts, name)} for world, parts in drawn.items()}
    return bands(panels, "β", shown, logarithmic=True)


def _band(parts: "dict[float, pl.DataFrame]", name: str) -> Band:
    middle, low, high = [], [], []
    for part in parts.values():
        values = column(part, name)
        known = values[np.isfinite(values)]
        ends = mean_interval(known) if len(known) > 1 else (np.nan, np.nan)
        middle.append(known.mean() if len(known) else np.nan)
        low.append(ends[0])
        high.append(ends[1])
    return Band(np.array(list(parts)), np.array(middle), np.array(low), np.array(high))


def _notes(size: str) -> tuple[str, ...]:
    changed = {
        "smoke": "Synth. Lin. alone, 8,000 steps with batches of 256 and a learning rate of 0.01. The collapse can be"
        " told; the left end is where this short training has not turned the latents yet, which a longer one would.",
        "small": "On dSprites the convolutional network and Adam with 24,000 steps; on the synthetic worlds 20,000"
        " steps with batches of 256 and 1,024 and learning rates of 0.01 and 0.003.",
        "paper": "Networks, optimisers and lengths as published; five restarts for every β.",
    }
    return notes(
        changed[size],
        QUICKENED if size != "paper" else "",
        "Theory for the linear model: a direction of variance λ is kept while β < 2λ, for a summed squared error. On"
        " Synth. Lin. that is up to 1/6 for the weaker factor and up to 2/3 for the stronger one.",
        "The plateau has no end on the left in theory either: any β > 0 has the same directions as its optimum, and a"
        " smaller one only turns to them more slowly.",
        "The best β is chosen for every seed by the mean DS of the other seeds, so that no run that is compared has"
        " a say in its own choice.",
        "The dashed lines of the figure, the values that the other experiments used: 4 on dSprites, 0.0001 on Synth."
        " Lin., 0.001 on Synth. Non-Lin.",
        UNSAID,
    )


SENTENCE = "scores and numbers of latents in use dealt to all β and worlds at random, each by itself."
CONTROLS = (apart(judge, SENTENCE, ["decoder.ds", "decoder.n_active"]),)

REPRODUCTION = Reproduction("z-fig-3.7", TITLE, f"{SOURCE}, Figure 3.7", study, judge, CONTROLS)
