"""What Figures 7.2 to 7.10 and Appendix C share: how alike layers are over epochs, strengths and objectives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unweave.models.objectives import DIPVAEII, AnnealedVAE, BetaTCVAE, BetaVAE
from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023.layers import CKA, CODES, PROCRUSTES, Learned, Wanted, layer_map
from unweave.recipes.bonheme2023.results import notes
from unweave.recipes.bonheme2023.settings import EXTENTS, N_SEEDS, Setting, settings_study
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Control
from unweave.studies.measures.layer_similarity import AGAIN, END, FIRST
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
    procrustes: tuple[str, ...] = ()
    """The beginnings of the names of layers that Procrustes is taken of too."""

    def maps(self, size: str, end: str = END) -> tuple["Titled", ...]:
        """What :class:`Learned` asks for, in its order; ``end`` stands in the place of trained models."""
        n, left, right = at_size(size, EXTENTS).n_samples, *(one.experiments(size) for one in (self.left, self.right))
        names = self.left.at(size).name, self.right.at(size).name
        if self.at is None:
            return tuple(
                Titled(Wanted(left, right, weights, n, self.procrustes), *names)
                for weights in ((end, end), (FIRST, FIRST))
            )
        share = self.left.shares(size)[self.at]
        early = f"{share:.6f}" if end == END else end  # an untrained network is the same at every step
        titles = f"{names[0]} @ {share:.0%} of training", names[1]
        groups = ((left, right, (early, end)), (left, right, (FIRST, end)), (right, right, (end, end)))
        return tuple(Titled(Wanted(*group, n, self.procrustes), *titles) for group in groups)


@dataclass(frozen=True)
class Titled:
    """A map that is asked for, and what its rows and columns are called."""

    wanted: Wanted
    left: str
    right: str


@dataclass(frozen=True)
class Figure:
    """The heat maps of one figure and what is read off each."""

    pairs: tuple[Pair, ...]
    claims: Claims
    notes: tuple[str, ...] = field(default=())


def study_of(name: str, figure: Figure, size: str) -> Study:
    """Every setting of a figure, and its maps, those of untrained networks in place of trained ones among them."""
    settings = {one: None for pair in figure.pairs for one in (pair.left, pair.right)}
    maps = [one.wanted for pair in figure.pairs for end in (END, AGAIN) for one in pair.maps(size, end)]
    return settings_study(name, tuple(settings), (), size, tuple(dict.fromkeys(maps)))


def judge_of(figure: Figure, results: Results, size: str, end: str = END) -> Outcome:
    """Every heat map and its claims; ``end`` stands in the place of trained models."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    missing: list[str] = []
    pairs = {(p.left.at(size), p.right.at(size), p.at): p for p in figure.pairs}
    for pair in pairs.values():
        maps = pair.maps(size, end)
        title = f"{maps[0].left} and {maps[0].right}"
        found = learned(maps, results)
        if found is None:
            missing.append(f"{title}: not compared, for models or what was taken of them are missing.")
            continue
        comparisons += [replace(one, what=f"{title}: {one.what}") for one in figure.claims(found)]
        figures |= {f"{measure}, {title}": found.after.figure(measure) for measure in found.after.scores}
        figures |= {f"{CKA} before training, {title}": found.before.figure(CKA)}
    told = (*size_notes(EXTENTS[size].steps, EXTENTS[size].n_samples, size), *missing, *figure.notes)
    return Outcome(tuple(comparisons), figures, notes=notes(size, *told))


def learned(maps: Sequence[Titled], results: Results) -> Learned | None:
    """The similarity of all layers of a pair of settings, after and before training; None where it was not taken."""
    found = [layer_map(one.wanted, results, one.left, one.right) for one in maps]
    known = [one for one in found if one is not None]
    return Learned(*known) if len(known) == len(found) else None


def size_notes(steps: int, n_samples: int, size: str) -> Iterator[str]:
    """What a size leaves out, and how similarity is computed."""
    yield (
        f"{N_SEEDS} seeds, {steps:,} steps; layers are compared on {n_samples:,} examples (published: 300,000, 5,000)"
        " of the whole world, the same for all models, by the biased CKA, as published. Values are paired by the seed"
        " of the model in the rows, each the mean over the seeds of the model in the columns."
    )
    yield (
        "Untrained networks are compared the same way and subtracted: convolutional encoders with random weights have a"
        " CKA of 0.85 with each other and decoders 0.03, so that similarity alone is found without any training. How"
        " similar layers are, and that Procrustes overrates wide ones, is therefore shown and not judged. Models of one"
        " seed begin with the same weights whatever their objective: one pair in five of two objectives is equal before"
        " training, so that what training adds comes out a little too small."
    )
    if size == "smoke":
        yield "The micro-world and small networks stand in for all three worlds."
    if size != "paper":
        yield "Early is a tenth of training here; the published early snapshots come after 2 to 8 % of 300,000 steps."
    if size == "small":
        yield "SmallNORB must be fetched by hand: dSprites stands in for it."


PROCRUSTES_NOTE = (
    "Procrustes is taken of layers with the same layer of the other model alone, which is what is judged; the source"
    " has all pairs of layers."
)


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
            maps = (found.after, found.before, *([found.end] if found.end else []))
            if all(measure in one.scores for one in maps):
                yield from claims(found, measure)

    return both


def controls_of(figure: Figure) -> tuple[Control, ...]:
    """A second sample of untrained networks in the place of trained ones."""
    sentence = "the same networks before their first step, with seeds of their own, measured and judged the same way."
    return (Control("untrained", sentence, lambda results, size, draw: judge_of(figure, results, size, AGAIN)),)


def over_epochs(settings: Sequence[Setting], procrustes: tuple[str, ...] = ()) -> tuple[Pair, ...]:
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
