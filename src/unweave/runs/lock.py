"""Who works in a run folder: a long lock that turns others away, and a short one that makes writers take turns."""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from unweave.files import make_folder

LONG, SHORT = ".lock", ".writing"
LISTED, JUST_NOW = Path("/proc/locks"), 75.0
"""Where Linux lists locks; elsewhere a folder counts as locked for so many seconds after it was written."""


@contextlib.contextmanager
def long_lock(folder: Path) -> Iterator[None]:
    """Hold a folder for one process; a second one is told so at once. A kill releases it.

    A folder that was made for the lock goes with it where nothing was written.
    """
    was_there = folder.is_dir()
    with _taken(folder / LONG, _or_refused):
        try:
            yield
        finally:
            if not was_there:
                _drop_if_empty(folder)


def _or_refused(file: IO[bytes], path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        who = holders().get(os.fstat(file.fileno()).st_ino)
        named = f" ({who})" if who else ""
        raise BlockingIOError(
            f"{path.parent} is being written by another process{named}; wait for it to end"
        ) from error


def _drop_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if os.listdir(folder) == [LONG]:
            (folder / LONG).unlink()
            folder.rmdir()


@contextlib.contextmanager
def short_lock(folder: Path) -> Iterator[None]:
    """One writer at a time; others wait. Whoever holds it may take it again. It leaves no file behind."""
    turn = _turn(folder)
    with turn.lock:
        if turn.file is None:
            turn.file = _taken(folder / SHORT, _in_turn)
        turn.depth += 1
        try:
            yield
        finally:
            turn.depth -= 1
            if not turn.depth:
                file, turn.file = turn.file, None
                with file:
                    (folder / SHORT).unlink(missing_ok=True)


def holders() -> dict[int, int]:
    """The processes that hold files locked, by the files' inodes; asking by taking a lock could turn a trainer away.

    Devices are left out: layered file systems report others here than in the lists of the kernel.
    """
    found = {}
    try:
        lines = LISTED.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        words = line.split()
        place = next((at for at, word in enumerate(words) if word.count(":") == 2), 0)
        if "FLOCK" in words and "->" not in words and place:
            found[int(words[place].rpartition(":")[2])] = int(words[place - 1])
    return found


def is_locked(folder: Path, known: Mapping[int, int] | None = None) -> bool:
    """Whether a process works in this folder now; ``known`` are the :func:`holders` of many folders, asked once."""
    try:
        if not LISTED.exists():
            return time.time() - os.lstat(folder / "SHA256SUMS").st_mtime < JUST_NOW
        return os.lstat(folder / LONG).st_ino in (holders() if known is None else known)
    except OSError:
        return False


def _in_turn(file: IO[bytes], path: Path) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)


def _taken(path: Path, lock: Callable[[IO[bytes], Path], None]) -> IO[bytes]:
    """The file, locked; one that its last holder has deleted meanwhile is no lock any more."""
    while True:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(_opened(path))
            lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                    stack.pop_all()
                    return file


def _opened(path: Path) -> IO[bytes]:
    make_folder(path.parent)
    try:
        return _file(path)
    except FileNotFoundError:  # its last holder dropped the folder just now
        make_folder(path.parent)
        return _file(path)


def _file(path: Path) -> IO[bytes]:
    # neither a link's target nor a file that is there loses anything
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "rb", buffering=0)


@dataclass
class _Turn:
    lock: Any = field(default_factory=threading.RLock)
    depth: int = 0
    file: IO[bytes] | None = None


_TURNS: "weakref.WeakValueDictionary[str, _Turn]" = weakref.WeakValueDictionary()
_ASKING = threading.Lock()


def _turn(folder: Path) -> _Turn:
    with _ASKING:
        key = os.path.abspath(folder)
        found = _TURNS.get(key)
        if found is None:
            found = _TURNS[key] = _Turn()
        return found


def _begin_child() -> None:
    """A forked process holds nothing of its parent's."""
    global _ASKING
    _ASKING = threading.Lock()
    _TURNS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
