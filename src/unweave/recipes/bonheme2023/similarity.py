"""What Figures 7.2 to 7.10 and Appendix C share: how alike layers are over epochs, strengths and objectives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unweave.models.objectives import DIPVAEII, AnnealedVAE, BetaTCVAE, BetaVAE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import CKA, CODES, PROCRUSTES, Learned, layer_map
from unweave.recipes.bonheme2023.results import notes
from unweave.recipes.bonheme2023.settings import EXTENTS, N_SEEDS, Setting, settings_study
from unweave.recipes.controls import before_training, untrained
from unweave.recipes.reproduction import Control, Judge
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

Claims = Callable[[Learned], Iterator[Comparison]]


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
    claims: Claims
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
        found = learned(pair, results, size)
        title = f"{found.after.left.name} and {found.after.right.name}"
        comparisons += [replace(one, what=f"{title}: {one.what}") for one in figure.claims(found)]
        figures |= {f"{measure}, {title}": found.after.figure(measure) for measure in found.after.scores}
        figures |= {f"{CKA} before training, {title}": found.before.figure(CKA)}
    extent = EXTENTS[size]
    return Outcome(
        tuple(comparisons), figures, notes=notes(size, *size_notes(extent.steps, extent.n_samples, size), *figure.notes)
    )


def learned(pair: Pair, results: Results, size: str) -> Learned:
    """The similarity of all layers of a pair of settings, after and before training."""
    start = untrained(results)
    right = pair.right.group(results, size)
    first = pair.left.group(start, size)
    if pair.at is None:
        after = layer_map(pair.left.group(results, size), right, procrustes=pair.procrustes)
        return Learned(after, layer_map(first, pair.right.group(start, size), procrustes=pair.procrustes))
    early = pair.left.group(results, size, pair.left.shares(size)[pair.at])
    maps = (layer_map(left, right, procrustes=pair.procrustes) for left in (early, first, right))
    return Learned(*maps)


def size_notes(steps: int, n_samples: int, size: str) -> Iterator[str]:
    """What a size leaves out, and how similarity is computed."""
    yield (
        f"{N_SEEDS} seeds, {steps:,} steps; layers are compared on {n_samples:,} examples (published: 300,000, 5,000)"
        " by the biased CKA, as published. Values are paired by the seed of the model in the rows, each the mean over"
        " the seeds of the model in the columns."
    )
    yield (
        "Untrained networks are compared the same way and subtracted: convolutional encoders with random weights have a"
        " CKA of 0.85 with each other and decoders 0.03, so that similarity alone is found without any training. How"
        " similar layers are, and that Procrustes overrates wide ones, is therefore shown and not judged."
    )
    if size == "smoke":
        yield "The micro-world and small networks stand in for all three worlds."
    if size != "paper":
        yield "Early is a tenth of training here; the published early snapshots come after 2 to 8 % of 300,000 steps."
    if size == "small":
        yield "SmallNORB must be fetched by hand: dSprites stands in for it."


def encoder_first(found: Learned, measure: str = CKA) -> Iterator[Comparison]:
    """Fact 1: early on, the encoder has gone more of the way to its end than the decoder."""
    encoder, decoder = found.share(found.after.encoder, measure), found.share(found.after.decoder, measure)
    what = f"share of the way to the end of training by {measure}: encoder less decoder"
    yield compare_difference(what, encoder, decoder, 1)


def shared_encoders(found: Learned, measure: str = CKA) -> Iterator[Comparison]:
    """Fact 3: whatever the objective, encoders learn the same: they become more alike than they began."""
    gain = found.gain(found.after.encoder, measure)
    what = f"{measure} of the encoders' layers, after less before training"
    yield compare_difference(what, gain, dict.fromkeys(gain, 0.0), 1)


def encoders_not_codes(found: Learned) -> Iterator[Comparison]:
    """Figure 7.9: encoders stay alike; mean, variance and sampled codes do not."""
    encoder, codes = found.gain(found.after.encoder), found.gain(found.after.places(*CODES))
    yield compare_difference("what training adds to the similarity: encoders' layers less codes", encoder, codes, 1)


def by_both(claims: Callable[[Learned, str], Iterator[Comparison]]) -> Claims:
    """§7.4.2: Procrustes leads to the same conclusions as CKA.

    That their numbers go together is no finding: they do for untrained networks too, being functions of one thing.
    """

    def both(found: Learned) -> Iterator[Comparison]:
        for measure in (CKA, PROCRUSTES):
            yield from claims(found, measure)

    return both


def controls_of(judge: Judge) -> tuple[Control, ...]:
    """A second sample of untrained networks in the place of trained ones."""
    return (before_training(judge),)


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
