"""Dimension searches, as far as they have come: the models that were tried, in order, and how each was judged."""

import json
from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import CRITERIA, METHODS, ROUNDING
from unweave.web.catalogue import read_row
from unweave.web.numbers import number
from unweave.web.schema import SearchAnswer, Visit
from unweave.web.store import MEMBER, TRIED, ReadOnlyStore, read_inside

TYPES = ("active", "mixed", "passive")


def search_answer(store: ReadOnlyStore, name: str) -> SearchAnswer:
    """A search from its folder: what it has written so far, and what it said at its end."""
    folder = store.search(name)
    begun, ended = _json(folder / "search.json"), _ended(folder)
    method = str((ended or begun).get("method", "fondue"))
    criterion = CRITERIA[METHODS[method].criterion] if method in METHODS else CRITERIA["trace"]
    threshold = number((ended or begun).get("threshold"))
    if threshold is None and not ended and begun:
        threshold = criterion.threshold
    kind = METHODS[method].criterion if method in METHODS else "trace"
    visits = _visits(store, name, folder, kind, threshold)
    running = any(visit.state == "running" for visit in visits)
    return SearchAnswer(
        name=name,
        title=METHODS[method].title if method in METHODS else method,
        over=str((ended or begun).get("over") or _over(store, name)),
        method=method,
        threshold=threshold,
        first=criterion.first,
        second=criterion.second,
        answer=number(ended.get("answer")),
        running=running,
        visits=visits,
        findings=[str(words) for words in ended.get("findings", [])],
    )


def _visits(store: ReadOnlyStore, name: str, folder: Path, criterion: str, threshold: float | None) -> list[Visit]:
    found = []
    for member in store.members(name):
        path, tried = folder / member, TRIED.match(member)
        row = read_row(path)
        if row is None or tried is None:
            continue
        judged = _judged(path, criterion)
        first, second = number(judged.get("first")), number(judged.get("second"))
        passes = None
        if first is not None and second is not None and threshold is not None:
            passes = first - second <= threshold + ROUNDING
        visit = Visit(
            id=f"{name}{MEMBER}{member}",
            value=float(tried["value"]),
            steps=int(tried["steps"]),
            state=row["state"],
            step=row["step"] or (int(tried["steps"]) if row["state"] == "done" else 0),
            first=first,
            second=second,
            passes=passes,
            types={kind: int(judged[kind]) for kind in TYPES if isinstance(judged.get(kind), int)},
        )
        found.append((_began(path), visit))
    return [visit for _, visit in sorted(found, key=lambda pair: pair[0])]


def _ended(folder: Path) -> dict[str, Any]:
    """What the search that ended last has written."""
    files = [path for method in (*METHODS, "elbow") if (path := folder / f"{method}.json").is_file()]
    return _json(max(files, key=lambda path: path.stat().st_mtime)) if files else {}


def _judged(path: Path, criterion: str) -> dict[str, Any]:
    names = sorted((path / "dimension").glob(f"{criterion}-*.json"))
    return _json(names[-1]) if names and not (path / "dimension").is_symlink() else {}


def _began(path: Path) -> tuple[str, float]:
    environment = path / "environment.json"
    try:
        return str(_json(environment).get("started", "")), environment.lstat().st_mtime
    except OSError:
        return "", 0.0


def _over(store: ReadOnlyStore, name: str) -> str:
    tried = TRIED.match(store.members(name)[0])
    return tried["over"] if tried else "latents"


def _json(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is none or it is damaged."""
    try:
        found = json.loads(read_inside(path) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
