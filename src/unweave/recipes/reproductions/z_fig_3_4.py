"""z-fig-3.4: the more orthogonal a restart's decoder, the better it disentangles (Zietlow, 2022, Figure 3.4)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unweave.models.networks.conv import Conv
from unweave.models.objectives import BetaVAE
from unweave.models.optimisers import Adam
from unweave.plots.scatter import scatter
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.recipes.reproductions.z_settings import (
    QUICKENED,
    SETTINGS,
    SOURCE,
    UNSAID,
    chosen,
    experiment,
    notes,
    spread_rows,
    where,
)
from unweave.studies.measures.decoder import DecoderGeometry
from unweave.studies.results import Results
from unweave.studies.statistics.settings import column
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend
from unweave.training.experiment import Plan

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "The more orthogonal, the better disentangled"

PUBLISHED = -1
"""Z, Figure 3.4: DS falls as DtO rises, over restarts of one β-VAE (β = 4) with 10, 30 or 50 epochs on dSprites."""


@dataclass(frozen=True)
class Extent:
    world: str
    beta: float
    n_seeds: int
    steps: tuple[int, ...]
    changes: dict[str, Any]


DSPRITES = SETTINGS["dsprites"]
EXTENTS = {
    "smoke": Extent(
        "synth_lin",
        0.02,
        8,
        (1_000, 3_000, 6_000),
        {"optimiser": Adam(1e-2), "batch_size": 256, "order": "iid", "history_every": 1000},
    ),
    "small": Extent(
        "dsprites",
        4.0,
        16,
        (10_000, 30_000, 50_000),
        {"network": Conv(), "optimiser": Adam(5e-4), "order": "iid", "plan": Plan(threads=1)},
    ),
    "paper": Extent("dsprites", 4.0, 20, tuple(DSPRITES.steps(epochs) for epochs in (10, 30, 50)), {}),
}


def z_fig_3_4(size: str) -> Study:
    """Restarts of one β-VAE at three lengths; every point is a run of its own."""
    extent: Extent = chosen(size, EXTENTS)
    runs = [
        # other seeds for every length: independent runs, not the same one seen three times
        experiment(extent.world, BetaVAE(extent.beta), 1000 * place + seed, steps=steps, **extent.changes)
        for place, steps in enumerate(extent.steps)
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-fig-3.4-{size}", tuple(runs), (DecoderGeometry(),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The rank correlation over all restarts, and over those of each length."""
    parts = {steps: where(results.table, steps=steps) for steps in chosen(size, EXTENTS).steps}
    comparisons = [_correlation("all restarts", results.table)]
    comparisons += [_correlation(f"{steps:,} steps", part) for steps, part in parts.items()]
    groups = {f"{steps:,} steps": part for steps, part in parts.items()}
    columns = {"DtO": "decoder.dto", "DS": "decoder.ds", "active": "decoder.n_active"}
    figure = {"Figure 3.4: orthogonality and disentanglement": _figure(groups)}
    return Outcome(tuple(comparisons), figure, {"By length": spread_rows(groups, columns)}, _notes(size))


def _correlation(name: str, part: "pl.DataFrame") -> Comparison:
    x, y = column(part, "decoder.dto"), column(part, "decoder.ds")
    return compare_trend(f"{name}: DS with DtO", x, y, PUBLISHED)


def _figure(groups: "dict[str, pl.DataFrame]") -> "matplotlib.figure.Figure":
    series = {name: (column(part, "decoder.dto"), column(part, "decoder.ds")) for name, part in groups.items()}
    names = {name: [f"seed {seed}" for seed in part["seed"].to_list()] for name, part in groups.items()}
    x, y = "distance to orthogonality (DtO)", "disentanglement score (DS)"
    return scatter(series, "", x, y, names=names)


def _notes(size: str) -> tuple[str, ...]:
    changed = {
        "smoke": "Synth. Lin. stands for dSprites, with β = 0.02 and trainings that are broken off early: restarts"
        " differ in how far they have turned. This size can tell whether the two scores go together there; it cannot"
        " tell whether they do on images.",
        "small": "dSprites with the convolutional network and Adam (0.0005) instead of the fully connected one and"
        " AdaGrad, and 10,000, 30,000 and 50,000 steps instead of 10, 30 and 50 epochs (9,216 steps each).",
        "paper": "As published, with twenty restarts of each length; the source does not give their number.",
    }
    return notes(
        changed[size],
        QUICKENED if size == "smoke" else "",
        "The figure is published as a picture without numbers: what is judged is the sign of Spearman's correlation.",
        UNSAID,
    )


Z_FIG_3_4 = Reproduction("z-fig-3.4", TITLE, f"{SOURCE}, Figure 3.4", z_fig_3_4, judge)
