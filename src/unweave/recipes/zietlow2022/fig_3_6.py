"""z-fig-3.6: nonlinear eigenfaces, latents in the order of their noise (Zietlow, 2022, §3.3.5 and Figure 3.6)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.data.celeba import CelebA
from unweave.data.micro import Micro
from unweave.data.shapes3d import Shapes3DLike
from unweave.evaluation.traversal import eigenfaces
from unweave.models.networks.conv import Conv
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE
from unweave.models.optimisers import Adam
from unweave.pages.outcome import Outcome
from unweave.plots.bands import Band, bands
from unweave.plots.images import traversals
from unweave.recipes.controls import altered, with_columns
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.settings import SOURCE, notes
from unweave.studies.measures.eigenfaces import Eigenfaces
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend
from unweave.training.experiment import Experiment, Plan

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "Nonlinear eigenfaces"
IN_USE = 0.8
"""Mean σ below which a latent counts: one that is switched off has all the noise and no effect, whatever is learned."""
EPOCH = 0.8 * 202_599 // 64
"""Steps of one epoch of CelebA."""


SMALL_MODEL = {"world": Micro(), "network": MLP((256,), (256,)), "latents": 6, "optimiser": Adam(2e-3)}
ROOMS_MODEL = {"world": Shapes3DLike(), "network": Conv(), "latents": 10, "optimiser": Adam(5e-4)}
FACES_MODEL = {"world": CelebA(), "network": Conv(), "latents": 32, "optimiser": Adam(1e-4)}
EXTENTS = {
    "smoke": Extent(2, ("micro",), 1_000, changes={"micro": SMALL_MODEL}),
    "small": Extent(4, ("shapes3d_like",), 30_000, changes={"shapes3d_like": ROOMS_MODEL}),
    "paper": Extent(3, ("celeba",), int(50 * EPOCH), changes={"celeba": FACES_MODEL}),
}
"""Z, Table 3.1: CelebA, Adam (0.0001), 32 latents, 50 epochs, β = 4."""


def study(size: str) -> Study:
    """The β-VAE (β = 4) of a size."""
    extent = at_size(size, EXTENTS)
    runs = [
        Experiment(
            objective=BetaVAE(4.0),
            steps=extent.steps,
            seed=seed,
            holdout=0.2,
            history_every=500,
            plan=Plan(threads=1),
            **extent.changes[world],
        )
        for world in extent.worlds
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-fig-3.6-{size}", tuple(runs), (Eigenfaces(),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The picture, and what can be counted of it: less noisy latents move the image more."""
    table = results.table
    figures: dict[str, Any] = {
        f"Figure 3.6: mean image ± 2.5 along the first five latents, seed {seed}": _picture(results, name)
        for name, seed in zip(table["id"].to_list(), table["seed"].to_list())
    }
    figures["Change of the image over the mean noise of a latent"] = _figure(table)
    return Outcome((_order(table),), figures, {"Every latent": _rows(table)}, _notes(size))


def _order(table: "pl.DataFrame") -> Comparison:
    rows = [row for row in _rows(table) if row["mean σ"] < IN_USE]
    seeds = [row["seed"] for row in rows]
    noise, change = ([row[name] for row in rows] for name in ("mean σ", "squared change"))
    what = "change of the image with the noise of a latent, among the latents in use"
    return compare_trend(what, noise, change, -1, seeds=seeds)


def _rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
    columns = ["seed", "eigenfaces.latents", "eigenfaces.deviation", "eigenfaces.change"]
    names = ("seed", "latent", "mean σ", "squared change")
    return [
        dict(zip(names, (seed, *values)))
        for seed, *lists in table.select(columns).iter_rows()
        for values in zip(*lists)
    ]


def _picture(results: Results, name: str) -> "matplotlib.figure.Figure":
    run = results.run(name)
    strips = eigenfaces(run, n_latents=min(5, run.experiment.latents))
    return traversals(strips.images, strips.types, strips.kl, strips.values, strips.latents)


def _figure(table: "pl.DataFrame") -> "matplotlib.figure.Figure":
    lines = {}
    for seed in sorted(table["seed"].to_list()):
        points = np.array([[row["mean σ"], row["squared change"]] for row in _rows(table) if row["seed"] == seed])
        noise, change = points[np.isfinite(points).all(1)].T
        if not len(noise):
            continue
        lines[f"seed {seed}"] = Band(noise, change, np.full_like(noise, np.nan), np.full_like(noise, np.nan))
    return bands({"": lines}, "mean σ of the latent", "squared change of the image")


def _notes(size: str) -> tuple[str, ...]:
    changed = {
        "smoke": "The micro-world (a disc) and a small network stand for faces: the picture shows the method.",
        "small": "Rendered rooms (shapes3d_like) stand for faces, with ten latents and 30,000 steps.",
        "paper": "As published, on CelebA. Its photographs are cut to the central 148 pixels; the source does not say"
        " how it cut them.",
    }
    return notes(
        changed[size],
        "The published result is a picture, and whether its latents are hair colour, perspective or gender is for the"
        " eye. What is judged is the reason given for their order: latents with less noise are those with more effect,"
        f" among those in use (mean σ below {IN_USE:g}).",
        "Latents are ordered by the mean of σ over examples; the mean image is the decoded mean code of 300 of them.",
    )


def _mixed_up(results: Results, generator: np.random.Generator) -> Results:
    changes = [generator.permutation(one).tolist() for one in results.table["eigenfaces.change"].to_list()]
    return with_columns(results, {"eigenfaces.change": changes})


SENTENCE = "the changes of the image dealt to the latents of a model at random."
CONTROLS = (altered(judge, "shuffled", SENTENCE, _mixed_up),)

REPRODUCTION = Reproduction("z-fig-3.6", TITLE, f"{SOURCE}, Figure 3.6", study, judge, CONTROLS)
