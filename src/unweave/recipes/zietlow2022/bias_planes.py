"""Figures 4.10 and 4.11: planes of two latents of the best and the worst models, and whether they are polar."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unweave.evaluation.traversal import plane
from unweave.pages.outcome import Outcome
from unweave.plots.images import plane as plane_figure
from unweave.recipes.controls import altered, with_columns
from unweave.recipes.perturb import Candidate
from unweave.recipes.reproduction import Control, Judge
from unweave.recipes.zietlow2022.bias import (
    AMOUNTS,
    Asked,
    Place,
    about,
    all_to_choose_from,
    bias_study,
    chosen_from,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import undecided
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_sign

if TYPE_CHECKING:
    import matplotlib.figure

ASKED = Asked(methods=(), conditions=(), places=("shapes3d_like", "shapes3d", "micro"))

N_SHOWN = 4
"""Models at each end, as in the source."""

PAIRS = {
    "dsprites": ("x", "y"),
    "shapes3d": ("wall_hue", "orientation"),
    "shapes3d_like": ("wall_hue", "orientation"),
    "micro": ("x", "y"),
}
"""The factors that are looked at. To take the pair that is held in the most polar way would make any model polar."""

N_PICTURES, WIDTH = 7, 2.0

NOTE = (
    "The source picks the two latents by hand; here they are those that tell most about the two factors. The number is"
    " what angle and radius of their plane tell of the two factors, less what its two axes tell at the best rotation,"
    " as shares of the factors' entropies: 1 is polar, −1 cartesian. It does not see rotations: a model that is"
    " entangled only because its axes are turned is cartesian. The pair of factors is the same for all models of a"
    " world; on dSprites it was at first the pair that a model holds in the most polar way, which made it polar by the"
    " toss of a coin in four of five draws, and was then set to x and y before the numbers of these were seen."
)


def planes_study(name: str, size: str, title: str) -> Study:
    """The models to choose from, on the original images; those at both ends are opened."""
    return replace(bias_study(name, size, title, ASKED), opened=partial(both_ends, size))


def planes_outcome(results: Results, size: str, word: Literal["disentangled", "entangled"]) -> Outcome:
    """The planes of the models at one end, and a number for each."""
    figures: dict[str, matplotlib.figure.Figure] = {}
    rows: list[dict[str, Any]] = []
    claims: list[Comparison] = []
    end, sign = (0, -1) if word == "disentangled" else (1, 1)
    for place in places_of(size, ASKED):
        models = ends(results, place, size)[end]
        shown = plane_rows(results, place, models, word)
        figures |= planes_figures(results, place, models, word)
        rows += shown
        if word == "entangled":
            claims.append(polar_claim(results, place, size))
        scores = [row["polar − cartesian"] for row in shown]
        what = f"{place.title}: polar − cartesian of the {word} models"
        claims.append(compare_sign(what, *_mean(scores), len(scores), sign, "t-interval of the mean over models"))
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    absent = len(rows) - len(figures)
    undrawn = (f"The weights of {absent} of {len(rows)} models are not here: their planes are not drawn.",)
    return Outcome(tuple(claims), figures, {"Planes": rows}, (*about(size), NOTE, *(undrawn if absent else ())))


def ends(results: Results, place: Place, size: str) -> tuple[list[Candidate], list[Candidate]]:
    """The models with the highest and with the lowest MIG, over-pruned ones left out."""
    found = [one for one in chosen_from(place, AMOUNTS[size], results) if not one.over_pruned]
    ordered = sorted(found, key=lambda one: (-one.score, one.seed))
    n = min(N_SHOWN, len(ordered) // 2)
    return ordered[:n], ordered[::-1][:n]


def both_ends(size: str, results: Results) -> list[str]:
    """Ids of the models at both ends, whose planes are drawn; none before all are known."""
    places = [one for one in places_of(size, ASKED) if all_to_choose_from(one, AMOUNTS[size], results)]
    return [model.id for place in places for side in ends(results, place, size) for model in side]


def plane_of(results: Results, place: Place, model: Candidate) -> dict[str, Any]:
    """The plane of a model that holds the world's pair of factors."""
    rows = results.table.filter(results.table["id"] == model.id)["alignment.planes"].to_list()[0]
    return dict(next(row for row in rows if set(row["factors"]) == {*PAIRS[place.world.name]}))


def planes_figures(
    results: Results, place: Place, models: list[Candidate], word: str
) -> "dict[str, matplotlib.figure.Figure]":
    """What every model whose weights are here draws over its plane."""
    figures = {}
    values = np.linspace(-WIDTH, WIDTH, N_PICTURES)
    for model in (one for one in models if results.has_weights(one.id)):
        held = plane_of(results, place, model)
        first, second = held["latents"]
        shown = plane(results.run(model.id), first, second, n=N_PICTURES, width=WIDTH)
        score = f"{held['score']:+.2f}".replace("-", "−")
        title = f"{place.title}, {word}, seed {model.seed}: MIG {model.score:.2f}, polar − cartesian {score}"
        figures[title] = plane_figure(shown.numpy(), values[::-1], values, f"latent {first}", f"latent {second}")
    return figures


def plane_rows(results: Results, place: Place, models: list[Candidate], word: str) -> list[dict[str, Any]]:
    """One row a model: its score and how it holds the factors."""
    rows = []
    for model in models:
        held = plane_of(results, place, model)
        told = {"factors": " and ".join(held["factors"]), "latents": ", ".join(map(str, held["latents"]))}
        shown = {"polar − cartesian": held["score"], "polar": held["polar"], "cartesian": held["cartesian"]}
        rows.append({"world": place.title, "model": word, "seed": str(model.seed), "MIG": model.score} | told | shown)
    return rows


def polar_claim(results: Results, place: Place, size: str) -> Comparison:
    """Entangled models are more polar than disentangled ones."""
    best, worst = ([plane_of(results, place, model)["score"] for model in side] for side in ends(results, place, size))
    what = f"{place.title}: polar − cartesian of the most entangled beside the most disentangled models"
    return compare_difference(what, worst, best, 1)


def random_signs(judge: Judge) -> Control:
    """The planes with signs drawn at random: as far from neither, polar or cartesian by chance."""

    def drawn(results: Results, generator: np.random.Generator) -> Results:
        planes = [
            [row | {"score": row["score"] * float(generator.choice([-1, 1]))} for row in rows or ()]
            for rows in results.table["alignment.planes"].to_list()
        ]
        return with_columns(results, {"alignment.planes": planes})

    return altered(judge, "random signs", "every plane polar or cartesian by the toss of a coin.", drawn)


def _mean(scores: list[float]) -> tuple[float, tuple[float, float] | None]:
    values = np.array(scores)
    return (float(values.mean()) if len(values) else float("nan")), mean_interval(values) if len(values) > 2 else None
