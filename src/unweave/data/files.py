"""Arrays kept on disk and published files: checked against a checksum, fetched once and kept."""

import contextlib
import os
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unweave.data.download import OpenAddress, download, open_https
from unweave.files import Progress, digest, remove_abandoned, require_file, write_atomically, write_text
from unweave.sealed import VERSION, VERSION_KEY, sealed, unsealed

SEAL = "checksum"
"""Under which a sidecar has the checksum of itself; ``sha256`` is that of the file it belongs to."""

TRUSTED_SIZE = 1 << 30
"""Cached arrays up to this size are checked byte for byte on every opening, larger ones when they changed on disk."""


def data_folder() -> Path:
    """Where data sets live: ``$UNWEAVE_DATA``, or ``~/.cache/unweave``."""
    return Path(os.environ.get("UNWEAVE_DATA") or Path.home() / ".cache" / "unweave")


def cached_array(path: Path, build: Callable[[], np.ndarray], progress: Progress | None = None) -> np.ndarray:
    """The array kept in ``path``, built and written on the first call and memory-mapped (copy on write) after that.

    One that is not what was written is built again.
    """
    if not _is_whole(path, progress):
        array = build()
        _write(path, lambda aside: _save(aside, array), progress)
    return open_array(path)


def converted(
    path: Path, shape: tuple[int, ...], fill: Callable[[np.ndarray], None], progress: Progress | None = None
) -> np.ndarray:
    """The bytes kept in ``path``, filled in place on the first call, so that more than the memory can be converted."""
    if not _is_whole(path, progress):
        _write(path, lambda aside: _fill(aside, shape, fill), progress)
    array = open_array(path)
    if array.shape != shape or array.dtype != np.uint8:
        raise ValueError(f"{path} holds {array.dtype} {array.shape}, expected uint8 {shape}. Delete it to rebuild.")
    return array


def keep_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays into an npz file, once."""
    if not _is_whole(path, None):
        _write(path, lambda aside: _save_all(aside, arrays), None)


def kept_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays that :func:`keep_arrays` wrote."""
    _check_remembered(path, "Delete it to rebuild.", None)
    with open_npz(path, "an npz file of arrays") as file:
        return {name: np.asarray(file[name]) for name in file}


def open_cached(path: Path, progress: Progress | None = None) -> np.ndarray:
    """Memory-map an array that :func:`cached_array` wrote, after checking it."""
    _check_remembered(path, "Delete it to rebuild.", progress)
    return open_array(path)


def open_array(path: Path) -> np.ndarray:
    """Memory-map a ``.npy`` file; a torn or foreign file is refused by name."""
    require_file(path, "a .npy file")
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
    require_file(path, what)
    try:
        yield
    except BROKEN as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        reason = str(error) or type(error).__name__
        if "Python objects" in reason or "allow_pickle" in reason:
            raise ValueError(f"{path} holds Python objects, which are never read: save numbers in it") from error
        reason = "its header makes no sense" if " object at 0x" in reason else reason
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
    """A file as its authors published it. ``checksum`` is ``"algorithm:hex"``, or several with spaces between them.

    It is empty where none was ever published. ``by_hand`` marks an address that is a page for people, asks for a
    consent, or is no https, and cannot be fetched by a program.
    """

    file: str
    address: str
    checksum: str = ""
    n_bytes: int | None = None
    by_hand: bool = False

    @property
    def unknown(self) -> str:
        """What is not known of the file, so that it cannot be told from another one; empty where all is."""
        if "sha256:" in self.checksum or (self.checksum and self.n_bytes is not None):
            return ""
        if self.checksum:
            return f"neither its sha256 nor its size is known, only {self.checksum}"
        return "no checksum of it is known" + ("" if self.n_bytes is not None else ", nor its size")


def place_of(world: str, published: Published) -> Path:
    """Where a published file is looked for."""
    return data_folder() / world / published.file


def require(world: str, published: Published) -> Path:
    """The path of a published file, or an error that says which command fetches it or tells where it is."""
    path = place_of(world, published)
    if path.exists():
        return require_file(path, f"the published {published.file}")
    raise absent(world, (published,))


def absent(world: str, files: Sequence[Published]) -> FileNotFoundError:
    """The sentence about published files that are not on this machine: what is missing where, and how to get it."""
    one = len(files) == 1
    named = " and ".join(file.file for file in files)
    place = place_of(world, files[0])
    missing = f"which is not on this machine (its place is {place})" if one else f"which are not in {place.parent}"
    fetched = [file for file in files if not file.by_hand]
    unchecked = " --unchecked" if any(file.unknown for file in fetched) else ""
    get = f"`unweave worlds get {world}{unchecked}` fetches {'it' if one else 'them'}, " if fetched else ""
    return FileNotFoundError(f"{world} needs {named}, {missing}: {get}`unweave worlds {world}` says where from")


