"""Figures 7.2 to 7.10 and Appendix C: how alike layers are over epochs, strengths and objectives (Bonheme, 2023)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unweave.models.objectives import DIPVAEII, AnnealedVAE, BetaTCVAE, BetaVAE
from unweave.recipes.reproductions.b_layers import CKA, CODES, PROCRUSTES, LayerMap, layer_map
from unweave.recipes.reproductions.b_results import THESIS, notes
from unweave.recipes.reproductions.b_settings import EXTENTS, N_SEEDS, Setting, settings_study
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_mean, compare_trend

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

    title: str
    pairs: tuple[Pair, ...]
    claims: Judge
    notes: tuple[str, ...] = field(default=())


def study_of(name: str, figure: Figure, size: str) -> Study:
    """Every setting of a figure."""
    settings = {one: None for pair in figure.pairs for one in (pair.left, pair.right)}
    return settings_study(name, tuple(settings), (), size)


def judge(figure: Figure, results: Results, size: str) -> Outcome:
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


def collapse(found: LayerMap) -> Iterator[Comparison]:
    """Fact 2: what a strongly regularised model samples is unlike the layers of a weakly regularised one."""
    sampled, layers = found.places("sampled"), found.encoder + found.decoder
    strong, weak = found.block(layers, sampled), found.block(sampled, layers)
    what = "sampled codes of the strong model to layers of the weak one, less the other way round"
    yield compare_difference(what, strong, weak, -1)
    same = found.diagonal(found.encoder)
    yield compare_difference(
        "similarity of encoder layers, less that of sampled codes", same, found.diagonal(sampled), 1
    )


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


def early_layers(found: LayerMap) -> Iterator[Comparison]:
    """Figure 7.7: over the input and the first layers the two measures differ by about 0.1."""
    places = found.places("input") + found.encoder
    gaps = {
        seed: abs(found.block(places, places, CKA)[seed] - found.block(places, places, PROCRUSTES)[seed])
        for seed in found.left.seeds
    }
    yield compare_mean("|CKA − Procrustes| over the encoder's layers", gaps, 0.1, tolerance=0.1)


def dense_strengths(found: LayerMap) -> Iterator[Comparison]:
    """Figure 7.9: encoders stay alike; mean, variance and sampled codes do not; decoders less unlike than conv ones."""
    encoder, codes = found.diagonal(found.encoder), found.diagonal(found.places(*CODES))
    yield compare_difference("similarity of the encoders' layers, less that of the codes", encoder, codes, 1)


def over_epochs(settings: Sequence[Setting], procrustes: bool = False) -> tuple[Pair, ...]:
    """Each setting at its first published snapshot, beside its end."""
    return tuple(Pair(one, one, 0, procrustes) for one in settings)


TC_CARS = Setting("cars3d", BetaTCVAE(2.0))
DIP_SPRITES = Setting("dsprites", DIPVAEII(5.0))
ANNEALED_NORB = Setting("smallnorb", AnnealedVAE(capacity=5.0))
EARLY = (TC_CARS, DIP_SPRITES, ANNEALED_NORB)
DENSE_ANNEALED = Setting("smallnorb", AnnealedVAE(capacity=5.0), dense=True)


def _beta(world: str, beta: float, dense: bool = False) -> Setting:
    return Setting(world, BetaVAE(beta), dense)


def _dip(world: str, strength: float, dense: bool = False) -> Setting:
    return Setting(world, DIPVAEII(strength), dense)


def _objectives(dense: bool) -> tuple[Pair, ...]:
    worlds = ("cars3d", "dsprites", "smallnorb")
    return tuple(Pair(_beta(world, 1.0, dense), _dip(world, 1.0, dense)) for world in worlds)


STRENGTHS = (
    Pair(_beta("dsprites", 1.0), _beta("dsprites", 8.0)),
    Pair(_dip("dsprites", 1.0), _dip("dsprites", 20.0)),
)
DENSE_STRENGTHS = tuple(Pair(_beta("dsprites", 1.0, True), _beta("dsprites", beta, True)) for beta in (8.0, 16.0))

FIGURES: dict[str, Figure] = {
    "7.2": Figure("CKA early in training and at its end", over_epochs(EARLY), encoder_first),
    "7.3": Figure("CKA of weakly and strongly regularised models", STRENGTHS, collapse),
    "7.4": Figure("CKA of β-VAE and DIP-VAE-II", _objectives(False), shared_encoders),
    "7.5": Figure("CKA and Procrustes over epochs", over_epochs((TC_CARS,), True), both_measures),
    "7.6": Figure(
        "CKA and Procrustes of two objectives",
        (replace(_objectives(False)[0], procrustes=True),),
        both_measures,
    ),
    "7.7": Figure(
        "CKA and Procrustes of the first layers",
        tuple(Pair(_beta("cars3d", beta), _beta("cars3d", beta), procrustes=True) for beta in (1.0, 8.0)),
        early_layers,
        ("Pairs of different seeds only. 'Around 0.1' is read as between 0 and 0.2.",),
    ),
    "7.8": Figure(
        "CKA over epochs, fully connected",
        tuple(Pair(DENSE_ANNEALED, DENSE_ANNEALED, place) for place in (0, 1)),
        encoder_first,
    ),
    "7.9": Figure("CKA of strengths, fully connected", DENSE_STRENGTHS, dense_strengths),
    "7.10": Figure("CKA of β-VAE and DIP-VAE-II, fully connected", _objectives(True), shared_encoders),
}


def _reproduction(number: str) -> Reproduction:
    name, figure = f"b-fig-{number}", FIGURES[number]
    source = f"{THESIS}, Figure {number}"
    return Reproduction(name, figure.title, source, partial(study_of, name, figure), partial(judge, figure))


REPRODUCED = {f"b-fig-{number}": _reproduction(number) for number in FIGURES}
