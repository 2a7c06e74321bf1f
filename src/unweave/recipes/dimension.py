"""How many latents does a world need? FONDUE and its kin as a study (Bonheme, 2023, chapter 8).

Every model that is tried is an ordinary run of a store: a search that was killed goes on where it stopped, and another
method, start or threshold asks the same runs.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import CRITERIA, METHODS, Fondue
from unweave.algorithms.search import Visit
from unweave.data.world import Data
from unweave.pages.dimension import dimension_page
from unweave.plots.dimension import ElbowTable, SearchTable
from unweave.recipes.dimension_search import (
    DimensionSearch,
    ahead_of,
    bounds,
    check_search,
    steps_of,
    value_of,
)
from unweave.recipes.dimension_study import (
    Curves,
    DimensionQuestion,
    Rounds,
    Searched,
    ask_search,
    elbow_curves,
    intrinsic_dimension,
    run_search,
    search_name,
    settled,
)
from unweave.runs.folder import RunFolder
from unweave.studies.executors.executor import Executor
from unweave.studies.measures.fondue import TYPES
from unweave.studies.one_by_one import OneByOne
from unweave.studies.store import Store
from unweave.studies.together import Together
from unweave.studies.train_and_measure import loaded
from unweave.training.experiment import Experiment
from unweave.training.progress import progress
from unweave.training.running import RunOptions, StepReport, Watcher

Read = Callable[[int], Mapping[str, Any]]
"""What was read of the n-th model."""


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
    """The store."""
    name: str
    """Of the study, and of the page's folder."""

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
            "study": self.name,
        }


def dimension(
    experiment: Experiment,
    search: DimensionSearch = DimensionSearch(),
    folder: Path | str | None = None,
    *,
    execute: Executor | None = None,
    how: RunOptions = RunOptions(),
    tell: Callable[[int, int], None] = lambda done, total: None,
    wait: Callable[[str], AbstractContextManager[None]] = contextlib.nullcontext,  # type: ignore[assignment]
) -> Dimension:
    """Search, training one model for every value that is tried; the same call again goes on, or returns at once.

    ``folder`` is the store (``runs``); ``execute``, ``how`` and ``tell`` are those of any study. Models that are
    trained ahead of the answers that ask for them change no answer, only how many are trained. ``wait`` is entered
    with words for whatever takes time before the first model.
    """
    base = experiment.resolve()
    check_search(base, search)
    execute = execute or (OneByOne() if ahead_of(search, base) == 1 else Together())
    store = Store("runs" if folder is None else folder).prepare()
    way: dict[str, Any] = {"execute": execute, "how": how, "tell": tell}
    draw = run_search(replace(search, method="elbow"), store.root, **way)
    before = _trained(store, base)
    with wait("reading the data"):
        data, name = loaded(base.world), search_name(base, search)
    first = steps_of(search, base, data)
    if search.method == "elbow":
        curves = elbow_curves(base, search, first, draw)
        words, trained = tuple(_words_of_curves(curves)), len(_trained(store, base) - before)
        return Dimension(None, search, 0, "", first, (), None, (), trained, curves, words, store.root, name)
    with wait("estimating the data's intrinsic dimension, where to begin"):
        start, start_from = _start(base, search, data)
    least, most = bounds(search, data.shape)
    question = DimensionQuestion(base, search, start, least, most, first)
    found, read = ask_search(question, run_search(search, store.root, **way))
    drawn = elbow_curves(base, search, found.steps, draw) if search.elbow else None
    return Dimension(
        answer=value_of(search, found.fondue.n),
        search=search,
        start=value_of(search, start),
        start_from=start_from,
        steps=found.steps,
        rounds=found.rounds,
        fondue=found.fondue,
        rows=tuple(_row(question, found, visit, read) for visit in found.fondue.found.visits),
        curves=drawn,
        findings=(*words_of_search(search, found, read), *(_words_of_curves(drawn) if drawn else ())),
        n_trained=len(_trained(store, base) - before),
        folder=store.root,
        name=name,
    )


