"""How many latents does a world need? FONDUE and its kin over ordinary runs (Bonheme, 2023, chapter 8).

Every model that is tried is a run folder of its own below ``runs/dimension-<id>/``: a search that was killed goes on
where it stopped, and another method, start or threshold asks the same runs.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import CRITERIA, METHODS, Fondue, Reading, fondue
from unweave.algorithms.search import Visit
from unweave.config import fingerprint
from unweave.data.world import Data
from unweave.pages.dimension import dimension_page
from unweave.plots.dimension import ElbowTable, SearchTable
from unweave.recipes.dimension_models import Curves, Models, Prepare, elbow_curves, intrinsic_dimension
from unweave.recipes.dimension_search import DimensionSearch, bounds, check_search, steps_of, value_of
from unweave.runs.folder import RunFolder
from unweave.studies.measures.fondue import TYPES
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.loop import Manner

SIZES = (3, 6, 8, 10, 12, 18, 24, 32)
"""Numbers of latents of the thesis's elbow curves."""

Rounds = tuple[tuple[int, float | int], ...]

MOST_ROUNDS = 6
"""Searches, each with twice the training of the one before, until an answer that is waited for is given up."""


@dataclass(frozen=True)
class Dimension:
    """The answer (None for curves alone) and everything that led to it."""

    answer: float | int | None
    search: DimensionSearch
    start: float | int
    start_from: str
    steps: int
    rounds: Rounds
    """Steps of a model and the answer they gave; more than one when the answer was waited for."""
    fondue: Fondue | None
    rows: tuple[dict[str, Any], ...]
    """Every model of the last round in the order it was tried."""
    n_trained: int
    """Models trained now; the others were there."""
    curves: Curves | None
    findings: tuple[str, ...]
    folder: Path

    def to_plain(self) -> dict[str, Any]:
        """As dictionaries, lists and numbers, ready for JSON."""
        curves = None
        if self.curves is not None:
            elbows = {name: asdict(one) for name, one in self.curves.elbows.items()}
            curves = {"sizes": list(self.curves.sizes), "values": self.curves.values, "elbows": elbows}
        return {
            "answer": self.answer,
            "over": self.search.over,
            "method": self.search.method,
            "threshold": None if self.fondue is None else self.fondue.threshold,
            "start": self.start,
            "start_from": self.start_from,
            "steps": self.steps,
            "limited": self.fondue is not None and self.fondue.found.limited,
            "path": list(self.rows),
            "rounds": [{"steps": steps, "answer": answer} for steps, answer in self.rounds],
            "models_trained_now": self.n_trained,
            "elbow": curves,
            "findings": list(self.findings),
            "folder": str(self.folder),
        }


def dimension(
    experiment: Experiment,
    search: DimensionSearch = DimensionSearch(),
    folder: Path | str | None = None,
    *,
    data: Data | None = None,
    prepare: Prepare = lambda words: nullcontext(Manner()),
) -> Dimension:
    """Search, training one model for every value that is tried; the same call again goes on, or returns at once."""
    base = experiment.resolve()
    check_search(base, search)
    place = Path(folder) if folder is not None else Path("runs") / f"dimension-{search_id(base, search.over)}"
    # from the start, so that whoever looks at the folder knows what is being searched for
    RunFolder(place).write_json("search.json", asdict(search) | {"threshold": _threshold(search)})
    models = Models(base, search, place, data or base.world.load(), prepare)
    if search.method == "elbow":
        models.steps = steps_of(search, base, models.data)
        drawn = elbow_curves(models, search.elbow or SIZES)
        words = tuple(_words_of_curves(drawn))
        return Dimension(None, search, 0, "", models.steps, (), None, (), models.n_trained, drawn, words, place)
    start, start_from = _start(models)
    found, rounds = _rounds(models, start)
    curves = elbow_curves(models, search.elbow) if search.elbow else None
    return Dimension(
        answer=value_of(search, found.n),
        search=search,
        start=value_of(search, start),
        start_from=start_from,
        steps=models.steps,
        rounds=rounds,
        fondue=found,
        rows=tuple(_row(models, found, visit) for visit in found.found.visits),
        curves=curves,
        findings=(*_words(models, found, rounds), *(_words_of_curves(curves) if curves else ())),
        n_trained=models.n_trained,
        folder=place,
    )


def write_dimension(found: Dimension, title: str) -> Path:
    """Write the page, its pictures and the numbers into the search's folder; the page's path is returned."""
    files, name = RunFolder(found.folder), found.search.method
    curves, visited = found.curves, None
    if found.fondue is not None:
        criterion = CRITERIA[METHODS[name].criterion]
        columns = {key: [row[key] for row in found.rows] for key in ("lower", "upper", "passes", found.search.over)}
        readings = [found.fondue.readings[visit.n] for visit in found.fondue.found.visits]
        visited = SearchTable(
            columns[found.search.over], columns["lower"], columns["upper"], [one.first for one in readings],
            [one.second for one in readings], columns["passes"], (criterion.first, criterion.second), found.search.over,
        )  # fmt: skip
    made = dimension_page(
        title=title,
        answer=found.answer,
        findings=found.findings,
        visited=visited,
        threshold=0.0 if found.fondue is None else found.fondue.threshold,
        rows=found.rows,
        curves=None if curves is None else _drawn(curves),
        settings=_settings(found),
    )
    for picture, content in made.pictures.items():
        files.write(f"figures/{name}-{picture}", content)
    files.write_json(f"{name}.json", found.to_plain())
    return files.write(f"{name}.html", made.html)


