"""u-supervision: pairs and labels help where they mean something, and do not where they are shuffled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from unweave.data.micro import Micro
from unweave.data.micro_segments import MicroSegments
from unweave.data.world import World
from unweave.models.method import Method
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import IVAE, AdaGVAE, BetaVAE, SlowVAE
from unweave.models.optimisers import Adam
from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.controls import apart
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.studies.measures.scores import Scores
from unweave.studies.results import Results
from unweave.studies.statistics.settings import column
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference
from unweave.training.experiment import Experiment, Plan

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

TITLE = "Pairs and labels help where they mean something"


@dataclass(frozen=True)
class Asked:
    """A method on the world that it learns from, and the network it has there."""

    world: World
    method: Method
    network: MLP = MLP((128,), (128,))


SEGMENTS, SMOOTH = MicroSegments(), MLP((128,), (128,), "tanh", "tanh")

MODELS = {
    "β-VAE, β = 1": Asked(Micro(), BetaVAE(1.0)),
    "β-VAE, β = 4": Asked(Micro(), BetaVAE(4.0)),
    "SlowVAE": Asked(Micro(), SlowVAE()),
    "SlowVAE, random pairs": Asked(Micro(), SlowVAE(pairs="random")),
    "Ada-GVAE": Asked(Micro(), AdaGVAE()),
    "Ada-GVAE, random pairs": Asked(Micro(), AdaGVAE(pairs="random")),
    "segments: β-VAE, β = 1": Asked(SEGMENTS, BetaVAE(1.0), SMOOTH),
    "segments: β-VAE, β = 4": Asked(SEGMENTS, BetaVAE(4.0), SMOOTH),
    "segments: iVAE": Asked(SEGMENTS, IVAE(), SMOOTH),
    "segments: iVAE, labels of others": Asked(SEGMENTS, IVAE(labels="random"), SMOOTH),
}

SHUFFLED = {
    "SlowVAE": "SlowVAE, random pairs",
    "Ada-GVAE": "Ada-GVAE, random pairs",
    "segments: iVAE": "segments: iVAE, labels of others",
}
"""Methods, each with its control."""

MCC = "scores.mean.mcc"

EXTENTS = {"smoke": Extent(10, steps=2_000), "small": Extent(10, steps=10_000), "paper": Extent(50, steps=30_000)}

Parts: TypeAlias = "Mapping[str, pl.DataFrame]"


def study(size: str) -> Study:
    """Every method and its control, three latents for three factors."""
    extent = at_size(size, EXTENTS)
    base = Experiment(
        Micro(),
        optimiser=Adam(1e-3),
        latents=3,
        steps=extent.steps,
        history_every=500,
        plan=Plan("cpu", 1) if size == "smoke" else Plan(),
    )
    # a batch of pairs has two images a row: all methods see 64 images a step
    runs = [
        replace(
            base,
            world=one.world,
            objective=one.method,
            network=one.network,
            seed=seed,
            batch_size=64 if one.method.pairing is None else 32,
        )
        for one in MODELS.values()
        for seed in range(extent.n_seeds)
    ]
    return Study(f"u-supervision-{size}", tuple(runs), (Scores(("mcc",), n_samples=2048),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """Each method against the better β-VAE on its world, paired by seed."""
    return _judged(_parts(results))


def judge_shuffled(results: Results, size: str, draw: int) -> Outcome:
    """The same with every method's control in its place."""
    parts = _parts(results)
    return _judged(parts | {name: parts[control] for name, control in SHUFFLED.items()})


def _parts(results: Results) -> "dict[str, pl.DataFrame]":
    return {name: _of(results, one) for name, one in MODELS.items()}


def _judged(parts: Parts) -> Outcome:
    comparisons = [_gain(name, parts) for name in SHUFFLED]
    figure = violins([column(part, MCC) for part in parts.values()], list(parts), "", "MCC with factors")
    rows = [_row(name, column(part, MCC)) for name, part in parts.items()]
    return Outcome(tuple(comparisons), {"MCC over seeds": figure}, {"Means and deviations": rows}, NOTES)


def _gain(name: str, parts: Parts) -> Comparison:
    same = [
        other
        for other, one in MODELS.items()
        if isinstance(one.method, BetaVAE) and one.world == MODELS[name].world and parts[other].height
    ]
    if not same or not parts[name].height:
        return compare_difference(f"{name} above the better β-VAE", {}, {}, 1)
    best = max(same, key=lambda other: column(parts[other], MCC).mean())
    found = compare_difference(f"{name} above the better β-VAE", _mcc(parts[name]), _mcc(parts[best]), 1)
    return replace(found, note="; ".join(filter(None, (found.note, f"the better one is {best}"))))


NOTES = (
    "The micro-world has three factors of known size, two of which are interchangeable by a rotation that a β-VAE has"
    " little reason to prefer against another: an answer that unsupervised methods can only find by luck.",
    "The baseline is the better of two β by its mean, chosen after looking, which favours it. All methods see 64"
    " images a step: 32 pairs where they learn from pairs.",
    "iVAE's theory is about priors whose spreads change with the label. So it learns from a disc whose place and size"
    " vary more in some segments of time than in others, and is told the segment. This world was made after iVAE, told"
    " the factors themselves on the micro-world, had shown no gain (MCC 0.69, with the factors of others 0.72, over ten"
    " seeds of 2,000 steps), and its spreads were drawn evenly in their logarithm after evenly drawn ones, less"
    " different from one another, had shown none within 12,000 steps.",
)


def _row(name: str, scores: "np.ndarray") -> dict[str, Any]:
    return {"method": name, "models": len(scores), "MCC": scores.mean(), "deviation": scores.std(ddof=1)}


def _of(results: Results, asked: Asked) -> "pl.DataFrame":
    ids = [
        experiment.id
        for experiment in results.experiments
        if experiment.objective == asked.method and experiment.world == asked.world
    ]
    return results.table.filter(results.table["id"].is_in(ids))


def _mcc(part: "pl.DataFrame") -> dict[int, float]:
    return dict(zip(part["seed"].to_list(), part[MCC].to_list()))


CONTROLS = (
    Control("shuffled", "pairs of images that have nothing to do with each other, labels of others.", judge_shuffled),
    apart(judge, "scores dealt to all methods at random.", [MCC]),
)

REPRODUCTION = Reproduction("u-supervision", TITLE, "unweave, the gain of supervision", study, judge, CONTROLS)
