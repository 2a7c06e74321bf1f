"""z-fig-3.4: the more orthogonal a restart's decoder, the better it disentangles (Zietlow, 2022, Figure 3.4)."""

from typing import TYPE_CHECKING

from unweave.models.objectives import BetaVAE
from unweave.pages.outcome import Outcome
from unweave.plots.scatter import scatter
from unweave.recipes.controls import apart
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.settings import (
    CONVOLUTIONAL,
    QUICK,
    QUICKENED,
    SETTINGS,
    SOURCE,
    UNSAID,
    beta_at,
    changes_at,
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

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

TITLE = "The more orthogonal, the better disentangled"

PUBLISHED = -1
"""Z, Figure 3.4: DS falls as DtO rises, over restarts of one β-VAE (β = 4) with 10, 30 or 50 epochs on dSprites."""


LENGTHS = {
    "smoke": (1_000, 3_000, 6_000),
    "small": (10_000, 30_000, 50_000),
    "paper": tuple(SETTINGS["dsprites"].steps(epochs) for epochs in (10, 30, 50)),
}
"""Steps of a training."""

EXTENTS = {
    "smoke": Extent(8, ("synth_lin",), changes={"synth_lin": QUICK}, beta={"synth_lin": 0.02}),
    "small": Extent(16, ("dsprites",), changes={"dsprites": CONVOLUTIONAL}),
    "paper": Extent(20, ("dsprites",)),
}


def study(size: str) -> Study:
    """Restarts of one β-VAE at three lengths; every point is a run of its own."""
    extent = at_size(size, EXTENTS)
    runs = [
        # other seeds for every length: independent runs, not the same one seen three times
        experiment(
            world, BetaVAE(beta_at(extent, world)), 1000 * place + seed, steps=steps, **changes_at(extent, world)
        )
        for world in extent.worlds
        for place, steps in enumerate(LENGTHS[size])
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-fig-3.4-{size}", tuple(runs), (DecoderGeometry(),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The rank correlation over all restarts, and over those of each length."""
    parts = {steps: where(results.table, steps=steps) for steps in at_size(size, LENGTHS)}
    comparisons = [_correlation("all restarts", results.table)]
    comparisons += [_correlation(f"{steps:,} steps", part) for steps, part in parts.items()]
    groups = {f"{steps:,} steps": part for steps, part in parts.items() if part.height}
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


CONTROLS = (apart(judge, "the scores of the restarts dealt to one another at random.", ["decoder.ds"]),)

REPRODUCTION = Reproduction("z-fig-3.4", TITLE, f"{SOURCE}, Figure 3.4", study, judge, CONTROLS)
