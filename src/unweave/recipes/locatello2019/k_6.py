"""k-6: as the capacity rises, position is told first, then scale, shape and orientation.

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
from unweave.models.objectives import KnownFactors
from unweave.models.optimisers import Adam
from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.recipes.controls import changed
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.locatello2019.settings import SOURCE
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.told_factors import ToldFactors
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_between, compare_difference
from unweave.training.experiment import Experiment, Plan

TITLE = "Position, then scale, shape and orientation, as the capacity rises"
PUBLISHED = {"x": (0.0, 3.1), "y": (0.0, 3.1), "scale": (3.1, 7.3), "shape": (7.3, 15.4), "orientation": (15.4, 23.8)}
"""Nats after which, and by which, each factor is seen in the reconstructions that the figure shows."""
ORDER = (("x", "scale"), ("y", "scale"), ("scale", "shape"), ("shape", "orientation"))
SMOKE_NAMES = {"scale": "size"}
TOLD = 0.25
"""Nats for every nat of a factor's entropy from which it counts as told."""
CAPACITY, N_ROWS = 25.0, 100
RATES = {"smoke": 1e-2, "small": 1e-3, "paper": 5e-4}

EXTENTS = {
    "smoke": Extent(5, ("micro",), steps=1_000),
    "small": Extent(5, ("dsprites",), steps=40_000),
    "paper": Extent(10, ("dsprites",), steps=100_000),
}


def study(size: str) -> Study:
    """Decoders that are told the factors through a capacity that rises to 25 nats over all of training, γ = 1,000."""
    extent, world = at_size(size, EXTENTS), Micro() if size == "smoke" else DSprites()
    base = Experiment(
        world,
        KnownFactors(1000.0, CAPACITY, extent.steps),
        MLP((64,), (64,)) if size == "smoke" else Conv(),
        optimiser=Adam(RATES[size]),
        latents=len(_entropies(size)),
        steps=extent.steps,
        history_every=extent.steps // N_ROWS,
        plan=Plan(threads=1),
    )
    runs = tuple(replace(base, seed=seed) for seed in range(extent.n_seeds))
    return Study(f"k-6-{size}", runs, (ToldFactors(),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The capacity at which each factor is told: their order, and the published capacities around it."""
    found = {one.seed: told for one in results.experiments if (told := results.found(one, ToldFactors())) is not None}
    steps = at_size(size, EXTENTS).steps
    told = {name: _told(found, _shown(name, size), size) for name in PUBLISHED}
    comparisons: list[Comparison] = []
    for first, second in ORDER:
        if told[first] and told[second]:
            what = f"capacity at which {_shown(second, size)} is told, less that of {_shown(first, size)}"
            comparisons.append(compare_difference(what, told[second], told[first], 1))
    if size == "paper":
        comparisons += [_between(name, told[name]) for name in PUBLISHED if told[name]]
    notes = (
        f"{len(found)} decoders, each told every factor by one latent, z = a f + σ ε with a and σ learned, the capacity"
        f" rising to {CAPACITY:g} nats over {steps:,} steps. A factor is told from the row of the history after which"
        " its latent's KL stays above a quarter of the factor's entropy; one that never is counts as told at the end,"
        " which is too early.",
        "The source prints no numbers but the capacities of four rows of reconstructions and what is seen in each.",
        "The micro-world has no shape and no orientation, and its sizes stand for scales." if size == "smoke" else "",
        "40,000 steps at a rate of 0.001 for the published 100,000 (at 0.0005, which is ours)."
        if size == "small"
        else "",
    )
    figures = {"Nats told of every factor": line_bands(_lines(found, steps), "capacity", "nats", even=False)}
    return Outcome(tuple(comparisons), figures, notes=tuple(filter(None, notes)))


def _between(name: str, told: Mapping[int, float]) -> Comparison:
    """That a factor is told after one row of the figure, and by the next."""
    nats = np.array(list(told.values()))
    interval = mean_interval(nats) if len(nats) > 2 else None
    what = f"capacity at which {name} is told, nats"
    return compare_between(what, float(nats.mean()), interval, PUBLISHED[name], len(nats), "t over seeds")


def _shown(name: str, size: str) -> str:
    return SMOKE_NAMES.get(name, name) if size == "smoke" else name


def _entropies(size: str) -> dict[str, float]:
    """Of every factor of the world, in nats: all values are as frequent."""
    space = (Micro() if size == "smoke" else DSprites()).card().space
    assert space is not None
    return {factor.name: float(np.log(factor.size)) for factor in space.factors}


def _told(found: Mapping[int, Mapping[str, Any]], name: str, size: str) -> dict[int, float]:
    """By seed the capacity, in nats, from which a factor's KL stays above the threshold; the end where it never does.

    A run that tells no factor at its end says nothing.
    """
    entropies, steps, told = _entropies(size), at_size(size, EXTENTS).steps, {}
    for seed, one in found.items():
        above = {factor: _above(line, entropies[factor]) for factor, line in one["nats"].items()}
        if name in above and any(line[-1] for line in above.values()):
            below = np.flatnonzero(~above[name])
            place = min(int(below[-1]) + 1, len(one["steps"]) - 1) if len(below) else 0
            told[seed] = CAPACITY * one["steps"][place] / steps
    return told


def _above(nats: Sequence[float], entropy: float) -> np.ndarray:
    return np.array(nats) >= TOLD * entropy


def _lines(found: Mapping[int, Mapping[str, Any]], steps: int) -> dict[str, dict[float, list[float]]]:
    lines: dict[str, dict[float, list[float]]] = {}
    for one in found.values():
        for name, nats in one["nats"].items():
            line = lines.setdefault(name, {})
            for step, value in zip(one["steps"], nats):
                line.setdefault(CAPACITY * step / steps, []).append(value)
    return lines or {"nothing": {0.0: [0.0]}}


def _other_factors(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
    names = list(found["nats"])
    order = generator.permutation(len(names))
    return {**found, "nats": {name: found["nats"][names[place]] for name, place in zip(names, order)}}


CONTROLS = (changed(judge, "shuffled", "what is told of one factor taken for another, at random.", _other_factors),)

REPRODUCTION = Reproduction("k-6", TITLE, f"{SOURCE}, after Burgess et al. (2018), Figure 3", study, judge, CONTROLS)
