"""What a store knows of its studies: which runs belong to one, where it came from, and how far it is."""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unweave.config import unknown
from unweave.files import as_typed, write_text
from unweave.runs.names import read_plain
from unweave.sealed import is_sealed, sealed, unsealed
from unweave.studies.leases import born
from unweave.studies.measures.measure import protocol_of
from unweave.studies.study import Study


@dataclass(frozen=True)
class Record:
    """A study that was run in a store, kept in ``.unweave/studies/NAME.json``."""

    name: str
    title: str = ""
    experiments: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """How it was called: recipe, size, executor; empty for one run from Python."""
    command: tuple[str, ...] = ()
    protocols: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the measures, by the names of their files."""


class DamagedRecord(ValueError):
    """The record of a study that is not what was written; the message says how to have it again."""


def write_record(home: Path, record: Record) -> None:
    """Keep what is known of a study."""
    write_text(_file(home, record.name), sealed(asdict(record)))


def read_record(home: Path, name: str = "") -> Record:
    """A study by its name; without one the only study there is."""
    known = names(home)
    if not known:
        raise FileNotFoundError(f"{home.parent} holds no study; {_instead(home.parent)}")
    if not name and len(known) > 1:
        raise ValueError(f"{home.parent} holds several studies: say which of {', '.join(known)}")
    name = name or known[0]
    if name not in known:
        raise unknown("study", name, known)
    file = _file(home, name)
    found = open_record(read_plain(file.parent, file.name), name)
    record = _record(found, name)
    if not is_sealed(found):
        with contextlib.suppress(OSError):  # of version 0.1.0: accepted once
            write_text(file, sealed(found))
    return record


def _instead(root: Path) -> str:
    """What to type: the store inside this one that has a study, or how to begin one."""
    inside = sorted(found.parents[2] for found in root.glob("*/.unweave/studies/*.json"))
    if inside:
        return f"{as_typed(inside[0])} does: add --store {as_typed(inside[0])}"
    return "begin one with: unweave study run RECIPE --store DIR"


def open_record(content: bytes, name: str) -> dict[str, Any]:
    """What the file of a study says, checked."""
    try:
        found = unsealed(content)
    except ValueError as error:
        raise _damaged(name, str(error)) from error
    _record(found, name)
    return found


def _record(found: Mapping[str, Any], name: str) -> Record:
    """A record from what its file says; what it does not say is empty."""
    lists = {key: found.get(key, ()) for key in ("experiments", "measures", "command")}
    for key, value in lists.items():
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise _damaged(name, f"{key} should be a list of words")
    maps = {key: found.get(key) or {} for key in ("options", "protocols")}
    for key, value in maps.items():
        if not isinstance(value, dict):
            raise _damaged(name, f"{key} should be an object")
    title = found.get("title") or ""
    if found.get("name", name) != name or not isinstance(title, str):
        raise _damaged(name, "name and title should be those of the study")
    fields: dict[str, Any] = {key: tuple(value) for key, value in lists.items()} | maps
    return Record(name, title, **fields)


def _damaged(name: str, why: str) -> DamagedRecord:
    return DamagedRecord(
        f"the record of the study {name[:80]} is damaged: {why}; its runs are not, and the command that began it writes"
        f" the record anew: unweave study run RECIPE --store DIR"
    )


def names(home: Path) -> list[str]:
    """Every study of a store."""
    return sorted(path.stem for path in (home / "studies").glob("*.json") if not path.name.endswith(".progress.json"))


class Progress:
    """How far the process that runs a study is, for others to read. Times are measured, not read off a clock."""

    EVERY = 2.0

    def __init__(self, home: Path, name: str) -> None:
        self.file = _file(home, f"{name}.progress")
        self.begin = self.written = time.monotonic()
        self.ended = 0
        self._write()

    def add(self, n: int) -> None:
        """So many more runs have ended."""
        self.ended += n
        if time.monotonic() - self.written >= self.EVERY:
            self._write()

    def close(self) -> None:
        """The last word."""
        self._write()

    def _write(self) -> None:
        self.written = time.monotonic()
        pid = os.getpid()
        said = {"ended": self.ended, "seconds": self.written - self.begin, "host": socket.gethostname()}
        said |= {"pid": pid, "born": born(pid), "written": datetime.now(UTC).isoformat(timespec="seconds")}
        write_text(self.file, sealed(said))


def read_progress(home: Path, name: str) -> dict[str, Any]:
    """The last progress of a study; empty where there is none, or it is damaged: the next one is seconds away."""
    try:
        found = unsealed(read_plain(home / "studies", f"{name}.progress.json"))
    except (OSError, ValueError):
        return {}
    kinds = {"ended": int, "seconds": int | float, "host": str, "pid": int, "born": str | None}
    if not all(key in found and isinstance(found[key], kind) for key, kind in kinds.items()):
        return {}
    here = found["host"] == socket.gethostname()
    return found | {"alive": not here or born(found["pid"]) == found["born"]}


def record_of(study: Study, ids: Iterable[str], options: Mapping[str, Any]) -> Record:
    """The record of a study that is being run by this process."""
    protocols = {measure.file: protocol_of(measure) for measure in study.measures}
    return Record(study.name, study.title, tuple(ids), tuple(protocols), dict(options), tuple(sys.argv), protocols)


def _file(home: Path, name: str) -> Path:
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        raise ValueError(f"the name of a study becomes a file's, such as z-table-3.4-smoke, and cannot be {name!r}")
    return home / "studies" / f"{name}.json"
