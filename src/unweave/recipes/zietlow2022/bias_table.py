"""The judge of Tables 4.2 to 4.5: a metric on original, modified and noisy images, published beside ours."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from unweave.data.altered import Perturbed
from unweave.models.objectives import Perturbation
from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.controls import apart, with_columns
from unweave.recipes.perturb import LEAST_DEVIATION, Veil, veil_of
from unweave.recipes.reproduction import Control, Judge
from unweave.recipes.zietlow2022.bias import (
    COLUMNS,
    CONDITIONS,
    KINDS,
    MODIFIED,
    NOISE,
    ORIGINAL,
    OTHERS,
    PLACES,
    REVERSED,
    SAME,
    TABLE,
    VARIATIONAL,
    Place,
    about,
    grouped,
    methods_of,
    places_of,
    title_of,
)
from unweave.recipes.zietlow2022.settings import by_seed, spread_rows
from unweave.studies.results import Results
from unweave.studies.verdicts import ROUNDING, Comparison, compare_difference, compare_mean

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

Cell = tuple[float, float]
Groups: TypeAlias = "Mapping[tuple[str, str, str], pl.DataFrame]"

N_SEEDS = 10
"""Behind every published mean ± deviation."""

MARGINS = {"MIG": 0.1, "DCI": 0.1, "FactorVAE": 0.1, "SAP": 0.03}
"""What "does not drop" allows: the 95 % interval of the difference must lie within. A third to a half of the drops that
are published for β-VAEs on Shapes3D."""


def judge_table(
    metric: str, published: Mapping[str, Mapping[str, tuple[Cell, ...]]], results: Results, size: str
) -> Outcome:
    """Every claim of the text on one metric, every published cell, and the violins."""
    groups = grouped(results)
    claims: list[Comparison] = []
    for place in places_of(size):
        claims += _claims(groups, place, metric, size)
        claims += _cells(groups, place, metric, published, size)
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    figures = {
        f"{score_words(metric)} on {place.title}": _figure(groups, place, metric, methods_of(size, TABLE))
        for place in places_of(size)
        if any(key[0] == place.title for key in groups)
    }
    tables = {
        "Published beside ours": _rows(groups, places_of(size), metric, published, methods_of(size, TABLE)),
        "Everything measured": spread_rows(
            {" · ".join(key): part for key, part in groups.items()}, COLUMNS | {"latents in use": "alignment.n_active"}
        ),
    }
    margin = (
        f"“Does not drop” means that the 95 % interval of the difference lies within ±{MARGINS[metric]:g}. Runs are"
        " paired by seed; d is the mean difference in units of the differences' deviation. Over-pruned models are kept"
        " here, as in the source's tables; how many latents are in use stands below."
    )
    return Outcome(tuple(claims), figures, tables, (*about(size), margin))


def controls_of(judge: Judge, *others: Control, drops: bool = True) -> tuple[Control, ...]:
    """What must not pass where modified images are judged: dealt scores, noise, and a change of all images alike."""
    return any_condition(judge), noise_instead(judge, drops=drops), *others, veil_instead(judge)


def any_condition(judge: Judge) -> Control:
    """Scores dealt to original, modified and noisy images, and to all methods, at random."""
    sentence = "scores dealt to all methods and to original, modified and noisy images at random."
    return apart(judge, sentence, _score_columns())


def noise_instead(judge: Judge, *, drops: bool = True) -> Control:
    """Noise in the place of the manipulation: what it does too is not the manipulation's.

    It agrees where it gives half of a drop or more (``drops``: the claims say how far a score falls), and where it
    makes the claim hold while modified images beside noisy ones do not.
    """
    return _instead(judge, NOISE, "noisy images", DROPS, drops)


def same_instead(judge: Judge) -> Control:
    """The manipulation that was trained against itself, by the same rule: it must not give a β-VAE's drop either."""
    return _instead(judge, SAME, "images of the manipulation with the same models on both sides", OF_BETA_VAES, True)


