"""What Figures 6.9 to 6.11 share: β-VAEs whose passive latents follow others in the mean codes."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from unweave.data.dsprites import ColorDSprites
from unweave.models.objectives import BetaVAE
from unweave.recipes.bonheme2023.panels import n_samples
from unweave.recipes.bonheme2023.results import Measured, notes
from unweave.recipes.bonheme2023.rows import stand_in
from unweave.recipes.extent import check_size
from unweave.recipes.locatello2019.settings import grid
from unweave.studies.measures.passive import PassiveCorrelations
from unweave.studies.study import Study
from unweave.training.experiment import Experiment

N_SEEDS, N_SNAPSHOTS = 5, {"smoke": 20, "small": 30, "paper": 300}
"""The source shows one model each; five let the claim be tested."""


def experiments(beta: float, colour: bool, size: str) -> tuple[Experiment, ...]:
    """β-VAEs with snapshots over all of training; every 1,000 of 300,000 steps at paper size."""
    check_size(size)
    if size == "smoke":
        # the flat square keeps two active latents and four passive ones up to a quarter of the published strength
        base = replace(stand_in("symsol", BetaVAE(beta / 4)), latents=6)
    else:
        base = replace(grid(size, ("dsprites",))[0], objective=BetaVAE(beta))
    world = ColorDSprites() if colour and size != "smoke" else base.world
    every = base.steps // N_SNAPSHOTS[size]
    steps = tuple(range(every, base.steps + 1, every)) if not colour else ()
    made = replace(base, world=world, snapshots=steps)
    return tuple(replace(made, seed=seed) for seed in range(N_SEEDS))


def measure_of(size: str) -> PassiveCorrelations:
    """On 10,000 examples, 2,000 at smoke."""
    return PassiveCorrelations(n_samples(size) if size == "smoke" else 10_000)


def study_of(name: str, beta: float, colour: bool, size: str) -> Study:
    """Five seeds of one β-VAE."""
    return Study(f"{name}-{size}", experiments(beta, colour, size), (measure_of(size),))


def per_run(rows: Sequence[Measured], column: str, kinds: tuple[str, ...]) -> dict[int, float]:
    """By seed, the mean of a column over the latents of some types; runs without such latents are left out."""
    found = {}
    for row in rows:
        values = [value for value, kind in zip(row.found[column], row.found["types"]) if kind in kinds]
        if values:
            found[row.seed] = fmean(values)
    return found


def names_of(row: Measured) -> list[str]:
    """Place and type of every latent."""
    return [f"{place} {kind}" for place, kind in enumerate(row.found["types"])]


def notes_of(size: str) -> tuple[str, ...]:
    """What these figures' models leave out."""
    smoke = ("Synth-Lin with a quarter of the published β, so that both types of latents occur.",)
    return notes(
        size,
        *(smoke if size == "smoke" else ()),
        f"{N_SEEDS} seeds where the source shows one model; a run whose latents are all of one type says nothing.",
        f"{N_SNAPSHOTS[size]} snapshots over training; the source has 300.",
    )
