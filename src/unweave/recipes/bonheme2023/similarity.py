"""What Figures 7.2 to 7.10 and Appendix C share: how alike layers are over epochs, strengths and objectives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unweave.models.objectives import DIPVAEII, AnnealedVAE, BetaTCVAE, BetaVAE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import CKA, CODES, PROCRUSTES, LayerMap, layer_map
from unweave.recipes.bonheme2023.results import notes
from unweave.recipes.bonheme2023.settings import EXTENTS, N_SEEDS, Setting, settings_study
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

HIGH = 0.8
"""What counts as highly similar (caption of Figure 7.10)."""

Judge = Callable[[LayerMap], Iterator[Comparison]]


@dataclass(frozen=True)
class Pair:
    """One heat map: rows from one setting, columns from another; ``at`` is the number of the rows' snapshot."""

    left: Setting
    right: Setting
    at: int | None = None
    procrustes: bool = False


@dataclass(frozen=True)
class Figure:
    """The heat maps of one figure and what is read off each."""

    pairs: tuple[Pair, ...]
    claims: Judge
    notes: tuple[str, ...] = field(default=())


def study_of(name: str, figure: Figure, size: str) -> Study:
    """Every setting of a figure."""
    settings = {one: None for pair in figure.pairs for one in (pair.left, pair.right)}
    return settings_study(name, tuple(settings), (), size)


def judge_of(figure: Figure, results: Results, size: str) -> Outcome:
    """Every heat map and its claims."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    pairs = {(p.left.at(size), p.right.at(size), p.at): p for p in figure.pairs}
    for pair in pairs.values():
        found = map_of(pair, results, size)
        title = f"{found.left.name} and {found.right.name}"
        comparisons += [replace(one, what=f"{title}: {one.what}") for one in figure.claims(found)]
        figures |= {f"{measure}, {title}": found.figure(measure) for measure in found.scores}
    extent = EXTENTS[size]
    return Outcome(
        tuple(comparisons), figures, notes=notes(size, *size_notes(extent.steps, extent.n_samples, size), *figure.notes)
    )


def map_of(pair: Pair, results: Results, size: str) -> LayerMap:
    """The similarity of all layers of a pair of settings."""
    share = None if pair.at is None else pair.left.shares(size)[pair.at]
    left, right = pair.left.group(results, size, share), pair.right.group(results, size)
    return layer_map(left, right, procrustes=pair.procrustes)


def size_notes(steps: int, n_samples: int, size: str) -> Iterator[str]:
    """What a size leaves out, and how similarity is computed."""
    yield (
        f"{N_SEEDS} seeds, {steps:,} steps; layers are compared on {n_samples:,} examples (published: 300,000, 5,000)"
        " by the biased CKA, as published. Values are paired by the seed of the model in the rows, each the mean over"
        " the seeds of the model in the columns."
    )
    if size == "smoke":
        yield "The micro-world and small networks stand in for all three worlds."
    if size != "paper":
        yield "Early is a tenth of training here; the published early snapshots come after 2 to 8 % of 300,000 steps."
    if size == "small":
        yield "SmallNORB must be fetched by hand: dSprites stands in for it."


def encoder_first(found: LayerMap) -> Iterator[Comparison]:
    """Fact 1: early on, the encoder is nearer to its end than the decoder is to its own."""
    encoder, decoder = found.diagonal(found.encoder), found.diagonal(found.decoder)
    yield compare_difference("similarity to the end of training: encoder less decoder", encoder, decoder, 1)


def shared_encoders(found: LayerMap) -> Iterator[Comparison]:
    """Fact 3: whatever the objective, encoders are alike."""
    encoder = found.diagonal(found.encoder)
    high = dict.fromkeys(encoder, HIGH)
    yield compare_difference(f"similarity of the encoders' layers, less {HIGH:g}", encoder, high, 1)
    codes = found.diagonal(found.places(*CODES))
    yield compare_difference("similarity of the encoders' layers, less that of the codes", encoder, codes, 1)


def both_measures(found: LayerMap) -> Iterator[Comparison]:
    """§7.4.2: Procrustes shows the same as CKA, but overrates wide layers."""
    cka, procrustes = found.mean(CKA), found.mean(PROCRUSTES)
    yield compare_trend("Procrustes against CKA over all cells", cka.ravel(), procrustes.ravel(), 1)
    decoder = found.decoder
    overrated, fair = (found.block(decoder, decoder, measure) for measure in (PROCRUSTES, CKA))
    yield compare_difference("Procrustes less CKA, layers of the decoder", overrated, fair, 1)


def over_epochs(settings: Sequence[Setting], procrustes: bool = False) -> tuple[Pair, ...]:
    """Each setting at its first published snapshot, beside its end."""
    return tuple(Pair(one, one, 0, procrustes) for one in settings)


TC_CARS = Setting("cars3d", BetaTCVAE(2.0))
EARLY = (TC_CARS, Setting("dsprites", DIPVAEII(5.0)), Setting("smallnorb", AnnealedVAE(capacity=5.0)))
"""Figures 7.2 and C.2 to C.4."""


def beta_vae(world: str, beta: float, dense: bool = False) -> Setting:
    """All seeds of a β-VAE."""
    return Setting(world, BetaVAE(beta), dense)


def dip_vae(world: str, strength: float, dense: bool = False) -> Setting:
    """All seeds of a DIP-VAE-II."""
    return Setting(world, DIPVAEII(strength), dense)


def two_objectives(dense: bool) -> tuple[Pair, ...]:
    """β-VAE beside DIP-VAE-II on every world."""
    worlds = ("cars3d", "dsprites", "smallnorb")
    return tuple(Pair(beta_vae(world, 1.0, dense), dip_vae(world, 1.0, dense)) for world in worlds)