def page_folder(store: Path, name: str) -> Path:
    """Where the page, the pictures and the numbers of a search are."""
    return Store(store).home / "reports" / name


def write_dimension(found: Dimension, title: str) -> Path:
    """Write the page, its pictures and the numbers into the store; the page's path is returned."""
    files, name = RunFolder(page_folder(found.folder, found.name)), found.search.method
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


@contextlib.contextmanager
def bars() -> Iterator[Watcher]:
    """A watcher that shows a bar for every model: a new one where the steps begin again."""
    with contextlib.ExitStack() as stack:
        shown: list[Watcher] = []
        last = [0]

        def watch(report: StepReport) -> None:
            if not shown or report.done < last[0]:
                stack.close()
                shown.append(stack.enter_context(progress(f"model {len(shown) + 1}")))
            last[0] = report.done
            shown[-1](report)

        yield watch


def _trained(store: Store, base: Experiment) -> set[str]:
    """Finished runs of the same world and objective."""
    found = store.root.glob(f"{base.world.name}-{base.objective.name}-*")
    return {path.name for path in found if RunFolder(path).trained}


def _start(base: Experiment, search: DimensionSearch, data: Data) -> tuple[int, str]:
    """The n to begin with, and where it comes from."""
    least, most = bounds(search, data.shape)
    if METHODS[search.method].search == "bisection":
        return max(1, (least + most) // 2), "the middle of the range"
    if search.over != "latents":
        given = getattr(base.objective, search.over) if search.start is None else search.start
        words = f"the objective's own {search.over}" if search.start is None else "given"
        return max(1, min(most, round(given / search.resolution))), words
    if search.start is not None:
        return max(1, min(most, round(search.start))), "given"
    estimate = intrinsic_dimension(data, search.examples, base.seed, base.plan.device)
    n = most if math.isinf(estimate) else max(1, min(most, round(estimate)))
    return n, f"the data's intrinsic dimension, {estimate:.2f}"


def _row(question: DimensionQuestion, found: Searched, visit: Visit, read: Read) -> dict[str, Any]:
    search, judged = question.search, read(visit.n)
    criterion = CRITERIA[METHODS[search.method].criterion]
    return {
        search.over: value_of(search, visit.n),
        "passes": visit.passes,
        criterion.first: judged["first"],
        criterion.second: judged["second"],
        "difference": judged["first"] - judged["second"],
        "lower": value_of(search, visit.lower),
        "upper": value_of(search, visit.upper),
        **{kind: judged[kind] for kind in TYPES},
        "run": question.model(visit.n, found.steps).id,
    }


def _drawn(curves: Curves) -> ElbowTable:
    rings = {name: one.size for name, one in curves.elbows.items() if one.found}
    return ElbowTable(list(curves.sizes), {name: list(heights) for name, heights in curves.values.items()}, rings)


def words_of_search(search: DimensionSearch, searched: Searched, read: Read) -> list[str]:
    """What a search has found, in sentences."""
    found, over = searched.fondue, search.over
    criterion, title = CRITERIA[METHODS[found.method].criterion], METHODS[found.method].title
    if found.n == 0:
        words = [
            f"Not even {over} = {value_of(search, 1):g} passes. The model has not learned to use its code: train longer"
            " (--epochs), raise the learning rate, or weaken the regulariser."
        ]
    else:
        rule = f"{criterion.first} − {criterion.second} ≤ {found.threshold:g}"
        words = [f"{title} answers {value_of(search, found.n):g}: the largest value of {over} with {rule}."]
        words += _idle(read(found.n))
    if found.found.limited:
        words.append("That is the upper bound itself: raise --most, or train longer (--epochs).")
    if search.until_stable:
        told = ", ".join(f"{value:g} after {steps:,} steps" for steps, value in searched.rounds)
        words.append(f"{'The answer stayed' if settled(searched.rounds) else 'The answer has not settled'}: {told}.")
    else:
        words.append(f"Models were trained for {searched.steps:,} steps; --until-stable true tries longer ones too.")
    return words


def _idle(judged: Mapping[str, Any]) -> list[str]:
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
