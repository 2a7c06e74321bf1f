"""u-transfer: does a manipulation hurt models and methods that it was not made for?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import (
    AMOUNTS,
    COLUMNS,
    CONDITIONS,
    FIRST_CANDIDATE,
    METHODS,
    MODIFIED,
    NOISE,
    ORIGINAL,
    REVERSED,
    SAME,
    Asked,
    Place,
    about,
    bias_study,
    chosen_from,
    methods_of,
    placed,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import any_condition, control_of, undecided, with_effect
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "A manipulation hurts models that it was not made for"

ASKED = Asked(
    methods=METHODS, conditions=CONDITIONS, controls=(SAME, REVERSED), places=("micro", "dsprites"), again=True
)

MADE_FROM, NOT_CHOSEN, NEW = "seeds that it was made from", "seeds that were not chosen", "new seeds"

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]
"""By group, condition and seed."""


def study(size: str) -> Study:
    """The chain of the tables, and the models to choose from once more on what came of them."""
    return bias_study("u-transfer", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """The drop of every group, from the models that it was made from to methods that are no VAEs."""
    return judge_with("", results, size)


def judge_with(replaced: str, results: Results, size: str) -> Outcome:
    """The same, with scores on noisy images in the place of those on original or on modified ones."""
    claims: list[Comparison] = []
    figures: dict[str, matplotlib.figure.Figure] = {}
    rows: list[dict[str, Any]] = []
    for place in places_of(size, ASKED):
        scores = _with_noise(scores_of(results, place, size), replaced)
        claims += _claims(place, scores)
        drops = {name: _drops(groups) for name, groups in scores.items()}
        known = {name: found for name, found in drops.items() if found}
        if known:
            figures[f"Drops of MIG on {place.title}"] = violins(list(known.values()), list(known), "", "drop of MIG")
        rows += [_row(place, name, scores[name], found) for name, found in known.items()]
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    return Outcome(tuple(claims), figures, {"Drops": rows}, (*NOTES, *about(size)))


NOTES = (
    "The manipulation is made from β-VAEs of a few seeds. Trained on its images are: β-VAEs of the same seeds, β-VAEs"
    " of the seeds that could have been chosen and were not, β-VAEs of new seeds, and other methods. A drop is MIG on"
    " original images less MIG on modified ones of the same seed.",
    "If only the first group dropped, the manipulation would have learned about its two models, and not about VAEs."
    " The controls are new β-VAEs on images of the two manipulations that should do nothing.",
)


def scores_of(results: Results, place: Place, size: str) -> Scores:
    """MIG by group: β-VAEs by how their seed took part, the other methods by name."""
    rows = {row["id"]: row for row in results.table.to_dicts()}
    sides = {one.seed: one.side for one in chosen_from(place, at_size(size, AMOUNTS), results)}
    names = [f"β-VAE, {words}" for words in (MADE_FROM, NOT_CHOSEN, NEW)]
    names += [method for method in methods_of(size, ASKED) if method != "β-VAE"]
    found: dict[str, dict[str, dict[int, float]]] = {name: {} for name in names}
    for one in results.experiments:
        known, score = placed(one, results), rows.get(one.id, {}).get(COLUMNS["MIG"])
        if known is None or known[0] != place.title or score is None:
            continue
        group = known[1] if known[1] != "β-VAE" else f"β-VAE, {_part(one.seed, sides)}"
        found[group].setdefault(known[2], {})[one.seed] = score
    return found


def _with_noise(scores: Scores, replaced: str) -> Scores:
    """Noise in the place of another kind of images. Seeds that no noise was trained with get the usual drop of it."""
    if not replaced:
        return scores
    usual = scores.get(f"β-VAE, {NEW}", {})
    drop = float(np.mean(found)) if (found := _drops(usual, NOISE)) else float("nan")
    noisy = {
        name: groups.get(NOISE) or {seed: score - drop for seed, score in groups.get(ORIGINAL, {}).items()}
        for name, groups in scores.items()
    }
    return {name: {**groups, replaced: noisy[name]} for name, groups in scores.items()}


def _part(seed: int, sides: Mapping[int, str]) -> str:
    if seed < FIRST_CANDIDATE:
        return NEW
    return MADE_FROM if sides.get(seed) else NOT_CHOSEN


def _drops(groups: Mapping[str, Mapping[int, float]], condition: str = MODIFIED) -> list[float]:
    original, modified = groups.get(ORIGINAL, {}), groups.get(condition, {})
    return [original[seed] - modified[seed] for seed in original if seed in modified]


def _claims(place: Place, scores: Scores) -> list[Comparison]:
    found = []
    for name, groups in scores.items():
        original, modified = groups.get(ORIGINAL, {}), groups.get(MODIFIED, {})
        what = f"{place.title}, {name}: MIG on original beside modified images"
        if name in ("AE", "PCL", "WS-GAN"):
            found.append(
                with_effect(compare_difference(what, original, modified, 0, tolerance=0.1), original, modified)
            )
        else:
            found.append(with_effect(compare_difference(what, original, modified, 1), original, modified))
    new = scores.get(f"β-VAE, {NEW}", {})
    for control in (NOISE, SAME, REVERSED):
        one, other = new.get(control, {}), new.get(MODIFIED, {})
        what = f"{place.title}, control, β-VAE, {NEW}: MIG on {control} beside modified images"
        found.append(with_effect(compare_difference(what, one, other, 1), one, other))
    return found


def _row(place: Place, name: str, groups: Mapping[str, Mapping[int, float]], drops: list[float]) -> dict[str, Any]:
    means = {words: float(np.mean(list(values.values()))) for words, values in groups.items() if values}
    return {
        "world": place.title,
        "group": name,
        "models": len(drops),
        **{words: means.get(words) for words in (*CONDITIONS, SAME, REVERSED)},
        "mean drop": float(np.mean(drops)),
    }


SOURCE = "unweave, beyond Zietlow (2022), chapter 4"

CONTROLS = (
    any_condition(judge),
    control_of(
        judge_with,
        "noise",
        "noisy images (of new seeds, where a group has none of its own)",
        "VAE.* on original beside",
    ),
)

REPRODUCTION = Reproduction("u-transfer", TITLE, SOURCE, study, judge, CONTROLS)
