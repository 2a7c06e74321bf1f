"""Every run of the store as a row, kept up to date in the background: only folders that changed are read again."""

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unweave.studies.claims import Witness
from unweave.studies.index import flatten
from unweave.web.shelf import Shelf, is_locked, locked_files, read_inside
from unweave.web.warm import signature, warm_rows

QUIET = 1.5
"""Seconds between two looks at the store, or twelve times as long as a look takes."""

LONGEST_LIST = 12
"""Entries up to which a list is shown in a cell."""

Row = dict[str, Any]


@dataclass
class Changes:
    """What is new since a version: rows by id, and the ids that are gone."""

    version: int
    whole: bool
    rows: dict[str, Row]
    gone: list[str]
    n_found: int
    complete: bool


@dataclass
class Entry:
    """A row with the marks that tell whether its folder has changed, and the version in which it did."""

    marks: tuple[int, ...]
    locked: bool
    row: Row
    version: int


@dataclass
class Catalogue:
    """The rows of a store. Reading twenty thousand folders takes seconds, so what is known so far can be asked for."""

    shelf: Shelf
    version: int = field(default_factory=lambda: int(1000 * time.time()))
    """Counts up from the time of the start, so that no version of an earlier server is taken for one of this."""
    complete: bool = False
    n_found: int = 0
    _entries: dict[str, Entry] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _packing: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _content: tuple[int, bytes] | None = None
    _known: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._first = self.version
        # one that never loses patience never tidies up: looking at a store leaves it as it is
        self._witness = Witness(self.shelf.root / ".unweave", patience=math.inf)

    def start(self, pack: Callable[[Changes], bytes] | None = None) -> None:
        """Look at the store again and again, in a thread of its own; ``pack`` readies the table for visitors."""
        self._pack = pack
        self._stopped.clear()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="catalogue")
        self._thread.start()

    def stop(self) -> None:
        """End the looking."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def refresh(self) -> None:
        """Look at the store once."""
        with self._looking:
            names, locks, held = self.shelf.names(), locked_files(), set(self._witness.running())
            self.n_found = len(names)
            if not self.complete:
                self._known = warm_rows(self.shelf)
            for name in names:
                if self._stopped.is_set():
                    return
                self._look(name, locks, name in held)
            self._forget(set(names))
            self.complete, self._known = True, {}

    def since(self, version: int) -> Changes:
        """Everything that changed after a version; all of it for 0, or for a version of another server."""
        with self._lock:
            whole = not self._first <= version <= self.version
            rows = {name: one.row for name, one in self._entries.items() if whole or one.version > version}
            gone = [] if whole else sorted(name for name, at in self._gone.items() if at > version)
            return Changes(self.version, whole, rows, gone, max(self.n_found, len(self._entries)), self.complete)

    def content(self, version: int, pack: Callable[[Changes], bytes]) -> bytes:
        """The changes since a version, packed; the whole table is packed once for everyone who asks for it."""
        changes = self.since(version)
        if not changes.whole:
            return pack(changes)
        with self._packing:
            if self._content is None or self._content[0] != changes.version:
                self._content = (changes.version, pack(changes))
            return self._content[1]

    def rows(self) -> dict[str, Row]:
        """All rows by id."""
        return self.since(0).rows

    def _watch(self) -> None:
        while not self._stopped.is_set():
            began = time.thread_time()
            with contextlib.suppress(OSError):  # a store that is being moved is looked at again
                self.refresh()
            if self._pack is not None:
                self.content(0, self._pack)
            self._stopped.wait(max(QUIET, 12.0 * (time.thread_time() - began)))

    def _look(self, name: str, locks: set[int], held: bool) -> None:
        path = self.shelf.root / name
        marks, known = _marks(path), self._entries.get(name)
        if marks is None:
            return
        unfinished = known is None or known.row.get("state") != "done"
        locked = unfinished and (held or is_locked(path, locks))
        if known is not None and known.marks == marks and known.locked == locked:
            return
        row = self._warm(name, marks) if known is None and not locked else None
        row = row or read_row(path, locked)
        if row is not None:
            self._keep(name, marks, locked, row)

    def _warm(self, name: str, marks: tuple[int, ...]) -> Row | None:
        """The row of a folder as a study's index has it, if nothing has changed there since."""
        found = self._known.pop(name, None)
        if found is None or found["signature"] != signature(marks) or found["state"] not in ("done", "failed"):
            return None
        row = {key: cell for key, value in found.items() if (cell := _cell(value)) is not None and key != "signature"}
        return row | {"step": None, "modified": round(marks[0] / 1e9, 3), "updates": row.get("steps")}

    def _keep(self, name: str, marks: tuple[int, ...], locked: bool, row: Row) -> None:
        with self._lock:
            self.version += 1
            self._entries[name] = Entry(marks, locked, row, self.version)
            self._gone.pop(name, None)

    def _forget(self, names: set[str]) -> None:
        with self._lock:
            for name in [one for one in self._entries if one not in names]:
                self.version += 1
                self._gone[name] = self.version
                del self._entries[name]


