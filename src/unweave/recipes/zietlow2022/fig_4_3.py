"""z-fig-4.3: what the manipulation does to images (Zietlow, 2022, §4.3.2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unweave.data.altered import Perturbed
from unweave.models.objectives import Perturbation
from unweave.pages.manipulation import Losses, losses_of
from unweave.pages.outcome import Outcome
from unweave.recipes.extent import at_size
from unweave.recipes.perturb import altered_images, side_words, veil_of
from unweave.recipes.reproduction import Control, Reproduction
from unweave.recipes.zietlow2022.bias import (
    AMOUNTS,
    KINDS,
    MODIFIED,
    REVERSED,
    SAME,
    Asked,
    Place,
    about,
    bias_study,
    chosen_from,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import undecided
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_exact

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "Changes of the images that nobody sees"

ASKED = Asked(methods=(), conditions=(), controls=(SAME, REVERSED))


def study(size: str) -> Study:
    """The models to choose from, the manipulation, and both controls of it."""
    return replace(bias_study("z-fig-4.3", size, TITLE, ASKED), opened=_made)


def _made(results: Results) -> list[str]:
    return [one.id for one in results.experiments if isinstance(one.objective, Perturbation)]


def judge(results: Results, size: str) -> Outcome:
    """Pictures of every manipulation, how far its pixels go, and what its sides' losses became."""
    return judge_with(results, size)


def judge_with(results: Results, size: str, times: float = 1.0, kinds: Sequence[str] = (MODIFIED, REVERSED)) -> Outcome:
    """The same, with changes that are so many times as large, and gaps of these two kinds of manipulations."""
    figures: dict[str, matplotlib.figure.Figure] = {}
    rows: list[dict[str, Any]] = []
    claims: list[Comparison] = []
    curves: dict[str, dict[str, Losses]] = {}
    for one in results.experiments:
        folder = results.store.folder(one.id)
        if one.id not in _made(results) or not results.has_weights(one.id):
            continue
        shown, losses = altered_images(Perturbed(str(folder.path))), losses_of(results.run(one.id))
        kind, title = list(KINDS)[one.seed], one.world.card().title
        curves.setdefault(title, {})[kind] = losses
        figures[f"{title}, {kind}: originals, changes, altered images"] = shown.plot()
        farthest = times * float((shown.altered - shown.originals).abs().max())
        beyond = max(0.0, farthest - shown.epsilon)
        claims.append(
            compare_exact(f"{title}, {kind}: how far any pixel goes beyond ε = {shown.epsilon:g}", beyond, 0, 1e-6)
        )
        first, last = losses.first, losses.last
        veil = veil_of(Perturbed(str(folder.path)))
        told = {"deviation of m over images": veil.deviation, "pixels at an end of m": veil.saturated}
        rows.append({"world": title, "manipulation": kind, "farthest pixel": farthest} | told | _told(first, last))
    claims += [_gain(title, known, kinds) for title, known in curves.items() if len(known) == len(KINDS)]
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    notes = (
        "Whether people see the change is not judged here: the pictures are shown, with the change amplified.",
        "With a Bernoulli likelihood a grey pixel costs at least its entropy, so that any change of a black background"
        " raises both losses; what counts is their gap.",
        "m that deviates little from image to image says nothing of their factors: it is a veil, and its images are to"
        " VAEs what grey or noisy ones are.",
        "What a change has gained is the gap less what it would be anyway, for one side's models may be better at any"
        " image. Exchanging the sides turns the sign of that: the mean of both gaps is the gain. The same models on"
        " both sides have nothing to gain but what the change makes of their draws of codes, so theirs is what others"
        " must fall below. Batches recorded in the last third of the training are paired by their step.",
    )
    models = [row for place in places_of(size, ASKED) for row in _models(place, results, size)]
    tables = {"Losses of the two sides": rows, "The models to choose from": models}
    return Outcome(tuple(claims), figures, tables, (*about(size), *notes))


def _gain(title: str, curves: Mapping[str, Losses], kinds: Sequence[str]) -> Comparison:
    """Whether manipulations widened the gap between their sides, beside one that has nothing to widen."""
    what = f"{title}: mean gap of the manipulation and of the exchanged one beside that of the same models"
    gaps = [curves[kind].late("gap") for kind in (*kinds, SAME)]
    first = {step: (gap + gaps[1].get(step, math.nan)) / 2 for step, gap in gaps[0].items()}
    return compare_difference(what, first, gaps[2], -1)


def _models(place: Place, results: Results, size: str) -> list[dict[str, Any]]:
    found = sorted(chosen_from(place, at_size(size, AMOUNTS), results), key=lambda one: -one.score)
    return [
        {
            "world": place.title,
            "seed": str(one.seed),
            "MIG": one.score,
            "latents in use": one.n_active,
            "side": side_words(one),
        }
        for one in found
    ]


def _told(first: dict[str, float], last: dict[str, float]) -> dict[str, float]:
    return {f"{name} {word}": part[name] for name in first for word, part in (("at first", first), ("at last", last))}


CONTROLS = (
    Control(
        "twice",
        "changes that are twice as large.",
        lambda results, size, draw: judge_with(results, size, 2.0),
        about="how far any pixel goes",
    ),
    Control(
        "the same models",
        "their gap in the place of those of the manipulation and of the exchanged one.",
        lambda results, size, draw: judge_with(results, size, kinds=(SAME, SAME)),
        about="mean gap",
    ),
)

REPRODUCTION = Reproduction("z-fig-4.3", TITLE, f"{SOURCE}, Figure 4.3", study, judge, CONTROLS)
