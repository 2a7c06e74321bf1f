"""Studies of a store: which runs belong to one, and what was published beside what was found."""

import csv
import io
import json
from typing import Any

from unweave.web.numbers import number
from unweave.web.schema import Mark, StudyAnswer, StudyName
from unweave.web.searches import search_names
from unweave.web.store import NotHere, ReadOnlyStore

WHOLE = "all"
"""The study that every store has: all of its runs."""


def study_names(store: ReadOnlyStore) -> list[StudyName]:
    """All runs, then every study that was planned in this store."""
    found = [StudyName(name=WHOLE, title="Every run of this store")]
    searches = set(search_names(store))
    for name in _planned(store):
        if name in searches:  # has a view of its own
            continue
        found.append(StudyName(name=name, title=str(_plan(store, name).get("title") or name)))
    return found


def study_answer(store: ReadOnlyStore, name: str) -> StudyAnswer:
    """A study by its name."""
    if name == WHOLE:
        return StudyAnswer(name=WHOLE, title="Every run of this store", ids=None, marks=[])
    if name not in _planned(store):
        raise NotHere(f"there is no study {name[:80]!r} in this store; {WHOLE!r} is always there")
    plan = _plan(store, name)
    marks = [_mark(one) for one in _claims(store, name, plan)]
    return StudyAnswer(name=name, title=str(plan.get("title") or name), ids=_ids(plan), marks=marks)


def _planned(store: ReadOnlyStore) -> list[str]:
    return [name for name in store.own_names("studies") if not name.endswith(".progress")]


def _plan(store: ReadOnlyStore, name: str) -> dict[str, Any]:
    try:
        found = json.loads(store.own_file("studies", f"{name}.json") or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _ids(plan: dict[str, Any]) -> list[str] | None:
    for key in ("ids", "runs", "experiments"):
        if isinstance(found := plan.get(key), list):
            return [one if isinstance(one, str) else str(one.get("id", "")) for one in found]
    return None


def _claims(store: ReadOnlyStore, name: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """What was published: as the plan says it, or as the study's report has compared it."""
    if isinstance(found := plan.get("comparisons"), list):
        return [one for one in found if isinstance(one, dict)]
    content = store.own_file("reports", name, "results.csv")
    return [] if content is None else list(csv.DictReader(io.StringIO(content.decode(errors="replace"))))


def _mark(one: dict[str, Any]) -> Mark:
    return Mark(
        what=str(one.get("what", "")),
        published=str(one.get("published", "")),
        value=_read(one.get("published")),
        column=one["column"] if isinstance(one.get("column"), str) else None,
        ours=_read(one.get("ours")),
        verdict=str(one.get("verdict", "")),
    )


def _read(value: Any) -> float | None:
    try:
        return number(float(value))
    except (TypeError, ValueError):
        return None
