"""System calls that fail, tear or are lost: one that is asked for, or all that a pulled plug leaves undone."""

import errno
import fcntl
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CALLS = (
    "mkdir",
    "open",
    "fsync",
    "close",
    "replace",
    "unlink",
    "rmdir",
    "stat",
    "lstat",
    "fstat",
    "listdir",
    "scandir",
)
"""System calls that the folder layer makes through ``os``; locks, reading and writing are added by hand."""

CHANGES = ("mkdir", "replace", "unlink", "rmdir")
"""Those that change what others see: a kill between two of them leaves what one before the second leaves."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing that would clean up gets a chance to."""


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def failure(number: int) -> Callable[[], OSError]:
    """An error of the system, as a thing to raise."""
    return lambda: OSError(number, os.strerror(number))


ERRORS: dict[str, Callable[[], BaseException]] = {
    "full": no_space,
    "killed": Killed,
    "broken": failure(errno.EIO),
    "read only": failure(errno.EROFS),
    "refused": failure(errno.EACCES),
    "vanished": failure(errno.ENOENT),
}


class Faults:
    """Counts system calls, and fails the one that is asked for; after a kill every further one fails too."""

    def __init__(self, at: int, error: Callable[[], BaseException]) -> None:
        self.at, self.error, self.count, self.called = at, error, 0, ""

    def hit(self, name: str = "") -> None:
        self.count += 1
        if self.count == self.at or (self.count > self.at and isinstance(self.error(), Killed)):
            self.called = self.called or name
            raise self.error()


