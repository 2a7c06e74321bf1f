"""The grid of the large study (Locatello et al., 2019): six objectives, six strengths each, fifty seeds, seven worlds.

k-1 to k-5 ask the same models, so that one store serves them all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unweave.data.cars3d import Cars3D
from unweave.data.dsprites import ColorDSprites, DSprites, NoisyDSprites, ScreamDSprites
from unweave.data.micro import Micro
from unweave.data.shapes3d import Shapes3D
from unweave.data.smallnorb import SmallNORB
from unweave.data.world import World
from unweave.models.networks.conv import Conv, ConvStudy
from unweave.models.networks.mlp import MLP
from unweave.models.networks.network import Network
from unweave.models.objectives import DIPVAEI, DIPVAEII, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Objective
from unweave.models.optimisers import Adam
from unweave.papers import SHORT
from unweave.recipes.extent import Extent, at_size
from unweave.shapes import Float
from unweave.studies.measures.codes import Codes
from unweave.studies.measures.measure import Measure
from unweave.studies.measures.scores import Scores
from unweave.studies.results import Results
from unweave.studies.statistics.settings import with_settings
from unweave.studies.statistics.variance_explained import variance_explained
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan

if TYPE_CHECKING:
    import polars as pl

SOURCE = SHORT["locatello2019challenging"]

SWEPT: dict[str, tuple[float, ...]] = {
    "beta_vae": (1, 2, 4, 6, 8, 16),
    "factor_vae": (10, 20, 30, 40, 50, 100),
    "beta_tcvae": (1, 2, 4, 6, 8, 10),
    "dip_vae_i": (1, 2, 5, 10, 20, 50),
    "dip_vae_ii": (1, 2, 5, 10, 20, 50),
    "annealed_vae": (5, 10, 25, 50, 75, 100),
}
"""The published strengths of each objective (Locatello et al., 2019, Table 1)."""

WORLDS: dict[str, World] = {
    "dsprites": DSprites(),
    "color_dsprites": ColorDSprites(),
    "noisy_dsprites": NoisyDSprites(),
    "scream_dsprites": ScreamDSprites(),
    "smallnorb": SmallNORB(),
    "cars3d": Cars3D(),
    "shapes3d": Shapes3D(),
}
"""In the published study."""


@dataclass(frozen=True)
class Model:
    """What the models of a size have in common."""

    places: tuple[int, ...]
    """Which of the six strengths."""
    batch_size: int
    network: Network
    latents: int
    learning_rate: float
    discriminator: tuple[int, int]
    """Width and depth of FactorVAE's."""


METRICS = {
    "BetaVAE": "scores.mean.beta_vae_sklearn",
    "FactorVAE": "scores.mean.factor_vae_score",
    "MIG": "scores.mean.mig",
    "DCI": "scores.mean.dci.disentanglement",
    "Modularity": "scores.mean.modularity",
    "SAP": "scores.mean.sap_score",
}
"""The six scores of the published study, by their columns."""

HOW = "objectives, strengths and seeds left out in turn"
"""Where intervals of rank correlations come from."""

OF_RUNS = (
    "Runs of one objective, of one strength or of one seed may be alike for that alone, so that a hundred runs are not"
    " a hundred independent points: tests exchange objectives, strengths and seeds as a whole, intervals leave them"
    " out in turn."
)

LUCK = "settings explain nothing of what is compared: luck goes with nothing"
"""Why a claim that two scores have no relation is left open."""

EXTENTS = {
    "smoke": Extent(3, steps=400, n_samples=2048),
    "small": Extent(4, steps=30_000, n_samples=10_000),
    "paper": Extent(50, steps=300_000, n_samples=15_000),
}

MODELS = {
    "smoke": Model((0, 3, 5), 32, MLP((64,), (64,)), 6, 3e-3, (64, 3)),
    "small": Model((0, 1, 3, 5), 64, Conv(), 10, 5e-4, (1000, 6)),
    "paper": Model((0, 1, 2, 3, 4, 5), 64, ConvStudy(), 10, 1e-4, (1000, 6)),
}


