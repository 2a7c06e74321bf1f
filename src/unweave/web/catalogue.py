"""Every run of the store as a row, kept up to date in the background: only folders that changed are read again."""

import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unweave.files import in_words
from unweave.runs.columns import shown_names
from unweave.runs.fleets import homes_in
from unweave.runs.folder import RunFolder, signature
from unweave.runs.lock import holders, is_locked
from unweave.runs.row import raw_row_of
from unweave.runs.state import state_of
from unweave.runs.sums import SUMS
from unweave.runs.weights import CheckedWeights
from unweave.studies.leases import Holders
from unweave.studies.store import checked_weights
from unweave.web.preload import preloaded_rows
from unweave.web.store import APART, ReadOnlyStore

QUIET = 1.5
"""Seconds between two looks at the store, or twelve times as long as a look takes."""

READ_AT_MOST = 64 << 20
"""Bytes of weights that one look reads to see whether they are whole; the next one goes on with the rest."""

LONGEST_LIST = 12
"""Entries up to which a list is shown in a cell."""

LONGEST_TEXT = 500
"""Characters of a cell."""

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


@dataclass(frozen=True)
class Activity:
    """What is asked once for all runs of a store: locks, fleets by member, and the runs that workers hold."""

    locks: Mapping[int, int]
    homes: Mapping[str, RunFolder]
    held: frozenset[str] = frozenset()


class Part:
    """One store, the opened one or one inside it, and what is remembered of it between two looks."""

    def __init__(self, store: ReadOnlyStore) -> None:
        self.store = store
        # one that never loses patience never tidies up: looking at a store leaves it as it is
        self.holders = Holders(store.root / ".unweave", patience=math.inf)
        home = store.own_folder()
        self.weights = CheckedWeights({} if home is None else checked_weights(home), READ_AT_MOST)

    def activity(self, locks: Mapping[int, int]) -> Activity:
        """Who trains what here just now."""
        try:
            held = frozenset(self.holders.running())
        except OSError:  # a store that may not be read, or is just now going
            held = frozenset()
        return Activity(locks, homes_in(self.store.root), held)


@dataclass
class Entry:
    """A row with the marks that tell whether its folder has changed, and the version in which it did."""

    marks: str
    locked: bool
    raw: Row
    """As its files have it; ``row`` has the names that the table of all runs gives to measures."""
    row: Row
    version: int


