"""Arrays kept on disk and published files: checked against a checksum, fetched once and kept."""

import json
import os
import struct
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unweave.files import Progress, digest, write_atomically, write_text

TRUSTED_SIZE = 1 << 30
"""Cached arrays up to this size are checked byte for byte on every opening, larger ones when they changed on disk."""


def data_folder() -> Path:
    """Where data sets live: ``$UNWEAVE_DATA``, or ``~/.cache/unweave``."""
    return Path(os.environ.get("UNWEAVE_DATA") or Path.home() / ".cache" / "unweave")


def cached_array(path: Path, build: Callable[[], np.ndarray], progress: Progress | None = None) -> np.ndarray:
    """The array kept in ``path``, built and written on the first call and memory-mapped (copy on write) after that."""
    if not path.exists():
        array = build()
        write_atomically(path, lambda aside: _save(aside, array))
        _remember(path, digest(path))
    return open_cached(path, progress)


def converted(
    path: Path, shape: tuple[int, ...], fill: Callable[[np.ndarray], None], progress: Progress | None = None
) -> np.ndarray:
    """The bytes kept in ``path``, filled in place on the first call, so that more than the memory can be converted."""
    if not path.exists():
        write_atomically(path, lambda aside: _fill(aside, shape, fill))
        _remember(path, digest(path, progress=progress))
    array = open_cached(path, progress)
    if array.shape != shape or array.dtype != np.uint8:
        raise ValueError(f"{path} holds {array.dtype} {array.shape}, expected uint8 {shape}. Delete it to rebuild.")
    return array


def open_cached(path: Path, progress: Progress | None = None) -> np.ndarray:
    """Memory-map an array that :func:`cached_array` wrote, after checking it."""
    remembered = _remembered(path)
    now = path.stat()
    touched = remembered.get("size") != now.st_size or remembered.get("modified") != now.st_mtime_ns
    if remembered and (touched or now.st_size <= TRUSTED_SIZE):
        found = digest(path, progress=progress)
        if found != remembered["sha256"]:
            raise ValueError(
                f"{path} is damaged: its checksum is not the one it was written with. Delete it to rebuild."
            )
        _remember(path, found)
    return open_array(path)


def open_array(path: Path) -> np.ndarray:
    """Memory-map a ``.npy`` file; a torn or foreign file is refused by name."""
    try:
        # "c": the pages can be written without touching the file, which torch.from_numpy asks for
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a whole .npy file ({error}). Delete it, or put a good copy there.") from error


BROKEN: tuple[type[Exception], ...] = (
    *(OSError, EOFError, KeyError, TypeError, IndexError, ValueError, SyntaxError, RuntimeError, OverflowError),
    *(zlib.error, struct.error, zipfile.BadZipFile, zipfile.LargeZipFile, tarfile.TarError),
)
"""What the readers of other people's formats raise when a file is torn, foreign or damaged."""


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong inside is an error that names the file and what it should have been."""
    try:
        yield
    except BROKEN as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(
            f"{path} cannot be read as {what}: {reason}. It may be cut short or damaged: replace it by a good copy."
        ) from error


@contextmanager
def open_npz(path: Path, what: str) -> Iterator[Mapping[str, np.ndarray]]:
    """The named arrays of an npz file; nothing in it is ever unpickled."""
    # numpy leaves a torn file open when it opens it by name
    with reading(path, what), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        yield arrays


@dataclass(frozen=True)
class Published:
    """A file as its authors published it. ``checksum`` is ``"algorithm:hex"``; empty where none was ever published.

    ``by_hand`` marks an address that is a page for people, or asks for a consent, and cannot be fetched by a program.
    """

    file: str
    address: str
    checksum: str = ""
    n_bytes: int | None = None
    by_hand: bool = False


def place_of(world: str, published: Published) -> Path:
    """Where a published file is looked for."""
    return data_folder() / world / published.file


def require(world: str, published: Published) -> Path:
    """The path of a published file, or an error that says what to fetch, where to put it, and its checksum."""
    path = place_of(world, published)
    if path.exists():
        return path
    command = "" if published.by_hand else f", or run: unweave worlds get {world}"
    raise FileNotFoundError(
        f"{world} needs {published.file}, which is not on this machine. {how_to_get(world, (published,))}{command}"
    )


def how_to_get(world: str, files: tuple[Published, ...]) -> str:
    """For every published file where it is fetched, where it is put, and its checksum."""
    return "; ".join(
        f"Fetch {file.file} from {file.address} and put it at {place_of(world, file)}"
        f" ({file.checksum or 'no checksum was published'})"
        for file in files
    )


def fetch(world: str, published: Published, progress: Progress | None = None) -> Path:
    """Download a published file to its place and check it; a wrong checksum leaves nothing behind."""
    path = place_of(world, published)
    if not path.exists():
        if published.by_hand:
            raise ValueError(f"{published.file} has to be fetched by hand. {how_to_get(world, (published,))}")
        write_atomically(path, lambda aside: _download(published, aside, progress))
    return path


def verify(path: Path, published: Published, progress: Progress | None = None) -> None:
    """Refuse a file that is not byte for byte the published one, where its checksum is known."""
    if published.n_bytes is not None and path.stat().st_size != published.n_bytes:
        raise ValueError(
            f"{path} has {path.stat().st_size} bytes, the published file has {published.n_bytes}: fetch it again"
        )
    algorithm, _, expected = published.checksum.partition(":")
    if expected and (found := digest(path, algorithm, progress)) != expected:
        raise ValueError(f"{path} is not the published file: {algorithm} {found}, expected {expected}. Fetch it again.")


def _download(published: Published, aside: Path, progress: Progress | None) -> None:
    try:
        with urllib.request.urlopen(published.address, timeout=60) as answer, aside.open("wb") as file:
            size = int(answer.headers.get("Content-Length") or published.n_bytes or 0)
            while block := answer.read(1 << 20):
                file.write(block)
                if progress:
                    progress(f"fetching {published.file}", file.tell(), size)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise OSError(f"could not fetch {published.address}: {error}. Fetch it by other means.") from error
    verify(aside, published, progress)


def _save(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _fill(path: Path, shape: tuple[int, ...], fill: Callable[[np.ndarray], None]) -> None:
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    fill(array)
    array.flush()


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _remember(path: Path, sha256: str) -> None:
    now = path.stat()
    write_text(_sidecar(path), json.dumps({"sha256": sha256, "size": now.st_size, "modified": now.st_mtime_ns}))


def _remembered(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_sidecar(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
