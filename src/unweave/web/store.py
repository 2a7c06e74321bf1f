"""The store as a stranger may see it: runs by their id, and nothing outside the store's folder, by name or by link.

A store may hold others: the run ``x`` of the store in ``betas/`` goes by ``betas:x``, and so do its studies.
"""

import os
import stat
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from unweave.runs.folder import RunFolder
from unweave.runs.names import read_plain
from unweave.runs.row import LARGEST

APART = ":"
"""Between the name of a store inside another and the name of what it holds."""

DEEPEST, MOST_STORES, MOST_ENTRIES = 3, 100, 2000
"""How far down stores are looked for, how many, and how many entries of a folder are read to see whether it is one."""


class NotHere(LookupError):
    """Nothing in this store goes by that name; the message says so in one sentence."""


class ReadOnlyStore:
    """Names to folders, checked on every call: a folder may vanish or change while someone looks at it."""

    def __init__(self, root: Path | str, prefix: str = "") -> None:
        self.root, self.prefix = Path(root).resolve(), prefix

    @property
    def place(self) -> str:
        """Where a store inside the opened one lies: ``betas/first``; empty for the opened one."""
        return self.prefix.rstrip(APART).replace(APART, "/")

    def stores(self, runs: Collection[str] = ()) -> list["ReadOnlyStore"]:
        """This store and those inside it; folders that are known to be ``runs`` are not looked into."""
        return [self, *islice(self._inside(DEEPEST, runs), MOST_STORES)]

    def inside(self, name: str) -> tuple["ReadOnlyStore", str]:
        """The store that a name belongs to, this one or one inside it, and the name there."""
        *folders, last = name.split(APART, DEEPEST)
        place = self.root
        if not folders or self._has(self.root, name):
            return self, name
        for folder in folders:
            if not self._has(place, folder):
                return self, name
            place /= folder
        return ReadOnlyStore(place, APART.join((*folders, ""))), last

    def names(self, most: int | None = None) -> list[str]:
        """Folders directly below the store's, links left out, or those among its first ``most`` entries."""
        try:
            with os.scandir(self.root) as entries:
                return sorted(one.name for one in islice(entries, most) if _listed(one))
        except OSError:
            return []

    def problem(self) -> str:
        """Why nothing can be read here, in one sentence; empty where something can."""
        try:
            with os.scandir(self.root):
                return ""
        except OSError as error:
            return f"{self.root} cannot be read: {error.strerror or error}; what is there appears as soon as it can be"

    def ids(self) -> list[str]:
        """Every run directly in the store."""
        return [name for name in self.names() if is_run(self.root / name)]

    def run(self, run_id: str) -> Path:
        """The folder of a run by its id, free of links."""
        place, name = self.inside(run_id)
        path = self._child(place.root, name)
        if not is_run(path):
            raise NotHere(f"there is no run {_shown(run_id)} in this store; it may have been moved or deleted")
        _refuse_any_link(path)
        return path

    def own_file(self, *names: str) -> bytes | None:
        """A file of the store's own folder, ``.unweave``; None where there is none."""
        place = self.own_folder(*names[:-1])
        return None if place is None else read_inside(place, names[-1])

    def report_file(self, name: str, file: str) -> bytes | None:
        """A file of a study's report, None where there is none; DamagedFile where it is not what was written."""
        place = self.own_folder("reports", name)
        if place is None:
            return None
        # reports of version 0.1.0 have no list
        return RunFolder(place).read(file) if RunFolder(place).has(file) else read_inside(place, file)

    def own_names(self, *folders: str, suffix: str = ".json") -> list[str]:
        """Names of files in a folder below ``.unweave``, without their suffix."""
        place = self.own_folder(*folders)
        if place is None:
            return []
        try:
            return sorted(path.stem for path in place.iterdir() if path.suffix == suffix and not path.is_symlink())
        except OSError:
            return []

    def own_folder(self, *folders: str) -> Path | None:
        """A folder of the store's own, ``.unweave`` or below; None where there is none, or a link is on the way."""
        place = self.root
        for name in (".unweave", *folders):
            place = place / name
            if "/" in name or name == ".." or not _is_folder(place):
                return None
        return place

    def _inside(self, depth: int, runs: Collection[str] = ()) -> Iterator["ReadOnlyStore"]:
        for name in self.names(MOST_ENTRIES if self.prefix else None):
            path = self.root / name
            if depth == 0 or name in runs or APART in name or is_run(path):
                continue
            inner = ReadOnlyStore(path, f"{self.prefix}{name}{APART}")
            if inner.own_folder() is not None or any(is_run(path / one) for one in inner.names(MOST_ENTRIES)):
                yield inner
            yield from inner._inside(depth - 1)

    def _has(self, folder: Path, name: str) -> bool:
        try:
            return self._child(folder, name) is not None
        except NotHere:
            return False

    def _child(self, folder: Path, name: str) -> Path:
        """A direct, real subfolder; anything that could be read as a path is refused before the disk is asked."""
        bad = not name or name.startswith(".") or any(c in name for c in "/\\\0") or len(os.fsencode(name)) > 255
        if bad or not _is_folder(folder / name):
            raise NotHere(f"there is no run {_shown(name)} in this store; it may have been moved or deleted")
        return folder / name


def is_run(path: Path) -> bool:
    """Whether a folder has begun to be a run."""
    try:
        return stat.S_ISREG(os.lstat(path / "config.json").st_mode)
    except OSError:
        return False


def _refuse_any_link(path: Path) -> None:
    """A run is made of plain files and folders: a link could lead anywhere."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(folder, name)):
                raise NotHere(f"{path.name} holds a link, {_shown(name)}; links are not followed, copy the file there")


def read_inside(folder: Path, name: str) -> bytes | None:
    """The content of a plain file of a folder, None where there is none; no link is followed, and no way out."""
    try:
        return read_plain(folder, name, most=LARGEST)
    except (OSError, ValueError):
        return None


def _listed(entry: "os.DirEntry[str]") -> bool:
    return not entry.name.startswith(".") and entry.name.isprintable() and entry.is_dir(follow_symlinks=False)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")