@dataclass
class Catalogue:
    """The rows of a store. Reading twenty thousand folders takes seconds, so what is known so far can be asked for."""

    store: ReadOnlyStore
    version: int = field(default_factory=lambda: int(1000 * time.time()))
    """Counts up from the time of the start, so that no version of an earlier server is taken for one of this."""
    complete: bool = False
    n_found: int = 0
    _entries: dict[str, Entry] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _encoding: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _content: tuple[int, bytes] | None = None
    _known: dict[str, Row] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._first = self.version
        self._parts: dict[str, Part] = {}

    def start(self, encode: Callable[[Changes], bytes] | None = None) -> None:
        """Look at the store again and again, in a thread of its own; ``encode`` readies the table for visitors."""
        self._encode = encode
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
            stores = self.store.stores(self._entries)
            names = {store.prefix: store.names() for store in stores}
            self.n_found, locks, budget = sum(map(len, names.values())), holders(), READ_AT_MOST
            for store in stores:
                part = self._part(store)
                activity, part.weights.budget = part.activity(locks), budget
                if not self.complete:
                    self._known = preloaded_rows(store)
                for name in names[store.prefix]:
                    if self._stopped.is_set():
                        return
                    self._look_safely(part, name, activity)
                budget = part.weights.budget
            self._forget({prefix + name for prefix, inner in names.items() for name in inner})
            self.complete, self._known = True, {}

    def since(self, version: int) -> Changes:
        """Everything that changed after a version; all of it for 0, or for a version of another server."""
        with self._lock:
            whole = not self._first <= version <= self.version
            rows = {name: one.row for name, one in self._entries.items() if whole or one.version > version}
            gone = [] if whole else sorted(name for name, at in self._gone.items() if at > version)
            return Changes(self.version, whole, rows, gone, max(self.n_found, len(self._entries)), self.complete)

    def content(self, version: int, encode: Callable[[Changes], bytes]) -> bytes:
        """The changes since a version, encoded; the whole table is encoded once for everyone who asks for it."""
        changes = self.since(version)
        if not changes.whole:
            return encode(changes)
        with self._encoding:
            if self._content is None or self._content[0] != changes.version:
                self._content = (changes.version, encode(changes))
            return self._content[1]

    def rows(self) -> dict[str, Row]:
        """All rows by id."""
        return self.since(0).rows

    def read_now(self, path: Path) -> Row | None:
        """A run as its row will be after the next look, its weights checked as there."""
        inside = path.parent.relative_to(self.store.root).parts
        part = self._part(ReadOnlyStore(path.parent, "".join(f"{name}{APART}" for name in inside)))
        return _judged(read_row(path), part.weights.problem(path))

    def _part(self, store: ReadOnlyStore) -> Part:
        if store.prefix not in self._parts:
            self._parts[store.prefix] = Part(store)
        return self._parts[store.prefix]

    def _watch(self) -> None:
        told = ""
        while not self._stopped.is_set():
            began = time.thread_time()
            try:
                self.refresh()
                if self._encode is not None:
                    self.content(0, self._encode)
            except Exception as error:  # a store that is being moved, say, is looked at again
                if told != (told := repr(error)):
                    print(f"the table of runs could not be brought up to date: {told}", file=sys.stderr, flush=True)
            self._stopped.wait(max(QUIET, 12.0 * (time.thread_time() - began)))

    def _look_safely(self, part: Part, name: str, activity: Activity) -> None:
        run_id = part.store.prefix + name
        try:
            self._look(part, name, activity)
        except Exception as error:  # whatever one folder holds, the others are shown
            row = {"id": run_id, "state": "damaged", "failure": _cell(in_words(error))}
            known = self._entries.get(run_id)
            if known is None or known.row != row:
                self._keep(run_id, "", False, row)

    def _look(self, part: Part, name: str, activity: Activity) -> None:
        path, run_id = part.store.root / name, part.store.prefix + name
        known = self._entries.get(run_id)
        home = activity.homes.get(name)
        marks = signature(path) + ("" if home is None else f" {signature(home.path)}")
        unfinished = known is None or known.row.get("state") != "done"
        locked = unfinished and (
            name in activity.held
            or is_locked(path, activity.locks)
            or (home is not None and is_locked(home.path, activity.locks))
        )
        same = known is not None and known.marks == marks and known.locked == locked
        problem = part.weights.problem(path)
        if same and known is not None and known.row["state"] != "damaged" and not problem:
            return
        row = self._preloaded(path, marks) if known is None and not locked else None
        row = _judged(row or read_row(path, activity), problem)
        if row is not None and part.store.prefix:
            row |= {"id": run_id, "store": part.store.place}
        if row is not None and not (same and known is not None and known.raw == row):
            self._keep(run_id, marks, locked, row)

    def _preloaded(self, path: Path, marks: str) -> Row | None:
        """The row of a folder as a study's index has it, if nothing has changed there since."""
        found = self._known.pop(path.name, None)
        if found is None or found["signature"] != marks or found["state"] != "done":
            return None
        return _cells(path, {key: value for key, value in found.items() if key != "signature"})

    def _keep(self, name: str, marks: str, locked: bool, row: Row) -> None:
        with self._lock:
            self.version += 1
            self._learn(row)
            self._entries[name] = Entry(marks, locked, row, self._named(row), self.version)
            self._gone.pop(name, None)

    def _learn(self, row: Row) -> None:
        """Two settings of one measure carry their settings in their names from when the second is met."""
        if row.keys() <= self._names.keys():
            return
        names = shown_names(sorted({*self._names, *row}))
        changed = any(names[name] != shown for name, shown in self._names.items())
        self._names = names
        if changed:
            self._first = self.version  # whoever has an earlier table is sent a whole one
            for entry in self._entries.values():
                entry.row = self._named(entry.raw)

    def _named(self, row: Row) -> Row:
        return {self._names[name]: value for name, value in row.items()}

    def _forget(self, names: set[str]) -> None:
        with self._lock:
            for name in [one for one in self._entries if one not in names]:
                self.version += 1
                self._gone[name] = self.version
                del self._entries[name]


def read_row(path: Path, activity: Activity | None = None) -> Row | None:
    """A run as one flat row, straight from its files, measures named as there; None for a folder that is no run."""
    folder = RunFolder(path)
    row = raw_row_of(folder)
    if row is None:
        return None
    cells = _cells(path, row)
    if row["state"] in ("unfinished", "failed"):
        activity = activity or Activity(holders(), homes_in(path.parent))
        state = state_of(folder, locks=activity.locks, homes=activity.homes)
        running = state.word == "interrupted" and path.name in activity.held
        cells |= {"state": "running" if running else state.column, "step": state.step or None}
        cells |= {"failure": _cell(state.reason)} if state.reason else {}
    return cells


def _judged(row: Row | None, problem: str) -> Row | None:
    """A finished run with what is wrong with its weights."""
    if row is None or row["state"] != "done" or not problem:
        return row
    return row | {"state": "damaged", "failure": _cell(problem)}


def _cells(path: Path, row: Row) -> Row:
    cells = {key: cell for key, value in row.items() if (cell := _cell(value)) is not None}
    return cells | {"step": None, "modified": _modified(path), "updates": cells.get("steps")}


def _modified(path: Path) -> float | None:
    """When the list of a folder's files was last written, or before there is one, its config."""
    for name in (SUMS, "config.json"):
        with contextlib.suppress(OSError):
            return round(os.lstat(path / name).st_mtime_ns / 1e9, 3)
    return None


def _cell(value: Any) -> Any:
    """A value that a table can hold: a number, a word, yes or no; short lists as words, long ones left out."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, list):
        return ", ".join(map(str, value))[:LONGEST_TEXT] if 0 < len(value) <= LONGEST_LIST else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)[:LONGEST_TEXT]
    return value[:LONGEST_TEXT] if isinstance(value, str) else value if isinstance(value, bool | int) else None
