"""Files that survive a kill: written aside, forced to the disk, and only then given their name."""

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Made = TypeVar("Made")
Progress = Callable[[str, int, int], None]
"""Called with (what is being done, how far, of how much)."""

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
PART = re.compile(r"\..+\.(?P<process>[0-9]{1,10})(?:-[0-9]+)?\.part")
ABANDONED = 600.0
"""Seconds after which a half-written file whose process is gone belongs to nobody, not even on another machine."""


def require_file(path: Path | str, wanted: str = "a file") -> Path:
    """The path of a file, or of a link to one; folders, pipes, sockets and devices are refused without opening them."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(f"{path} does not exist; give {wanted}") from error
    except ValueError as error:  # a zero byte in the name
        raise ValueError(f"{str(path)!r} is no name of a file: {error}") from error
    if (kind := _kind(mode)) != "a file":
        raise ValueError(f"{path} is {kind}; give {wanted}")
    return Path(path)


def require_folder(path: Path | str, wanted: str) -> Path:
    """The path of a folder, which may be there or not; anything else under its name is refused."""
    try:
        kind = _kind(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return Path(path)
    except ValueError as error:  # a zero byte in the name
        raise ValueError(f"{str(path)!r} is no name of a folder: {error}") from error
    if kind != "a folder":
        raise ValueError(f"{path} is {kind}; give {wanted}")
    return Path(path)


def read_json(path: Path | str, wanted: str) -> dict[str, Any]:
    """The object in a user's JSON file; whatever is wrong with it is one sentence."""
    path = require_file(path, wanted)
    found = parse_json(path.read_bytes(), path)
    if not isinstance(found, dict):
        word = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(found), "a number")
        raise ValueError(f"{path} holds {word}, not a JSON object; give {wanted}")
    return found


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


def write_folder(path: Path, fill: Callable[[Path], Made]) -> Made:
    """Let ``fill`` write a hidden neighbour and give it its name once it is whole; what stood there goes then."""
    make_folder(path.parent)
    remove_abandoned(path.parent)
    aside, old = (path.with_name(f".{path.name}.{word}.{os.getpid()}.part") for word in ("new", "old"))
    try:
        made = fill(aside)
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
        sync(path.parent)
        return made
    finally:
        for left in (aside, old):
            shutil.rmtree(left, ignore_errors=True)


def things_in(folder: Path) -> list[str]:
    """Names in a folder, sorted, without hidden ones: locks, and what a kill has left half written."""
    return sorted(path.name for path in folder.iterdir() if path.name[0] != ".") if folder.exists() else []


def remove_abandoned(folder: Path) -> None:
    """Delete what killed processes have left half written in a folder."""
    for part in folder.glob(".*.part"):
        found = PART.fullmatch(part.name)
        try:
            old = time.time() - part.lstat().st_mtime > ABANDONED
            if found and old and not _is_alive(int(found["process"])):
                shutil.rmtree(part) if part.is_dir() and not part.is_symlink() else part.unlink(missing_ok=True)
        except OSError:
            continue


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    write_atomically(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def as_typed(path: Path | str) -> str:
    """A path as it stands in a command that can be pasted: from the working folder where it lies below that."""
    place = Path(path)
    return shlex.quote(str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else path))


def parse_json(content: bytes | str, place: Path) -> Any:
    """What a JSON file holds; ValueError, with its name, where it cannot be read."""
    try:
        return load_json(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place} is no JSON: {error.msg} in line {error.lineno}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{place} is no JSON: it is not text") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"{place} cannot be read: it holds half a character") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} holds JSON that cannot be read: a number too long, or lists too deep") from error


def in_words(error: Exception) -> str:
    """What an error says, the system's without their numbers."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def load_json(content: bytes | str) -> Any:
    """What JSON holds; UnicodeEncodeError where that is half a character, which no file and no page could hold."""
    found = json.loads(content)
    raw = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    if b"\\ud" in raw.lower() or b"\xed" in raw:  # as an escape, or as it is
        json.dumps(found, ensure_ascii=False).encode()
    return found


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
    summed, size = hashlib.new(algorithm), require_file(path).stat().st_size
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            summed.update(block)
            if progress:
                progress(f"checking {path.name}", file.tell(), size)
    return summed.hexdigest()


def _kind(mode: int) -> str:
    return next((kind for is_kind, kind in KINDS if is_kind(mode)), "a file")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True