def _settings(found: Dimension) -> dict[str, Any]:
    known = {"steps": found.steps, "start": found.start, "start from": found.start_from}
    if found.fondue is not None:
        known["threshold"] = found.fondue.threshold
    return asdict(found.search) | known


def search_id(experiment: Experiment, over: str) -> str:
    """The name of everything that the models of a search share."""
    plain = experiment_to(experiment)
    for shared in (plain, plain["objective"]):
        shared.pop(over, None)
    del plain["steps"]
    return f"{experiment.world.name}-{experiment.objective.name}-{fingerprint(plain)}"


def _rounds(models: Models, start: int) -> tuple[Fondue, Rounds]:
    """One search; or, where the answer is waited for, searches with twice the training until two agree."""
    search, rounds = models.search, []
    for doubled in range(MOST_ROUNDS if search.until_stable else 1):
        models.steps = steps_of(search, models.base, models.data) * 2**doubled
        found = _search(models, start)
        rounds.append((models.steps, value_of(search, found.n)))
        if _settled(rounds):
            break
    return found, tuple(rounds)


def _settled(rounds: Sequence[tuple[int, float | int]]) -> bool:
    # twice nothing is not an answer that stays: it is two models that have not learned yet
    return len(rounds) > 1 and rounds[-1][1] == rounds[-2][1] > 0


def _threshold(search: DimensionSearch) -> float | None:
    if search.threshold is not None or search.method not in METHODS:
        return search.threshold
    return CRITERIA[METHODS[search.method].criterion].threshold


def _search(models: Models, start: int) -> Fondue:
    search = models.search

    def measure(n: int) -> Reading:
        judged = models.judged(n)
        return Reading(judged["first"], judged["second"])

    least, most = bounds(search, models.data.shape)
    return fondue(measure, method=search.method, start=start, least=least, most=most, threshold=search.threshold)


def _start(models: Models) -> tuple[int, str]:
    """The n to begin with, and where it comes from."""
    search, base = models.search, models.base
    least, most = bounds(search, models.data.shape)
    if METHODS[search.method].search == "bisection":
        return max(1, (least + most) // 2), "the middle of the range"
    if search.over != "latents":
        given = getattr(base.objective, search.over) if search.start is None else search.start
        words = f"the objective's own {search.over}" if search.start is None else "given"
        return max(1, min(most, round(given / search.resolution))), words
    if search.start is not None:
        return max(1, min(most, round(search.start))), "given"
    estimate = intrinsic_dimension(models.data, search.examples, base.seed, base.plan.device)
    n = most if math.isinf(estimate) else max(1, min(most, round(estimate)))
    return n, f"the data's intrinsic dimension, {estimate:.2f}"


def _row(models: Models, found: Fondue, visit: Visit) -> dict[str, Any]:
    search = models.search
    criterion, judged = CRITERIA[METHODS[found.method].criterion], models.judged(visit.n)
    return {
        search.over: value_of(search, visit.n),
        "passes": visit.passes,
        criterion.first: judged["first"],
        criterion.second: judged["second"],
        "difference": judged["first"] - judged["second"],
        "lower": value_of(search, visit.lower),
        "upper": value_of(search, visit.upper),
    } | {kind: judged[kind] for kind in TYPES}


def _drawn(curves: Curves) -> ElbowTable:
    rings = {name: one.size for name, one in curves.elbows.items() if one.found}
    return ElbowTable(list(curves.sizes), {name: list(heights) for name, heights in curves.values.items()}, rings)


def _words(models: Models, found: Fondue, rounds: Rounds) -> list[str]:
    search, over = models.search, models.search.over
    criterion, title = CRITERIA[METHODS[found.method].criterion], METHODS[found.method].title
    if found.n == 0:
        words = [
            f"Not even {over} = {value_of(search, 1):g} passes. The model has not learned to use its code: train longer"
            " (--epochs), raise the learning rate, or weaken the regulariser."
        ]
    else:
        rule = f"{criterion.first} − {criterion.second} ≤ {found.threshold:g}"
        words = [f"{title} answers {value_of(search, found.n):g}: the largest value of {over} with {rule}."]
        words += _idle(models.judged(found.n))
    if found.found.limited:
        words.append("That is the upper bound itself: raise --most, or train longer (--epochs).")
    if search.until_stable:
        told = ", ".join(f"{value:g} after {steps:,} steps" for steps, value in rounds)
        words.append(f"{'The answer stayed' if _settled(rounds) else 'The answer has not settled'}: {told}.")
    else:
        words.append(f"Models were trained for {models.steps:,} steps; --until-stable true tries longer ones too.")
    return words


def _idle(judged: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{judged[kind]} {kind}" for kind in TYPES)
    words = [f"The latents of that model: {counts}."]
    if judged["passive"]:
        # a trace difference of exactly one passive latent is 1, the published threshold
        words.append("Some of them carry nothing all the same; a lower --threshold, as 0.5, counts them out.")
    return words


def _words_of_curves(curves: Curves) -> list[str]:
    return [
        f"The elbow of the {name} is at {one.size} latents." if one.found else f"The {name} has no clear elbow."
        for name, one in curves.elbows.items()
    ]