def veil_instead(judge: Judge) -> Control:
    """What a manipulation does to all images alike, in the place of the manipulation.

    Where m deviates from image to image by less than ``unweave perturb`` asks for, these are the modified images to
    within a grey level or two of 256: what is found on them is no doing of the factors.
    """

    def judged(results: Results, size: str, draw: int) -> Outcome:
        found, veils = judge(results, size), _veils(results)
        told = []
        for one in found.comparisons:
            veil = next((veil for title, veil in veils.items() if one.what.startswith(title)), None)
            if veil is not None:  # without the manipulation's weights nobody knows
                other = replace(one, ours=None, interval=None, verdict="cannot tell")
                told.append(one if veil.deviation < LEAST_DEVIATION else other)
        return replace(found, comparisons=tuple(told))

    sentence = (
        "what m does to all images alike, without what depends on their factors. Where m deviates from image to image"
        f" by less than {LEAST_DEVIATION:g}, these are the modified images, and what holds of them agrees. It is asked"
        " where the manipulation's weights are at hand."
    )
    return Control("the same on every image", sentence, judged, about="modified|manipulation")


def _veils(results: Results) -> dict[str, Veil]:
    """How far the manipulation of every world is the same on all images, where its weights are at hand."""
    return {
        title_of(one.world): veil_of(Perturbed(str(results.store.folder(one.id).path)))
        for one in results.experiments
        if isinstance(one.objective, Perturbation) and list(KINDS)[one.seed] == MODIFIED and results.has_weights(one.id)
    }


def _instead(judge: Judge, condition: str, images: str, about: str, drops: bool) -> Control:
    def put(replaced: str, results: Results, size: str) -> Outcome:
        return judge(_in_place_of(replaced, condition, results), size)

    return control_of(put, condition, images, about, drops)


def control_of(
    judge_with: Callable[[str, Results, str], Outcome], name: str, images: str, about: str, drops: bool = True
) -> Control:
    """Other images as a control of drops. ``judge_with`` puts their scores in the place of those on modified images, or
    of those on original ones."""

    def judged(results: Results, size: str, draw: int) -> Outcome:
        found = judge_with(MODIFIED, results, size)
        if size == "smoke":
            return found
        beyond = {one.what: one for one in judge_with(ORIGINAL, results, size).comparisons}
        compared = (_beside(one, beyond[one.what], drops) for one in found.comparisons if one.n and one.what in beyond)
        return replace(found, comparisons=tuple(compared))

    half = "it gives half of the drop or more, or where " if drops else ""
    sentence = (
        f"scores on {images} in the place of those on modified ones. It agrees where {half}the claim holds with it and"
        " does not hold of modified beside these images."
    )
    return Control(name, sentence, judged, about=about)


def _beside(found: Comparison, beyond: Comparison, drops: bool) -> Comparison:
    """What other images give, and whether that is what the claim is about; ``beyond`` is what modified ones add."""
    instead = found.verdict == "agrees" and beyond.verdict != "agrees"
    if drops and found.ours is not None and beyond.ours is not None:
        instead = instead or found.ours >= max(beyond.ours, ROUNDING)
    return replace(
        found, verdict="agrees" if instead else "cannot tell" if found.verdict == "agrees" else found.verdict
    )


DROPS = "original beside modified images|lower on modified images|beside the best scale on modified ones"
OF_BETA_VAES = "β-VAE: .* on original beside modified images"
"""Claims that a score falls, as regular expressions; those of the method that learns from controls' images too."""


def _in_place_of(condition: str, other: str, results: Results) -> Results:
    """The scores of every method and seed on one kind of images replaced by those on another kind."""
    groups, ids = grouped(results), results.table["id"].to_list()
    columns = [name for name in _score_columns() if name in results.table.columns]
    changed = {name: dict(zip(ids, results.table[name].to_list())) for name in columns}
    for (title, method, kind), part in groups.items():
        if kind != condition:
            continue
        instead = groups.get((title, method, other))
        for name in columns:
            known = {} if instead is None else by_seed(instead, name)
            changed[name] |= {run: known.get(seed, math.nan) for run, seed in part.select("id", "seed").iter_rows()}
    return with_columns(results, {name: list(values.values()) for name, values in changed.items()})


def _score_columns() -> list[str]:
    per_factor = [f"alignment.per_factor.{name}" for place in PLACES.values() for name in factors_of(place)]
    return list(dict.fromkeys([*COLUMNS.values(), *per_factor]))


def factors_of(place: Place) -> tuple[str, ...]:
    """The names of a world's factors."""
    space = place.world.card().space
    assert space is not None
    return tuple(space.names)


def undecided(one: Comparison, why: str) -> Comparison:
    """A comparison that is shown and not judged."""
    return replace(one, verdict="cannot tell", note="; ".join(filter(None, (one.note, why))))


def score_words(metric: str) -> str:
    """A metric's name in a sentence: one of them is called as a method is."""
    return "FactorVAE score" if metric == "FactorVAE" else metric


