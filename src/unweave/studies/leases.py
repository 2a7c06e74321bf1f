"""Who works on which run: leases that outlive kills, on one machine and on shared file systems.

A holder is a process with a file that beats. A lease is a link from a run to its holder, made exclusively. A holder
is dead when its process is gone (on this machine), or when its file has not beaten for a minute of *our* monotonic
clock (elsewhere): no wall clock is ever compared, so one that jumps does no harm. A dead holder's lease ``run~4`` is
succeeded by ``run~5``, which only one can make. On disk leases lie in ``claims/``, as in version 0.1.0.
"""

import contextlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unweave.runs.names import check_name, read_plain
from unweave.sealed import sealed, unsealed

BEAT, PATIENCE = 5.0, 60.0
"""Seconds between two beats, and without one until a holder on another machine counts as dead."""


LEASE = re.compile(r"[0-9]{1,9}")
"""The number behind a run's name, which counts its leases."""


class Holder:
    """This process, as one that holds runs of a store while it works on them."""

    def __init__(self, home: Path, patience: float = PATIENCE) -> None:
        self.leases, self.token = home / "claims", secrets.token_hex(8)
        self.file = home / "holders" / self.token
        self.others, self.held = Holders(home, patience), set[str]()
        self.lost, self._ended = False, threading.Event()
        self._beating = threading.Thread(target=self._beat_on, daemon=True)

    def __enter__(self) -> "Holder":
        self.leases.mkdir(parents=True, exist_ok=True)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._beat(0)
        self._beating.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._beating.join()
        for run_id in list(self.held):
            self.release(run_id)
        self.file.unlink(missing_ok=True)

    def take(self, run_id: str) -> bool:
        """Take a run, unless one that lives holds it."""
        found = _leases(self.leases, run_id)
        if any(token == self.token for _, token in found):
            return True
        if any(self.others.alive(token) for _, token in found):
            return False
        number = max((n for n, _ in found), default=-1) + 1
        mine = self.leases / f"{run_id}~{number}"
        try:
            os.symlink(self.token, mine)
        except FileExistsError:
            return False
        # whoever came between has left a lease that was not there, or removed one that was
        if set(_leases(self.leases, run_id)) != {*found, (number, self.token)}:
            mine.unlink(missing_ok=True)
            return False
        for before, _ in found:
            (self.leases / f"{run_id}~{before}").unlink(missing_ok=True)
        self.held.add(run_id)
        return True

    def release(self, run_id: str) -> None:
        """Let a run go."""
        self.held.discard(run_id)
        for number, token in _leases(self.leases, run_id):
            if token == self.token:
                (self.leases / f"{run_id}~{number}").unlink(missing_ok=True)

    def _beat_on(self) -> None:
        beat = 0
        while not self._ended.wait(BEAT):
            beat += 1
            # a disk that is full or away for a moment must not end the work
            with contextlib.suppress(OSError):
                if not self.file.exists():
                    self.lost = True  # we were taken for dead
                    return
                self._beat(beat)

    def _beat(self, beat: int) -> None:
        aside = self.file.with_name(f".{self.file.name}")
        try:
            aside.write_text(sealed(_self() | {"beat": beat}))
            os.replace(aside, self.file)
        except OSError:
            aside.unlink(missing_ok=True)  # a full disk is not filled with torn beats
            raise


class Holders:
    """Tells living holders from dead ones, the better the longer it looks."""

    def __init__(self, home: Path, patience: float = PATIENCE) -> None:
        self.home, self.patience = home, patience
        self.seen: dict[str, tuple[bytes, float]] = {}

    def alive(self, token: str) -> bool:
        """Whether a holder lives, as far as can be told so far."""
        if not token or "/" in token:
            return False  # of a lease that leads elsewhere
        try:
            text = read_plain(self.home / "holders", _plain(token), most=100_000)
        except (OSError, ValueError):
            return False
        holder = _opened(text)
        # a damaged one may live: it beats again soon, or it does not
        if holder is not None and holder["place"] == _place():
            return born(holder["pid"]) == holder["born"]
        before, since = self.seen.setdefault(token, (text, time.monotonic()))
        if before != text:
            self.seen[token] = (text, time.monotonic())
            return True
        if time.monotonic() - since < self.patience:
            return True
        (self.home / "holders" / token).unlink(missing_ok=True)
        return False

    def running(self) -> dict[str, dict[str, Any]]:
        """Every run that one that lives holds, with its host and process."""
        found, known = {}, dict[str, dict[str, Any] | None]()
        for run_id, token in _all(self.home / "claims"):
            if token not in known:
                known[token] = self._holder(token) if self.alive(token) else None
            if (holder := known[token]) is not None:
                found[run_id] = holder
        return found

    def sweep(self, dry_run: bool = False) -> list[Path]:
        """Files of dead holders and their leases; removed, unless dry."""
        dead = [path for path in _entries(self.home / "holders") if not self.alive(path.name.lstrip("."))]
        dead += [path for path in _entries(self.home / "claims") if not self.alive(_target(path))]
        for path in () if dry_run else dead:
            path.unlink(missing_ok=True)
        return dead

    def _holder(self, token: str) -> dict[str, Any] | None:
        try:
            found = _opened(read_plain(self.home / "holders", _plain(token), most=100_000))
        except (OSError, ValueError):
            return None
        return None if found is None else {"host": found["host"], "pid": found["pid"]}


def _opened(content: bytes) -> dict[str, Any] | None:
    """What a holder's file says; None for one that is damaged."""
    try:
        found = unsealed(content)
    except ValueError:
        return None
    kinds = {"host": str, "place": str, "pid": int, "born": str | None}
    return found if all(key in found and isinstance(found[key], kind) for key, kind in kinds.items()) else None


def born(pid: int) -> str | None:
    """When a process of this machine began, in its own count; None where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _signalled(pid)
    return None if fields[0] in "ZX" else fields[19]


def _signalled(pid: int) -> str | None:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return "unknown"
    return None


def _self() -> dict[str, Any]:
    pid = os.getpid()
    return {"host": socket.gethostname(), "place": _place(), "pid": pid, "born": born(pid)}


def _place() -> str:
    """Where process numbers mean the same: this host, since its start, in this container."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return "/".join(parts)


def _leases(folder: Path, run_id: str) -> list[tuple[int, str]]:
    found = []
    for path in _entries(folder):
        name, _, number = path.name.rpartition("~")
        if name == run_id and LEASE.fullmatch(number) and (token := _target(path)):
            found.append((int(number), token))
    return found


def _all(folder: Path) -> Iterator[tuple[str, str]]:
    for path in _entries(folder):
        yield path.name.rpartition("~")[0], _target(path)


def _entries(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def _plain(token: str) -> str:
    """The name of a holder's file; a lease may be a stranger's, and point anywhere."""
    if "/" in token:
        raise ValueError(f"{token[:80]!r} is no holder of a lease")
    return check_name(token)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
