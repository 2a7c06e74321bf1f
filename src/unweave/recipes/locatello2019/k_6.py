"""k-6: as the capacity rises, position is learned first, then scale, shape and orientation.

Burgess et al. (2018), Figure 3, quoted in the talk on Locatello et al. (2019).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.models.networks.conv import Conv
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import AnnealedVAE
from unweave.models.optimisers import Adam
from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.controls import before_training, changed
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.locatello2019.settings import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.known_factors import KnownFactors
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean
from unweave.training.experiment import Experiment, Plan

TITLE = "Position, then scale, shape and orientation, as the capacity rises"
PUBLISHED = {"x": 3.1, "y": 3.1, "scale": 7.3, "shape": 15.4, "orientation": 23.8}
"""Nats at which each factor has been learned."""
ORDER = (("x", "scale"), ("y", "scale"), ("scale", "shape"), ("shape", "orientation"))
SMOKE_NAMES = {"scale": "size"}
LEARNED = 0.25
"""Share of a factor's entropy in one latent from which it counts as learned."""
SAME = 1.0
"""Nats that are no farther apart count as the same."""
CAPACITY, N_SNAPSHOTS = 25.0, 50

EXTENTS = {
    "smoke": Extent(5, ("micro",), steps=1_000, n_samples=1_000),
    "small": Extent(5, ("dsprites",), steps=20_000, n_samples=5_000),
    "paper": Extent(10, ("dsprites",), steps=100_000, n_samples=10_000),
}


def study(size: str) -> Study:
    """AnnealedVAEs whose capacity rises to 25 nats over all of training, γ = 1,000, with fifty snapshots."""
    extent = at_size(size, EXTENTS)
    every = extent.steps // N_SNAPSHOTS
    base = Experiment(
        Micro() if size == "smoke" else DSprites(),
        AnnealedVAE(1000.0, CAPACITY, extent.steps),
        MLP((64,), (64,)) if size == "smoke" else Conv(),
        optimiser=Adam(2e-3 if size == "smoke" else 5e-4),
        latents=6 if size == "smoke" else 10,
        steps=extent.steps,
        history_every=every,
        snapshots=tuple(range(every, extent.steps + 1, every)),
        plan=Plan(threads=1),
    )
    runs = tuple(replace(base, seed=seed) for seed in range(extent.n_seeds))
    return Study(f"k-6-{size}", runs, (KnownFactors(extent.n_samples),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The capacity at which each factor is learned: their order, and the published numbers."""
    measure = KnownFactors(at_size(size, EXTENTS).n_samples)
    found = {one.seed: told for one in results.experiments if (told := results.found(one, measure)) is not None}
    steps = at_size(size, EXTENTS).steps
    learned = {name: _learned(found, _shown(name, size), steps) for name in PUBLISHED}
    comparisons: list[Comparison] = []
    for first, second in ORDER:
        if learned[first] and learned[second]:
            what = f"capacity at which {_shown(second, size)} is learned, less that of {_shown(first, size)}"
            comparisons.append(compare_difference(what, learned[second], learned[first], 1))
    for name, published in PUBLISHED.items():
        if learned[name]:
            what = f"nats at which {_shown(name, size)} is learned"
            comparisons.append(compare_mean(what, learned[name], published, tolerance=SAME))
    notes = (
        f"{len(found)} models, the capacity rising to {CAPACITY:g} nats over {steps:,} steps. A factor is learned at"
        f" the first of {N_SNAPSHOTS} snapshots from which one latent has a quarter of its entropy; one that is never"
        " learned counts as learned at the end, which is too early.",
        "The source gives each factor a latent of its own, q(z|f) from the true factors; here an ordinary encoder has"
        " to find them. Its numbers are read off a figure.",
        "The micro-world has no shape and no orientation, and its sizes stand for scales." if size == "smoke" else "",
    )
    figures = {
        "What the best latent knows of every factor": line_bands(_lines(found, steps), "capacity", "share known")
    }
    return Outcome(tuple(comparisons), figures, notes=tuple(filter(None, notes)))


def _shown(name: str, size: str) -> str:
    return SMOKE_NAMES.get(name, name) if size == "smoke" else name


def _learned(found: Mapping[int, Mapping[str, Any]], name: str, steps: int) -> dict[int, float]:
    """By seed the capacity, in nats, from which the share stays above the threshold; the end where it never does."""
    told = {}
    for seed, one in found.items():
        if name in one["shares"] and any(_above(one["shares"][factor])[-1] for factor in one["shares"]):
            below = np.flatnonzero(~_above(one["shares"][name]))
            place = min(int(below[-1]) + 1, len(one["steps"]) - 1) if len(below) else 0
            told[seed] = CAPACITY * one["steps"][place] / steps
    return told


def _above(shares: Sequence[float]) -> np.ndarray:
    return np.array(shares) >= LEARNED


def _lines(found: Mapping[int, Mapping[str, Any]], steps: int) -> dict[str, dict[float, list[float]]]:
    lines: dict[str, dict[float, list[float]]] = {}
    for one in found.values():
        for name, shares in one["shares"].items():
            line = lines.setdefault(name, {})
            for step, share in zip(one["steps"], shares):
                line.setdefault(CAPACITY * step / steps, []).append(share)
    return lines or {"nothing": {0.0: [0.0]}}


def _other_factors(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
    names = list(found["shares"])
    order = generator.permutation(len(names))
    return {**found, "shares": {name: found["shares"][names[place]] for name, place in zip(names, order)}}


CONTROLS = (
    changed(judge, "shuffled", "what is known of one factor taken for another, at random.", _other_factors),
    before_training(judge),
)

REPRODUCTION = Reproduction("k-6", TITLE, f"{SOURCE}, after Burgess et al. (2018), Figure 3", study, judge, CONTROLS)
