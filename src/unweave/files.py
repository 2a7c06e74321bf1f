"""Files that survive a kill: written aside, forced to the disk, and only then given their name."""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, how far, of how much)."""


def write_atomically(path: Path, write: Callable[[Path], Any], ready: Callable[[], None] = lambda: None) -> None:
    """Let ``write`` fill a temporary neighbour, force it to the disk, and only then give it its name.

    ``ready`` is called once the new content stands aside, before it takes the place of the old one.
    """
    make_folder(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    aside.unlink(missing_ok=True)  # of a killed process with these numbers; or a link that leads elsewhere
    try:
        write(aside)
        sync(aside)
        ready()
        os.replace(aside, path)
        sync(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    write_atomically(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each on the disk before anything is put into it."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Force a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path, algorithm: str = "sha256", progress: Progress | None = None) -> str:
    """The checksum of a file, as hexadecimal text."""
    summed, size = hashlib.new(algorithm), path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            summed.update(block)
            if progress:
                progress(f"checking {path.name}", file.tell(), size)
    return summed.hexdigest()
