"""Rows as columns: what every run shares is said once, words are numbered, so that a large table travels light."""

from collections.abc import Iterable
from typing import Any

import pydantic_core

from unweave.web.catalogue import Changes
from unweave.web.schema import Column, Table

FIRST = ("id", "state", "world.name", "objective.name", "objective.beta", "latents", "seed", "steps")


def to_table(changes: Changes) -> Table:
    """The changed rows, column by column. Columns in which all rows of a whole table agree become ``shared``."""
    rows = [_as_called(row) for row in changes.rows.values()]
    names = _ordered({name for row in rows for name in row})
    shared: dict[str, Any] = {}
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        if changes.whole and name not in FIRST and len(rows) > 1 and _equal(values):
            shared[name] = values[0]
        else:
            columns.append(_column(name, values))
    return Table(
        version=changes.version,
        whole=changes.whole,
        complete=changes.complete,
        n_found=changes.n_found,
        n_rows=len(rows),
        gone=changes.gone,
        columns=columns,
        shared=shared,
    )


def to_json(changes: Changes) -> bytes:
    """The same as JSON."""
    return pydantic_core.to_json(to_table(changes))


def _as_called(row: dict[str, Any]) -> dict[str, Any]:
    """One's own data go by the name that they have, not by that of the kind: photos, not images."""
    name = row.get("world.called")
    return row | {"world.name": name} if name else row


def _column(name: str, values: list[Any]) -> Column:
    if name != "id" and any(isinstance(value, str | bool) for value in values):
        words = sorted({_word(value) for value in values if value is not None})
        places = {word: place for place, word in enumerate(words)}
        return Column(name=name, words=words, values=[-1 if v is None else places[_word(v)] for v in values])
    return Column(name=name, words=None, values=values)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _equal(values: list[Any]) -> bool:
    return all(value == values[0] and type(value) is type(values[0]) for value in values)


def _ordered(names: Iterable[str]) -> list[str]:
    """Identity first, then the config, then what was measured."""
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), _measured(name), name))


def _measured(name: str) -> bool:
    return name.startswith(("scores.", "latents.")) or name.count(".") > 1
