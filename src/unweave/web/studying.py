"""Studies of a store: which runs belong to one, and what was published beside what was found."""

import contextlib
import csv
import io
from collections.abc import Mapping
from typing import Any

from unweave.files import as_typed
from unweave.runs.folder import DamagedFile
from unweave.studies.protocols import protocols_in_words, settings_in_words
from unweave.studies.record import DamagedRecord, open_record
from unweave.web.numbers import number
from unweave.web.schema import Mark, Protocol, StudyAnswer, StudyName
from unweave.web.store import NotHere, ReadOnlyStore

WHOLE = "all"
"""The study that every store has: all of its runs."""


def study_names(store: ReadOnlyStore) -> list[StudyName]:
    """All runs, then every study that was planned in this store."""
    found = [StudyName(name=WHOLE, title="Every run of this store")]
    for name in planned(store):
        place = store.inside(name)[0].place
        try:
            plan = read_plan(store, name)
        except DamagedRecord:
            found.append(StudyName(name=name, title=f"{name} (its record is damaged)", place=place))
            continue
        if not isinstance(plan.get("options"), Mapping) or not plan["options"].get("search"):  # has a view of its own
            found.append(StudyName(name=name, title=plan.get("title") or name, place=place))
    return found


def study_answer(store: ReadOnlyStore, name: str) -> StudyAnswer:
    """A study by its name."""
    if name == WHOLE:
        settings = settings_in_words(_all_protocols(store))
        return StudyAnswer(name=WHOLE, title="Every run of this store", ids=None, marks=[], settings=settings)
    if name not in planned(store):
        raise NotHere(f"there is no study {name[:80]!r} in this store; {WHOLE!r} is always there")
    plan, note = read_plan(store, name), ""
    protocols = plan.get("protocols") or {}
    home, plain = store.inside(name)
    try:
        marks = [_mark(one) for one in _claims(home, plain, plan)]
    except DamagedFile as error:
        again = f"unweave study report {as_typed(plain)} --store {as_typed(home.root)}"
        marks, note = [], f"{error}. Write the report again with: {again}"
    return StudyAnswer(
        name=name,
        title=plan.get("title") or plain,
        place=home.place,
        ids=None if plan.get("experiments") is None else [f"{home.prefix}{one}" for one in plan["experiments"]],
        marks=marks,
        protocols=[Protocol(words=one.words, title=one.title) for one in protocols_in_words(protocols)],
        settings=settings_in_words(protocols),
        note=note,
    )


def _all_protocols(store: ReadOnlyStore) -> dict[str, Any]:
    """What the measures of all studies were taken with, by their files."""
    found: dict[str, Any] = {}
    for name in planned(store):
        with contextlib.suppress(DamagedRecord):
            found |= read_plan(store, name).get("protocols") or {}
    return found


def planned(store: ReadOnlyStore) -> list[str]:
    """The names of all studies, searches among them, of this store and of those inside it."""
    return [
        f"{one.prefix}{name}"
        for one in store.stores()
        for name in one.own_names("studies")
        if not name.endswith(".progress")
    ]


def read_plan(store: ReadOnlyStore, name: str) -> dict[str, Any]:
    """The record of a study as ``unweave study`` reads it, checked; DamagedRecord where it is not what was written."""
    home, plain = store.inside(name)
    return open_record(home.own_file("studies", f"{plain}.json") or b"", plain)


def _claims(store: ReadOnlyStore, name: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """What was published: as the plan says it, or as the study's report has compared it."""
    if isinstance(found := plan.get("comparisons"), list):
        return [one for one in found if isinstance(one, dict)]
    content = store.report_file(name, "results.csv")
    try:
        return [] if content is None else list(csv.DictReader(io.StringIO(content.decode(errors="replace"))))
    except csv.Error as error:
        raise DamagedFile(f"results.csv of {name} is no table: {error}") from error


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
