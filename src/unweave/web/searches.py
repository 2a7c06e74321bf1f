"""Dimension searches, as far as they have come: the models that were tried, in order, and how each was judged."""

from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import CRITERIA, METHODS, ROUNDING
from unweave.files import parse_json
from unweave.runs.folder import RunFolder
from unweave.runs.row import read_object
from unweave.studies.measures.fondue import TYPES, FondueReading
from unweave.studies.record import DamagedRecord
from unweave.web.catalogue import Catalogue
from unweave.web.numbers import number
from unweave.web.schema import SearchAnswer, Visit
from unweave.web.store import NotHere, ReadOnlyStore
from unweave.web.studying import planned, read_plan


def search_names(store: ReadOnlyStore) -> list[str]:
    """Studies of the store that are dimension searches: their record says what is searched for."""
    return [name for name in planned(store) if _searched(_record(store, name))]


def search_answer(store: ReadOnlyStore, catalogue: Catalogue, name: str) -> SearchAnswer:
    """A search from its record, its runs, and what it said at its end."""
    if name not in search_names(store):
        raise NotHere(f"there is no dimension search {name[:80]!r} in this store")
    record = _record(store, name)
    searched = _searched(record)
    method, over = str(searched.get("method", "fondue")), str(searched.get("over", "latents"))
    home, plain = store.inside(name)
    ended = _ended(home, plain, f"{method}.json")
    kind = METHODS[method].criterion if method in METHODS else "trace"
    threshold = number(searched.get("threshold"))
    measure = FondueReading(kind, int(number(searched.get("examples")) or 0))
    visits = _visits(home, catalogue, record, measure, over, threshold)
    return SearchAnswer(
        name=name,
        title=METHODS[method].title if method in METHODS else method,
        over=over,
        method=method,
        threshold=threshold,
        first=CRITERIA[kind].first,
        second=CRITERIA[kind].second,
        answer=number(ended.get("answer")),
        running=any(visit.state == "running" for visit in visits),
        visits=visits,
        findings=[str(words) for words in _list(ended.get("findings"))],
    )


def _visits(
    store: ReadOnlyStore,
    catalogue: Catalogue,
    record: dict[str, Any],
    measure: FondueReading,
    over: str,
    threshold: float | None,
) -> list[Visit]:
    """The runs that a search has asked for, in its order; those that have not begun are left out."""
    found = []
    for run_id in map(str, record.get("experiments", [])):
        try:
            path = store.run(run_id)
        except NotHere:
            continue
        row = catalogue.read_now(path)
        value = None if row is None else number(row.get("latents" if over == "latents" else f"objective.{over}"))
        if row is None or value is None:
            continue
        judged = _measured(path, measure.file).get(measure.criterion)
        judged = judged if isinstance(judged, dict) else {}
        first, second, steps = (number(one) for one in (judged.get("first"), judged.get("second"), row.get("steps")))
        passes = None
        if first is not None and second is not None and threshold is not None:
            passes = first - second <= threshold + ROUNDING
        visit = Visit(
            id=store.prefix + run_id,
            value=value,
            steps=int(steps or 0),
            state=row["state"],
            step=row["step"] or (int(steps or 0) if row["state"] == "done" else 0),
            first=first,
            second=second,
            passes=passes,
            types={kind: int(judged[kind]) for kind in TYPES if isinstance(judged.get(kind), int)},
        )
        found.append(visit)
    return found


def _searched(record: dict[str, Any]) -> dict[str, Any]:
    """What a record says of a search; empty for any other study."""
    options = record.get("options")
    found = options.get("search") if isinstance(options, dict) else None
    return found if isinstance(found, dict) else {}


def _record(store: ReadOnlyStore, name: str) -> dict[str, Any]:
    """The record of a study; one that is damaged is shown among the studies, with the reason."""
    try:
        return read_plan(store, name)
    except DamagedRecord:
        return {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _measured(path: Path, file: str) -> dict[str, Any]:
    """What a measure found of a run, checked; empty where it was not taken, or is damaged, which the row says."""
    folder = RunFolder(path)
    try:
        return read_object(folder, file, folder.sums())
    except (OSError, KeyError, ValueError, RecursionError):
        return {}


def _ended(store: ReadOnlyStore, name: str, file: str) -> dict[str, Any]:
    """What a search said at its end; nothing before that. Where that is damaged, one finding says so."""
    try:
        content = store.report_file(name, file)
        found = {} if content is None else parse_json(content, Path(file))
    except ValueError as error:
        return {
            "findings": [f"What the search said at its end cannot be read: {error}. The same command writes it anew."]
        }
    return found if isinstance(found, dict) else {}
