"""What a store knows of its studies: which runs belong to one, where it came from, and how far it is."""

import json
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
from unweave.files import parse_json, write_text
from unweave.runs.names import read_plain
from unweave.studies.leases import born


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


def write_record(home: Path, record: Record) -> None:
    """Keep what is known of a study."""
    write_text(_file(home, record.name), json.dumps(asdict(record), indent=1) + "\n")


def read_record(home: Path, name: str = "") -> Record:
    """A study by its name; without one the only study there is."""
    known = names(home)
    if not known:
        raise FileNotFoundError(f"{home.parent} holds no study; begin one with: unweave study run RECIPE --store DIR")
    if not name and len(known) > 1:
        raise ValueError(f"{home.parent} holds several studies: say which of {', '.join(known)}")
    name = name or known[0]
    if name not in known:
        raise unknown("study", name, known)
    file = _file(home, name)
    plain = parse_json(read_plain(file.parent, file.name), file)
    lists = {key: _texts(plain, key, file) for key in ("experiments", "measures", "command")}
    if not isinstance(plain.get("title"), str) or not isinstance(plain.get("options"), dict):
        raise ValueError(f"{file} is no record of a study: its title must be text, and its options named values")
    return Record(name, plain["title"], options=plain["options"], **lists)


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
        write_text(self.file, json.dumps(said))


def read_progress(home: Path, name: str) -> dict[str, Any]:
    """The last progress of a study; empty where there is none."""
    try:
        found: dict[str, Any] = json.loads((home / "studies" / f"{name}.progress.json").read_text())
    except (OSError, ValueError):
        return {}
    here = found.get("host") == socket.gethostname()
    return found | {"alive": not here or born(found["pid"]) == found["born"]}


def record_of(name: str, title: str, ids: Iterable[str], measures: Iterable[str], options: Mapping[str, Any]) -> Record:
    """The record of a study that is being run by this process."""
    return Record(name, title, tuple(ids), tuple(measures), dict(options), tuple(sys.argv))


def _texts(plain: Any, key: str, file: Path) -> tuple[str, ...]:
    found = plain.get(key) if isinstance(plain, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"{file} is no record of a study: {key} must be a list of names")
    return tuple(found)


def _file(home: Path, name: str) -> Path:
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        raise ValueError(f"the name of a study becomes a file's, such as z-table-3.4-smoke, and cannot be {name!r}")
    return home / "studies" / f"{name}.json"