def how_to_get(world: str, files: tuple[Published, ...]) -> str:
    """For every published file a line: where it is fetched, where it is put, and its checksum."""
    return "\n".join(
        f"Fetch {file.file} from {file.address} and put it at {place_of(world, file)}"
        f" ({file.checksum or 'no checksum of it is known'})"
        for file in files
    )


def fetch(
    world: str,
    published: Published,
    progress: Progress | None = None,
    *,
    unchecked: bool = False,
    open_address: OpenAddress = open_https,
) -> Path:
    """Download a published file to its place and check it; whatever is wrong with it leaves nothing behind.

    A file of which too little is known to check it comes only with ``unchecked``. What arrived is then written down
    beside it, and the file is checked against that ever after.
    """
    path = place_of(world, published)
    if path.exists():
        return require_file(path, f"the published {published.file}")
    if published.by_hand:
        raise ValueError(f"{published.file} has to be fetched by hand. {how_to_get(world, (published,))}")
    if published.unknown and not unchecked:
        raise ValueError(
            f"{published.file} is not fetched: {published.unknown}, so a cut or changed file could not be told."
            f" {how_to_get(world, (published,))}, or take what comes with: unweave worlds get {world} --unchecked"
        )
    remove_abandoned(path.parent)

    def get(aside: Path) -> None:
        download(published.address, aside, published.n_bytes, progress, open_address)
        verify(aside, published, progress)
        if published.unknown:
            _remember(path, digest(aside, progress=progress), aside)

    write_atomically(path, get)
    return path


def verify(path: Path, published: Published, progress: Progress | None = None) -> None:
    """Refuse a file that is not byte for byte the published one or, where that is not known, the one that came."""
    if published.n_bytes is not None and path.stat().st_size != published.n_bytes:
        raise ValueError(
            f"{path} has {path.stat().st_size} bytes, the published file has {published.n_bytes}: fetch it again"
        )
    for checksum in published.checksum.split():
        algorithm, _, expected = checksum.partition(":")
        if (found := digest(path, algorithm, progress)) != expected:
            raise ValueError(
                f"{path} is not the published file: {algorithm} {found}, expected {expected}. Fetch it again."
            )
    if published.unknown:
        advice = f"Fetch it again, or delete {_sidecar(path)} if you have put another one there."
        _check_remembered(path, advice, progress)


def _is_whole(path: Path, progress: Progress | None) -> bool:
    """Whether an array is there, and is the one that was written as far as anyone knows."""
    if not path.exists():
        return False
    try:
        _check_remembered(path, "", progress)
    except ValueError as error:
        if not path.is_file():
            raise
        print(f"{str(error).strip()} It is made again.", file=sys.stderr, flush=True)
        return False
    return True


def _write(path: Path, write: Callable[[Path], None], progress: Progress | None) -> None:
    remove_abandoned(path.parent)
    write_atomically(path, write)
    _remember(path, digest(path, progress=progress))


def _save(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _save_all(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _fill(path: Path, shape: tuple[int, ...], fill: Callable[[np.ndarray], None]) -> None:
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    fill(array)
    array.flush()


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _check_remembered(path: Path, advice: str, progress: Progress | None) -> None:
    """Refuse a file whose bytes are not the ones that were written down when it came, where they were."""
    remembered = _remembered(path, advice)
    now = require_file(path).stat()
    touched = remembered.get("size") != now.st_size or remembered.get("modified") != now.st_mtime_ns
    if remembered and (touched or now.st_size <= TRUSTED_SIZE):
        found = digest(path, progress=progress)
        if found != remembered["sha256"]:
            raise ValueError(f"{path} is damaged: its checksum is not the one it was written with. {advice}")
        if touched:
            with contextlib.suppress(OSError):  # a folder that may only be read is read
                _remember(path, found)


def _remember(path: Path, sha256: str, content: Path | None = None) -> None:
    now = (content or path).stat()
    write_text(_sidecar(path), sealed({"sha256": sha256, "size": now.st_size, "modified": now.st_mtime_ns}, SEAL))


def _remembered(path: Path, advice: str) -> dict[str, Any]:
    """What was written down of a file; nothing where nothing was, ValueError where that is damaged."""
    try:
        content = _sidecar(path).read_bytes()
    except OSError:
        return {}
    try:
        found = unsealed(content, SEAL)
    except ValueError:
        found = {}
    # version 0.1.0 wrote neither version nor checksum
    if found.get(VERSION_KEY, VERSION) != VERSION or not isinstance(found.get("sha256"), str):
        raise ValueError(f"{path} may be damaged: {_sidecar(path).name}, which has its checksum, is. {advice}")
    return found