def grid(size: str, worlds: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of a size on these worlds; at ``smoke`` the micro-world stands in for the first of them."""
    extent, model = at_size(size, EXTENTS), MODELS[size]
    chosen = [Micro()] if size == "smoke" else [WORLDS[name] for name in worlds]
    return tuple(
        _experiment(world, objective, model, extent.steps, seed)
        for world in chosen
        for objective in _objectives(model, extent.steps)
        for seed in range(extent.n_seeds)
    )


def grid_study(name: str, size: str, worlds: Sequence[str], title: str, more: Sequence[Measure] = ()) -> Study:
    """The study of one of k-1 to k-5. All take the same measures, so that a model is encoded once for all of them."""
    experiments = grid(size, worlds)
    n_samples = EXTENTS[size].n_samples
    return Study(f"{name}-{size}", experiments, (Codes(n_samples), Scores(n_samples=n_samples), *more), title)


def settled_table(results: Results) -> "pl.DataFrame":
    """The finished runs with their settings, and ``place``: the strength as its rank within its objective."""
    import polars as pl

    table = with_settings(results.table)
    # of an objective with a single strength, as a part of the study may have it, that strength is not told
    place = (pl.col("strength").rank("dense").over("objective") - 1).fill_null(0)
    return table.with_columns(place.cast(pl.Int64).alias("place"))


def about(size: str, table: "pl.DataFrame") -> tuple[str, ...]:
    """What every page of k-1 to k-5 says of its size."""
    extent, model, worlds = EXTENTS[size], MODELS[size], ", ".join(table["world"].unique(maintain_order=True).to_list())
    seeds = table["seed"].n_unique()
    notes = [
        f"{table.height} models on {worlds}: {table['objective'].n_unique()} objectives, {len(model.places)} of the"
        f" six published strengths, {seeds} seeds, {extent.steps:,} steps, learning rate {model.learning_rate:g}. The"
        " published study has 12,600: seven worlds, six strengths, fifty seeds, 300,000 steps at 0.0001.",
        "FactorVAE trains as the published study's code did: each iteration counts as two steps, so it makes half as"
        " many updates as the others.",
    ]
    if size == "smoke":
        notes.append(
            "This size shows that everything runs and what a page looks like. The micro-world has three factors and"
            " is learned by a small dense network: its numbers are not those of dSprites, and no verdict here says"
            " anything about the published study."
        )
    if size == "small":
        notes.append(
            "A tenth of the published steps at five times the learning rate. AnnealedVAE's capacity rises over the"
            " first third of training, as published. The network has 4×4 kernels throughout, where the published code"
            " had 2×2 in two layers. Scores are measured on 10,000 examples, not on 15,000. dSprites is re-rendered"
            " (about 0.2 pixels an image differ) unless the published file is on this machine."
        )
    return tuple(notes)


def varies_by_setting(scores: Float[np.ndarray, "objective place seed"]) -> bool:
    """Whether settings explain some of a score, beyond chance: what is luck alone goes with nothing for that alone."""
    settings = np.broadcast_to(np.arange(scores[..., 0].size).reshape(*scores.shape[:2], 1), scores.shape)
    try:
        return variance_explained(scores.reshape(-1), settings.reshape(-1)).interval[0] > 0
    except ValueError:
        return False


def _objectives(model: Model, steps: int) -> Iterator[Objective]:
    width, depth = model.discriminator
    for place in model.places:
        strength = {name: values[place] for name, values in SWEPT.items()}
        yield BetaVAE(strength["beta_vae"])
        # as published: every iteration counted as two steps, and the discriminator shares the batch
        rate = model.learning_rate
        yield FactorVAE(strength["factor_vae"], "study", learning_rate=rate, width=width, depth=depth)
        yield BetaTCVAE(strength["beta_tcvae"])
        yield DIPVAEI(strength["dip_vae_i"])
        yield DIPVAEII(strength["dip_vae_ii"])
        # the capacity rises over the first third of training
        yield AnnealedVAE(capacity=strength["annealed_vae"], rise=steps // 3)


def _experiment(world: World, objective: Objective, model: Model, steps: int, seed: int) -> Experiment:
    return Experiment(
        world=world,
        objective=objective,
        network=model.network,
        optimiser=Adam(model.learning_rate),
        latents=model.latents,
        steps=steps,
        batch_size=model.batch_size,
        seed=seed,
        history_every=max(50, steps // 60),
        # one thread: the number of threads is part of a run's identity, and models go side by side
        plan=Plan(threads=1),
    )