def _claims(groups: Groups, place: Place, metric: str, size: str) -> list[Comparison]:
    score = score_words(metric)

    def values(method: str, condition: str) -> dict[int, float]:
        part = groups.get((place.title, method, condition))
        return {} if part is None else by_seed(part, COLUMNS[metric])

    def differ(what: str, method: str, first: str, second: str, sign: int) -> Comparison:
        one, other = values(method, first), values(method, second)
        found = compare_difference(f"{place.title}, {method}: {what}", one, other, sign, tolerance=MARGINS[metric])
        return with_effect(found, one, other)

    found = []
    for method in methods_of(size, TABLE):
        if method in VARIATIONAL:
            found.append(differ(f"{score} on original beside modified images", method, ORIGINAL, MODIFIED, 1))
            found.append(differ(f"{score} on noisy beside modified images", method, NOISE, MODIFIED, 1))
        elif method in OTHERS:
            found.append(differ(f"{score} stays on modified images", method, ORIGINAL, MODIFIED, 0))
    found.append(differ(f"control, {score} where both sides are the same models", "β-VAE", ORIGINAL, SAME, 0))
    found.append(
        differ(f"control, {score} of the same models beside the true manipulation", "β-VAE", SAME, MODIFIED, 1)
    )
    found.append(
        differ(f"control, {score} of the exchanged beside the true manipulation", "β-VAE", REVERSED, MODIFIED, 1)
    )
    return found


def with_effect(one: Comparison, first: Mapping[int, float], second: Mapping[int, float]) -> Comparison:
    """The comparison with its effect size in the note: mean over deviation of the paired differences."""
    pairs = [first[seed] - second[seed] for seed in first if seed in second]
    known = np.array([value for value in pairs if math.isfinite(value)])
    spread = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    if spread == 0.0:
        return one
    return replace(one, note="; ".join(filter(None, (one.note, f"d = {known.mean() / spread:.2f}".replace("-", "−")))))


def _cells(groups: Groups, place: Place, metric: str, published: Any, size: str) -> list[Comparison]:
    """Published numbers, which only the published size on the published world judges."""
    if size != "paper" or not place.published:
        return []
    found = []
    for method, cells in published[place.published].items():
        for condition, (mean, deviation) in zip(CONDITIONS, cells):
            part = groups.get((place.title, method, condition))
            what = f"{place.title}, {method}, {condition}: {score_words(metric)}"
            values = {} if part is None else by_seed(part, COLUMNS[metric])
            found.append(compare_mean(what, values, mean, tolerance=MARGINS[metric], spread=(deviation, N_SEEDS)))
    return found


def _rows(groups: Groups, places: list[Place], metric: str, published: Any, methods: tuple[str, ...]) -> list[Any]:
    """One row a method: the published cells, and ours."""
    rows = []
    for place in places:
        # what is published for Shapes3D stands beside its imitation too, and is not judged there
        source = place.published or ("Shapes3D" if "Shapes3D" in place.title else "")
        for method in methods:
            row: dict[str, Any] = {"world": place.title, "method": method}
            cells = published.get(source, {}).get(method, ((None, None),) * 3)
            for condition, (mean, deviation) in zip(CONDITIONS, cells):
                row[f"{condition}, published"] = "–" if mean is None else f"{mean:.2f} ± {deviation:.2f}"
                part = groups.get((place.title, method, condition))
                row[condition] = "–" if part is None else _spread(by_seed(part, COLUMNS[metric]))
            rows.append(row)
    return rows


def _spread(values: Mapping[int, float]) -> str:
    known = np.array([value for value in values.values() if math.isfinite(value)])
    if not len(known):
        return "–"
    return f"{known.mean():.2f}" + (f" ± {known.std(ddof=1):.2f}" if len(known) > 1 else "")


def _figure(groups: Groups, place: Place, metric: str, methods: tuple[str, ...]) -> "matplotlib.figure.Figure":
    names, samples, families = [], [], []
    for number, method in enumerate(methods):
        conditions = (*CONDITIONS, SAME, REVERSED) if method == "β-VAE" else CONDITIONS
        for condition in conditions:
            part = groups.get((place.title, method, condition))
            if part is not None:
                names.append(f"{method} {condition}")
                samples.append(list(by_seed(part, COLUMNS[metric]).values()))
                families.append(number)
    return violins(samples, names, "", score_words(metric), families=families)
