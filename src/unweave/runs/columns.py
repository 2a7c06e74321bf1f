"""Columns of measures: ``NAME@SETTINGS:KEY`` as files have them, and as ``NAME.KEY`` where a table leaves no doubt.

A column is a measure with its settings. ``SETTINGS`` is the hash in the name of a measure's file, or ``evaluate`` and a
hash for what ``unweave evaluate`` found. Where two settings of one measure have a column in common, both carry their
settings: ``fondue@1a2b.n`` and ``fondue@9f00.n``.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

FAILURE_KEY = "failure"
RAW = re.compile(r"(?P<measure>[^@:]*)@(?P<settings>[^@:]*):(?P<key>.*)", re.DOTALL)
SHORTEST = 4


class Raw(NamedTuple):
    """A column as files have it."""

    measure: str
    settings: str
    key: str

    @property
    def stem(self) -> str:
        """Of the file it comes from: ``fondue-1a2b3c4d``."""
        return f"{self.measure}-{self.settings}" if self.settings else self.measure


def raw_name(measure: str, settings: str, key: str) -> str:
    """The name of a column before it is known what else a table holds."""
    found = f"{measure}@{settings}:{key}"
    if (read := RAW.fullmatch(found)) is None or read["measure"] != measure or read["settings"] != settings:
        raise ValueError(f"a measure cannot be called {measure[:80]!r}")
    return found


def split_raw(name: str) -> Raw | None:
    """The parts of such a name; None for any other column."""
    found = RAW.fullmatch(name)
    return None if found is None else Raw(**found.groupdict())


def shown_names(columns: Iterable[str], measures: Collection[str] | None = None) -> dict[str, str]:
    """What every column of a table is called. With ``measures`` (names of files), only those and no other measure."""
    stems = None if measures is None else {name.rpartition("/")[2].removesuffix(".json") for name in measures}
    parts = {name: split_raw(name) for name in columns}
    raw = {name: part for name, part in parts.items() if part is not None and (stems is None or part.stem in stems)}
    shown = {name: name for name, part in parts.items() if part is None}
    taken = set(shown)
    mixed, failing, short = _mixed(raw.values(), taken), _failing(raw.values()), _short(raw.values())
    for name, part in raw.items():
        doubtful = part.stem in mixed or (part.key == FAILURE_KEY and len(failing.get(part.measure, ())) > 1)
        word = f"{part.measure}@{short[part.stem]}" if doubtful else part.measure
        found = f"{word}.{part.key}"
        shown[name] = found if found not in taken else name
        taken.add(shown[name])
    return {name: shown[name] for name in parts if name in shown}


def _mixed(raw: Iterable[Raw], others: Collection[str]) -> set[str]:
    """Files that share a column with other settings of their measure, or with something else."""
    owners: dict[tuple[str, str], set[str]] = {}
    for part in raw:
        if part.key != FAILURE_KEY:
            owners.setdefault((part.measure, part.key), set()).add(part.stem)
    doubtful = (stems for (name, key), stems in owners.items() if len(stems) > 1 or f"{name}.{key}" in others)
    return set().union(*doubtful)


def _failing(raw: Iterable[Raw]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for part in raw:
        if part.key == FAILURE_KEY:
            found.setdefault(part.measure, set()).add(part.settings)
    return found


def _short(raw: Iterable[Raw]) -> dict[str, str]:
    """As much of each settings' hash as tells it from the others of its measure."""
    raw = list(raw)
    known: dict[str, set[str]] = {}
    for part in raw:
        known.setdefault(part.measure, set()).add(part.settings)
    return {part.stem: _shortest(part.settings, known[part.measure]) for part in raw}


def _shortest(settings: str, known: Collection[str]) -> str:
    word, dash, hashed = settings.rpartition("-")
    alike = {one for one in known if one != settings and one.startswith(word + dash)}
    if word and not alike:
        return word
    for length in range(min(SHORTEST, len(hashed)), len(hashed)):
        if not any(one.startswith(word + dash + hashed[:length]) for one in alike):
            return word + dash + hashed[:length]
    return settings
