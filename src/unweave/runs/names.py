"""Names of files inside a folder: plain relative paths, read and written without following a link out of it."""

import contextlib
import errno
import os
import stat
from pathlib import Path

NO_LINKS, NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
"""Where the system knows them: a link is not opened, a pipe is not waited for."""


def check_name(name: str) -> str:
    """A name as it was given; ValueError unless it is a plain relative path that stays inside its folder."""
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and name.isprintable() and "\\" not in name
    if not plain or len(os.fsencode(name)) > 1000:
        shown = name if len(name) <= 80 else name[:77] + "…"
        raise ValueError(f"{shown!r} is no plain name of a file inside a run folder")
    return name


def refuse_links(folder: Path, name: str) -> Path:
    """Where a file of a folder lies, or would lie; ValueError where a link is on the way."""
    place = str(folder)
    for part in check_name(name).split("/"):
        place = f"{place}/{part}"
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISLNK(os.lstat(place).st_mode):
                raise _link(place)
    return folder / name


def read_plain(folder: Path, name: str, *, follow_links: bool = False, most: int | None = None) -> bytes:
    """The content of a regular file inside a folder; OSError where there is none, ValueError where a link is met."""
    try:
        handle = _open(folder, check_name(name), follow_links)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise ValueError(f"{folder / name} is no regular file") from error
        raise
    try:
        known = os.fstat(handle)
        if not stat.S_ISREG(known.st_mode):  # a folder, say, which could not even be read to its end
            raise ValueError(f"{folder / name} is no regular file")
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb", buffering=0) as file:
        if most is not None and known.st_size > most:
            raise ValueError(f"{folder / name} has {known.st_size:,} bytes, more than the {most:,} that are read")
        return file.readall()


def _open(folder: Path, name: str, follow_links: bool) -> int:
    flags = os.O_RDONLY | NO_WAIT | (0 if follow_links else NO_LINKS)
    parents = name.rpartition("/")[0]
    if parents and not follow_links:
        refuse_links(folder, parents)
    try:
        return os.open(f"{folder}/{name}", flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _link(f"{folder}/{name}") from error
        raise


def _link(place: str) -> ValueError:
    return ValueError(f"{place} is a link, and links in a run folder are not followed; copy the file there")
