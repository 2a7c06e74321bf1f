"""What Figures 5.1 to 5.4 share: iVAEs that learn their prior variance, or mean and variance (Bonheme, 2023, §5.3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.models.networks.conv import Conv, ConvStudy
from unweave.models.objectives.ivae import IVAE
from unweave.models.optimisers import Adam
from unweave.plots.histogram import histogram
from unweave.recipes.bonheme2023.latent_types import per_run
from unweave.recipes.bonheme2023.results import Measured, measured, notes
from unweave.recipes.controls import before_training, changed, dealt, types_dealt
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Control, Judge
from unweave.studies.measures.priors import Priors
from unweave.studies.measures.spread import Spread
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean, compare_share
from unweave.training.experiment import Experiment, Plan

PriorMean = Literal["zero", "learned"]

EXTENTS = {
    "smoke": Extent(5, steps=1500, n_samples=2_000),
    "small": Extent(5, steps=60_000, n_samples=10_000),
    "paper": Extent(5, steps=300_000, n_samples=10_000),
}
"""The source shows one model; five seeds tell what is luck."""


def prior_study(name: str, prior_means: Sequence[PriorMean], size: str) -> Study:
    """iVAEs of these kinds, told the factors of every image, and what their priors became."""
    extent = at_size(size, EXTENTS)
    base = _micro() if size == "smoke" else _published()
    made = [
        replace(base, objective=replace(base.objective, prior_mean=kind), steps=extent.steps, seed=seed)  # type: ignore[type-var]
        for kind in prior_means
        for seed in range(extent.n_seeds)
    ]
    return Study(f"{name}-{size}", tuple(made), (Priors(extent.n_samples), spread_measure(size)))


def rows_of(results: Results, size: str, prior_mean: PriorMean) -> list[Measured]:
    """What was measured of the models with this kind of prior."""
    found = measured(results, Priors(at_size(size, EXTENTS).n_samples))
    return [row for row in found if getattr(row.experiment.objective, "prior_mean", "") == prior_mean]


def has_both(rows: Sequence[Measured], words: str) -> Comparison:
    """Every model has passive and active latents; one whose latents are all passive learned nothing, and is left out.

    Passive latents alone would say nothing of training: networks have them before it.
    """
    learned = (row.found for row in rows if not {*row.found["types"]} <= {"passive"})
    counted = [(found["n_passive"], found["n_active"]) for found in learned]
    known = [min(both) for both in counted if all(map(math.isfinite, both))]
    what = f"models with passive and with active latents, {words}"
    return compare_share(what, sum(n > 0 for n in known), len(known), 1.0, tolerance=0.5)


def smaller_when_passive(rows: Sequence[Measured], column: str, words: str) -> Comparison:
    """A column is smaller for the passive latents of a model than for its active ones."""
    passive, active = (_logarithms(per_run(rows, column, kind)) for kind in ("passive", "active"))
    return compare_difference(f"log {words}, passive less active latents", passive, active, -1)


def near_zero(rows: Sequence[Measured], column: str, kind: str, words: str) -> Comparison:
    """The mean of a column over latents of a type is within 0.1 of 0."""
    return compare_mean(f"{words} of {kind} latents", per_run(rows, column, kind), 0.0, tolerance=0.1)


def figures_of(rows: Sequence[Measured], results: Results, size: str, kind: str) -> dict[str, Any]:
    """Histograms of one latent of the type: posterior mean and variance, prior mean and variance, as published."""
    best = max(rows, key=lambda row: row.found[f"n_{kind}"], default=None)
    values = None if best is None else results.found(best.experiment, spread_measure(size))
    if best is None or not values:
        return {}
    types, kl = best.found["types"], best.found["kl"]
    nearest = int(np.argmin(kl) if kind == "passive" else np.argmax(kl))
    latent = types.index(kind) if kind in types else nearest
    title = f"seed {best.seed}, latent {latent}" + (
        "" if kind in types else f" (no latent is {kind}: the nearest to it)"
    )
    return {f"{name} ({title})": histogram({name: drawn}, name) for name, drawn in _drawn(values, latent).items()}


def chapter_notes(size: str) -> tuple[str, ...]:
    """What differs from the source."""
    return notes(
        size,
        "Labels enter as one number each, from 0 to 1, joined to the flattened features before the dense layer. The"
        " source prints a dense layer of 261 units for five labels, which can be read in two ways.",
        "A latent is passive where its posterior keeps its learned prior (Proposition 5.2.2), by the rule and the"
        " threshold of §6.4.1; 'close to 0' is read as within 0.1. Variances are compared by their logarithms.",
        "That active latents are precise is not judged: in these models the passive ones are precise too.",
        "Here the labels determine the image. A learned prior mean can then follow the posterior mean, and a latent"
        " that the decoder uses may keep its prior: it says nothing beyond the labels.",
    )


def controls_of(judge: Judge) -> tuple[Control, ...]:
    """Types at random, a rule that calls every latent mixed, untrained networks, and priors of other latents."""

    def mixed(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
        return {**found, "types": ["mixed"] * len(found["types"]), "n_passive": 0, "n_active": 0}

    def others(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
        return {**found, "prior_variance": generator.permutation(found["prior_variance"]).tolist()}

    exchanged = "what was measured of a model given to another one, whatever its prior mean."
    return (
        dealt(judge, exchanged, about="^prior variance of active"),
        types_dealt(judge, about="^(?!models with|log of prior|prior variance of active)"),
        changed(judge, "always mixed", "a rule that calls every latent mixed.", mixed, draws=1, about="^models with"),
        before_training(judge, about="^models with"),
        changed(judge, "other priors", "prior variances of other latents of the model.", others, about="^log of prior"),
    )


def spread_measure(size: str) -> Spread:
    """What the histograms are drawn from."""
    return Spread(at_size(size, EXTENTS).n_samples, priors=True)


def _drawn(values: Mapping[str, Any], latent: int) -> dict[str, np.ndarray]:
    shown = {
        "posterior mean": "mean",
        "posterior variance": "variance",
        "prior mean": "prior_mean",
        "prior variance": "prior_variance",
    }
    found = {words: np.array(values[name][latent]) for words, name in shown.items()}
    drawn = {words: one for words, one in found.items() if np.isfinite(one).all()}
    return {words: one for words, one in drawn.items() if words != "prior mean" or one.any()}


def _logarithms(values: dict[int, float]) -> dict[int, float]:
    return {seed: float(np.log(max(value, 1e-30))) for seed, value in values.items()}


def _published() -> Experiment:
    """Tables A.1 and A.2, with the kernels that the thesis code really ran."""
    return Experiment(
        DSprites(),
        IVAE(encoding="values"),
        ConvStudy(),
        optimiser=Adam(1e-4),
        latents=30,
        holdout=0.1,
        order="epochs",
        history_every=500,
        plan=Plan(threads=1),
    )


def _micro() -> Experiment:
    return Experiment(
        Micro(),
        IVAE(encoding="values"),
        Conv((8, 16, 16), (4, 4, 4), 64),
        optimiser=Adam(2e-3),
        latents=8,
        batch_size=32,
        init="pytorch",
        plan=Plan(threads=1),
    )