def read_row(path: Path, locked: bool = False) -> Row | None:
    """A run as one flat row, straight from its files; None for a folder that is no run."""
    content = read_inside(path / "config.json")
    if content is None:
        return None
    names = _complete(path)
    row: Row = {"id": path.name, "state": _state(names, locked), "step": _step(names), "modified": _modified(path)}
    config = _object(content)
    if not config:
        return row | {"state": "damaged"}
    row |= {key: _cell(value) for key, value in flatten(config)}
    row["updates"] = row.get("steps")
    for name in names:
        row |= _measured(path, name)
    return row


def _measured(path: Path, name: str) -> Row:
    """Columns from one file of measures or scores; a damaged one adds none."""
    if name != "scores.json" and not (name.startswith("measures/") and name.endswith(".json")):
        return {}
    found = _object(read_inside(path / name) or b"{}")
    try:
        if name == "scores.json":
            return dict(_scores(found))
    except (AttributeError, TypeError):
        return {}
    measure = name.removeprefix("measures/").rpartition("-")[0]
    return {key: _cell(value) for key, value in flatten(found, measure)}


def _object(content: bytes) -> dict[str, Any]:
    """A JSON object; empty where it is damaged, or something else."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _scores(found: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for representation in ("mean", "sampled"):
        for metric, number in found.get(representation, {}).get("scores", {}).items():
            yield f"scores.{representation}.{metric}", _cell(number.get("value"))
    types = found.get("latents", {}).get("types", [])
    for kind in ("active", "mixed", "passive") if types else ():
        yield f"latents.{kind}", types.count(kind)


def _complete(path: Path) -> list[str]:
    """The files of a run that were written completely."""
    lines = (read_inside(path / "SHA256SUMS") or b"").decode(errors="replace").splitlines()
    return [name for _, _, name in (line.partition("  ") for line in lines) if name]


def _state(names: list[str], locked: bool) -> str:
    if "model.safetensors" in names:
        return "done"
    if locked:
        return "running"
    return "failed" if "failure.json" in names else "unfinished"


def _step(names: list[str]) -> int | None:
    """The last step that was saved, for a run that still has checkpoints."""
    saved = [name.partition("step-")[2].partition(".")[0] for name in names if name.startswith("checkpoints/step-")]
    return max((int(step) for step in saved if step.isdigit()), default=None)


def _marks(path: Path) -> tuple[int, ...] | None:
    """What changes when a folder does: the list of its complete files, or before there is one, its config."""
    for name in ("SHA256SUMS", "config.json"):
        try:
            known = os.lstat(path / name)
        except OSError:
            continue
        return (known.st_mtime_ns, known.st_size, known.st_ino)
    return None


def _modified(path: Path) -> float | None:
    marks = _marks(path)
    return None if marks is None else round(marks[0] / 1e9, 3)


def _cell(value: Any) -> Any:
    """A value that a table can hold: a number, a word, yes or no; short lists as words, long ones left out."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, list):
        return ", ".join(map(str, value)) if len(value) <= LONGEST_LIST else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value if isinstance(value, bool | int | str) else None
