"""z-table-3.2: how soon a training enters the polarised regime, and stays (Zietlow, 2022, Table 3.2)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.models.objectives import BetaVAE
from unweave.pages.outcome import Outcome
from unweave.plots.bands import Band, bands
from unweave.recipes.controls import apart
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.settings import (
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
from unweave.studies.measures.regime import RegimeCourse
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "Training is polarised almost from its beginning"

PUBLISHED = {
    "dsprites": (97.8, 90.6),
    "fashion_mnist": (99.8, 97.7),
    "mnist": (99.8, 99.5),
    "synth_lin": (99.8, 96.7),
    "synth_nonlin": (99.9, 98.5),
}
"""Z, Table 3.2: per cent of the training with Δ_KL < 3 % to its end, with as many latents as factors and with ten."""

HIGH = 10
TOLERANCE = 0.5
"""Percentage points. More would let a short training agree whatever it does: 8,000 of 375,000 steps are 2.1 points."""


EVERY = {"smoke": 100, "small": 500, "paper": 500}
"""Steps between two looks."""


def _iid(**steps: int) -> dict[str, dict[str, Any]]:
    """So many steps of a world, with examples drawn independently."""
    return {world: {"steps": n, "order": "iid"} for world, n in steps.items()}


EXTENTS = {
    "smoke": Extent(4, ("synth_lin", "synth_nonlin"), changes=_iid(synth_lin=8_000, synth_nonlin=4_000)),
    "small": Extent(
        16,
        ("dsprites", "synth_lin", "synth_nonlin"),
        changes=_iid(dsprites=50_000, synth_lin=100_000, synth_nonlin=100_000),
    ),
    "paper": Extent(10, tuple(PUBLISHED)),
}


def study(size: str) -> Study:
    """The β-VAE of every world, with as many latents as factors and with ten."""
    extent = at_size(size, EXTENTS)
    runs = [
        experiment(
            world,
            BetaVAE(SETTINGS[world].beta),
            seed,
            latents=latents,
            history_every=EVERY[size],
            **changes_at(extent, world),
        )
        for world in extent.worlds
        for latents in (SETTINGS[world].latents, HIGH)
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-table-3.2-{size}", tuple(runs), (RegimeCourse(every=EVERY[size]),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The shares, and that ten latents take longer than as many as there are factors."""
    worlds = at_size(size, EXTENTS).worlds
    comparisons = []
    for world in worlds:
        parts = _parts(results, world)
        for (name, part), published in zip(parts.items(), PUBLISHED[world]):
            what = f"{SETTINGS[world].title}, {name}: share of the training, per cent"
            comparisons.append(_share(what, part, world, published))
        comparisons.append(_longer(world, *parts.values()))
    figures = {"Δ_KL over training": _figure(results, worlds)}
    groups = {f"{SETTINGS[w].title}, {name}": part for w in worlds for name, part in _parts(results, w).items()}
    columns = {"since step": "regime.since", "share of this training": "regime.share", "active": "regime.n_active"}
    return Outcome(tuple(comparisons), figures, {"When the regime begins": spread_rows(groups, columns)}, _notes(size))


def shares(part: "pl.DataFrame", world: str) -> dict[int, float]:
    """Per cent of a training of published length, by seed: all of it but the steps before the regime began.

    A run of published length that was not polarised at its end has 0. A shorter one does not say when it would have
    begun, and is not a number.
    """
    total = SETTINGS[world].steps()
    since, lengths = by_seed(part, "regime.since"), by_seed(part, "steps")
    never = {seed: 0.0 if lengths[seed] >= total else np.nan for seed in since}
    return {seed: never[seed] if np.isnan(step) else 100.0 * (1.0 - step / total) for seed, step in since.items()}


def _share(what: str, part: "pl.DataFrame", world: str, published: float) -> Comparison:
    found = shares(part, world)
    compared = compare_mean(what, found, published, tolerance=TOLERANCE, unit="points")
    n_late = int(np.isnan(list(found.values())).sum())
    if not n_late:
        return compared
    # the runs that did begin are the quick ones: their mean would flatter
    told = f"{n_late} of {len(found)} runs were not polarised when this training ended"
    return replace(compared, ours=None, interval=None, verdict="cannot tell", note=told)


def _parts(results: Results, world: str) -> "dict[str, pl.DataFrame]":
    exact = SETTINGS[world].latents
    table = where(results.table, world__name=world)
    return {f"{exact} latents": where(table, latents=exact), f"{HIGH} latents": where(table, latents=HIGH)}


def _longer(world: str, exact: "pl.DataFrame", high: "pl.DataFrame") -> Comparison:
    what = f"{SETTINGS[world].title}: share with as many latents as factors beside ten"
    return compare_difference(what, shares(exact, world), shares(high, world), 1)


def _figure(results: Results, worlds: tuple[str, ...]) -> "matplotlib.figure.Figure":
    panels = {}
    for world in worlds:
        lines = {}
        for name, part in _parts(results, world).items():
            if part.height and "regime.delta" in part.columns:
                lines[name] = _band(part)
        if lines:
            panels[SETTINGS[world].title] = lines
    return bands(panels, "step", "Δ_KL")


def _band(part: "pl.DataFrame") -> Band:
    curves = np.array(part["regime.delta"].to_list(), dtype=float)
    # the first looks are several times the threshold, and would hide all the rest
    curves = np.minimum(curves, 0.3)
    low, high = np.quantile(curves, [0.0, 1.0], axis=0)
    return Band(np.array(part["regime.steps"].to_list()[0]), np.median(curves, axis=0), low, high)


def _notes(size: str) -> tuple[str, ...]:
    changed = {
        "smoke": "Trainings of 8,000 and 4,000 steps on the synthetic worlds, looked at every 100. What is measured is"
        " the step at which the regime begins; the share is that of a training of published length which begins alike"
        " and then stays polarised. This size cannot tell whether it stays.",
        "small": "dSprites and the synthetic worlds, networks and optimisers as published, 50,000 and 100,000 steps;"
        " examples are drawn independently. The share is that of a training of published length which begins alike and"
        " then stays polarised.",
        "paper": "As published.",
    }
    lengths = ", ".join(f"{row.title} {row.steps():,}" for row in SETTINGS.values())
    return notes(
        changed[size],
        f"Published lengths in steps, for batches of 64: {lengths}. With smaller batches a training has more steps and"
        " the initial phase is a smaller share of it.",
        "Δ_KL is that of a training batch; active are latents with std(μ) > 0.5 in it. The band is from the least to"
        " the greatest over seeds, cut off at 0.3.",
        UNSAID,
    )


SENTENCE = "the steps at which the regime begins dealt to all worlds and numbers of latents at random."
CONTROLS = (apart(judge, SENTENCE, ["regime.since"]),)

REPRODUCTION = Reproduction("z-table-3.2", TITLE, f"{SOURCE}, Table 3.2", study, judge, CONTROLS)