@contextmanager
def failing(at: int, error: Callable[[], BaseException], calls: tuple[str, ...] = ()) -> Iterator[Faults]:
    """Calls of the folder layer counted, all or some; the ``at``-th one raises. Nothing is forced to the disk."""
    faults = Faults(at, error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        for name in calls or CALLS:
            patch.setattr(os, name, _counted(faults, name, getattr(os, name)))
        if not calls:
            patch.setattr(fcntl, "flock", _counted(faults, "flock", fcntl.flock))
            patch.setattr(os, "fdopen", _counted(faults, "read", os.fdopen))
        for name in ("write_bytes", "write_text"):
            patch.setattr(Path, name, _torn(faults, getattr(Path, name)))
        yield faults


def _counted(faults: Faults, name: str, real: Callable) -> Callable:
    def call(*args, **kwargs):
        try:
            faults.hit(name)
        except BaseException:
            if name == "fdopen" or (name == "close" and not isinstance(faults.error(), Killed)):
                real(*args, **kwargs)  # the number of open files is not what is tried here
            raise
        return real(*args, **kwargs)

    return call


def _torn(faults: Faults, real: Callable) -> Callable:
    def call(self, content, **kwargs):
        try:
            faults.hit("write")
        except BaseException:
            real(self, content[: len(content) // 2], **kwargs)
            raise
        return real(self, content, **kwargs)

    return call


@dataclass(frozen=True)
class Operation:
    """A change that a disk was told of: of a folder's entries, or of the content of one file."""

    kind: str
    """``data`` of a file, ``entry`` of a folder that now leads to a file or folder, ``gone`` for one removed."""
    folder: str
    path: str
    file: int = 0
    content: bytes = b""
    was: str = ""
    """The entry that a rename takes away."""


@dataclass
class Disk:
    """What was written, and what of it a pulled plug may leave. Forced to the disk is only what was synced.

    ``moments`` holds, for every instant, the operations so far that certainly last and those that may or may not.
    """

    root: Path
    lasting: list[Operation] = field(default_factory=list)
    pending: list[Operation] = field(default_factory=list)
    moments: list[tuple[list[Operation], list[Operation]]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def note(self, operation: Operation) -> None:
        self.pending.append(operation)
        self.moments.append((list(self.lasting), list(self.pending)))

    def sync(self, path: str) -> None:
        """The content of a file, or the entries of a folder, last from now on."""
        number = self.files.get(path)
        lasts = [one for one in self.pending if (one.file == number if one.kind == "data" else one.folder == path)]
        if not os.path.isdir(path):
            lasts = [one for one in lasts if one.kind == "data"]
        self.lasting += lasts
        self.pending = [one for one in self.pending if one not in lasts]
        self.moments.append((list(self.lasting), list(self.pending)))


@contextmanager
def recorded(root: Path) -> Iterator[Disk]:
    """Every change below ``root``, with what syncing makes certain."""
    disk = Disk(root)
    real = {name: getattr(os, name) for name in ("open", "mkdir", "replace", "unlink", "rmdir")}

    def path_of(path: Any, dir_fd: int | None = None) -> str:
        found = os.fspath(path)
        return os.path.abspath(found if dir_fd is None else os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), found))

    def entry(path: str, was: str = "") -> None:
        disk.files.setdefault(path, next(disk.numbers))
        disk.note(Operation("entry", os.path.dirname(path), path, disk.files[path], was=was))

    def opened(path, flags, *args, dir_fd=None, **kwargs):
        new = flags & os.O_CREAT and not os.path.lexists(path_of(path, dir_fd))
        handle = real["open"](path, flags, *args, dir_fd=dir_fd, **kwargs)
        if new:
            entry(path_of(path, dir_fd))
        return handle

    def made(path, *args, **kwargs):
        real["mkdir"](path, *args, **kwargs)
        entry(path_of(path))

    def replaced(old, new):
        real["replace"](old, new)
        old, new = path_of(old), path_of(new)
        disk.files[new] = disk.files.pop(old)
        entry(new, was=old)

    def gone(name: str):
        def call(path, *args, dir_fd=None, **kwargs):
            real[name](path, *args, dir_fd=dir_fd, **kwargs)
            found = path_of(path, dir_fd)
            disk.files.pop(found, None)
            disk.note(Operation("gone", os.path.dirname(found), found))

        return call

    def written(real_write: Callable) -> Callable:
        def call(self, content, **kwargs):
            found = real_write(self, content, **kwargs)
            entry(path_of(self))
            data = content if isinstance(content, bytes) else content.encode()
            disk.note(Operation("data", os.path.dirname(path_of(self)), path_of(self), disk.files[path_of(self)], data))
            return found

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        patch.setattr(os, "mkdir", made)
        patch.setattr(os, "replace", replaced)
        patch.setattr(os, "unlink", gone("unlink"))
        patch.setattr(os, "rmdir", gone("rmdir"))
        patch.setattr(os, "fsync", lambda handle: disk.sync(os.readlink(f"/proc/self/fd/{handle}")))
        for name in ("write_bytes", "write_text"):
            patch.setattr(Path, name, written(getattr(Path, name)))
        yield disk


def after_power_loss(disk: Disk, before: Path) -> Iterator[tuple[str, dict[str, bytes | None]]]:
    """Every tree that a pulled plug can leave: at each instant, any of the operations that were not synced yet.

    A tree is path to content, None for a folder. ``before`` is a copy of the folder as it was.
    """
    seen = set()
    base = tree(before)
    for moment, (lasting, pending) in enumerate(disk.moments):
        for kept in _choices(pending):
            found = applied(base, disk.root, lasting, kept)
            key = tuple(sorted(found.items(), key=lambda item: item[0]))
            if key not in seen:
                seen.add(key)
                yield f"moment {moment}, kept {[f'{one.kind} {os.path.basename(one.path)}' for one in kept]}", found


def _choices(pending: list[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Any of few operations; of many, none, each alone, all but each, every beginning, and all."""
    if len(pending) <= 7:
        for n in range(len(pending) + 1):
            yield from itertools.combinations(pending, n)
        return
    for n in range(len(pending) + 1):
        yield tuple(pending[:n])
        yield tuple(pending[n : n + 1])
        yield tuple(pending[:n] + pending[n + 1 :])


def applied(
    base: dict[str, bytes | None], root: Path, lasting: list[Operation], kept: tuple[Operation, ...] = ()
) -> dict[str, bytes | None]:
    """The tree after operations; a file whose content did not last is empty."""
    data = {one.file: one.content for one in (*lasting, *kept) if one.kind == "data"}
    found = dict(base)
    for one in (*lasting, *kept):
        name = os.path.relpath(one.path, root)
        if one.kind == "gone":
            found = {other: held for other, held in found.items() if other != name and not other.startswith(f"{name}/")}
        elif one.kind == "entry":
            if one.was:
                found.pop(os.path.relpath(one.was, root), None)
            found[name] = data.get(one.file, b"")
            if os.path.isdir(one.path) or one.path in _folders(lasting, kept):
                found[name] = None
    # what lies in a folder whose own entry was lost is lost
    return {name: held for name, held in found.items() if _reachable(name, found)}


def _folders(lasting: list[Operation], kept: tuple[Operation, ...]) -> set[str]:
    return {one.folder for one in (*lasting, *kept)}


def _reachable(name: str, found: dict[str, bytes | None]) -> bool:
    parents = name.split("/")[:-1]
    return all("/".join(parents[: n + 1]) in found for n in range(len(parents)))


def tree(folder: Path) -> dict[str, bytes | None]:
    """Path to content below a folder; None for a folder."""
    paths = sorted(folder.rglob("*")) if folder.exists() else []
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in paths}


def plant(found: dict[str, bytes | None], folder: Path) -> Path:
    """A tree as files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, held in sorted(found.items()):
        if held is None:
            (folder / name).mkdir(exist_ok=True)
        else:
            (folder / name).write_bytes(held)
    return folder
