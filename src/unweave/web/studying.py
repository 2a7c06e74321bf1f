"""Studies of a store: which runs belong to one, and what was published beside what was found."""

import json
from typing import Any

from unweave.web.answers import Mark, StudyAnswer, StudyName
from unweave.web.numbers import number
from unweave.web.shelf import NotHere, Shelf

WHOLE = "all"
"""The study that every store has: all of its runs."""


def study_names(shelf: Shelf) -> list[StudyName]:
    """All runs, then every study that was planned in this store."""
    found = [StudyName(name=WHOLE, title="Every run of this store")]
    for name in _planned(shelf):
        found.append(StudyName(name=name, title=str(_plan(shelf, name).get("title") or name)))
    return found


def study_answer(shelf: Shelf, name: str) -> StudyAnswer:
    """A study by its name."""
    if name == WHOLE:
        return StudyAnswer(name=WHOLE, title="Every run of this store", ids=None, marks=[])
    if name not in _planned(shelf):
        raise NotHere(f"there is no study {name[:80]!r} in this store; {WHOLE!r} is always there")
    plan = _plan(shelf, name)
    return StudyAnswer(name=name, title=str(plan.get("title") or name), ids=_ids(plan), marks=_marks(plan))


def _planned(shelf: Shelf) -> list[str]:
    return [name for name in shelf.own_names("studies") if not name.endswith(".progress")]


def _plan(shelf: Shelf, name: str) -> dict[str, Any]:
    try:
        found = json.loads(shelf.own_file("studies", f"{name}.json") or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _ids(plan: dict[str, Any]) -> list[str] | None:
    for key in ("ids", "runs", "experiments"):
        if isinstance(found := plan.get(key), list):
            return [one if isinstance(one, str) else str(one.get("id", "")) for one in found]
    return None


def _marks(plan: dict[str, Any]) -> list[Mark]:
    made = []
    for one in plan.get("comparisons", []) if isinstance(plan.get("comparisons"), list) else []:
        published = number(one.get("published")) if isinstance(one, dict) else None
        if published is not None:
            made.append(
                Mark(
                    what=str(one.get("what", "")),
                    column=one.get("column") if isinstance(one.get("column"), str) else None,
                    value=published,
                    ours=number(one.get("ours")),
                    verdict=str(one.get("verdict", "")),
                )
            )
    return made
