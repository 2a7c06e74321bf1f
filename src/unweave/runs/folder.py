"""A run's folder: files written aside and renamed, each with its checksum in ``SHA256SUMS`` (as sha256sum writes it).

A file counts once its line stands in the list. A file without a line was interrupted: it is ignored and written again.

Replacing a file takes four steps, each of them on the disk before the next: the new content stands aside; the list
announces its checksum beside the old one; the new content takes the name; the list has the new checksum alone. A reader
takes the content that matches either line. So a kill, a full disk or a pulled plug at any moment leaves a folder that
opens as before or as after. A new file takes its name and is then listed; a removed one is taken off the list and then
deleted.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from unweave.files import digest, parse_json, write_atomically, write_text
from unweave.runs.lock import long_lock, short_lock
from unweave.runs.names import read_plain, refuse_links
from unweave.runs.sums import SUMS, read_sums, salvaged_sums, write_sums

WEIGHTS, LEFT_WEIGHTS = "model.safetensors", "weights.json"


class DamagedFile(ValueError):
    """A file whose bytes are not the ones that were written."""


def as_json(value: Any) -> str:
    """A value as readable JSON; a number that is not finite is refused."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def signature(folder: Path | str) -> str:
    """What changes whenever a folder does: time, size and inode of its list; empty where there is none."""
    try:
        found = os.lstat(f"{folder}/{SUMS}")
    except (OSError, ValueError):
        return ""
    # a list is replaced, never changed: its inode tells even where the clock does not
    return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


class RunFolder:
    """Atomic, checked writing and reading below one folder. Links in it are refused, unless ``follow_links``."""

    def __init__(self, path: Path | str, *, follow_links: bool = False) -> None:
        self.path, self.follow_links = Path(path), follow_links

    def sums(self) -> dict[str, str]:
        """File name to checksum, for every file that was written completely."""
        sums, coming = self._lists()
        # interrupted, or just now, between two checksums: the file itself says which holds
        return sums | {name: found for name, found in coming.items() if self._is(name, found)}

    def has(self, name: str) -> bool:
        """Whether a file was written completely."""
        return name in self.sums() and (self.path / name).exists()

    @property
    def trained(self) -> bool:
        """Whether the run came to its end; its weights may have been left behind (:meth:`leave_weights`)."""
        return self.has(WEIGHTS) or self.has(LEFT_WEIGHTS)

    @property
    def weights_checksum(self) -> str:
        """The SHA-256 of the weights of a finished run, also where these were left behind; empty before its end."""
        if self.has(WEIGHTS) or not self.has(LEFT_WEIGHTS):
            return self.sums().get(WEIGHTS, "")
        note = self.read_json(LEFT_WEIGHTS)
        return str(note.get("sha256", "")) if isinstance(note, dict) else ""

    def leave_weights(self) -> None:
        """Drop the weights of a finished run and keep their checksum: its measures can travel without them."""
        if self.has(WEIGHTS):
            self.write_json(LEFT_WEIGHTS, self.weights_note())
        if self.has(LEFT_WEIGHTS):
            self.remove(WEIGHTS)

    def weights_note(self) -> dict[str, str | int]:
        """What is said of weights that stay behind."""
        return {"sha256": self.sums()[WEIGHTS], "bytes": (self.path / WEIGHTS).stat().st_size}

    def names(self, prefix: str = "") -> list[str]:
        """All complete files whose name begins with ``prefix``, sorted."""
        return sorted(name for name in self.sums() if name.startswith(prefix))

    def files_in(self, folder: str) -> list[str]:
        """All files of a folder in this one, complete or not, sorted; none where it is a link."""
        place = self.path / folder
        if place.is_symlink() or not place.is_dir():
            return []
        with os.scandir(place) as entries:
            return sorted(f"{folder}/{one.name}" for one in entries if one.is_file(follow_symlinks=False))

    def write(self, name: str, content: bytes | str) -> Path:
        """Write one file; whatever happens meanwhile, the folder holds the old content or the new one."""
        content = content.encode() if isinstance(content, str) else content
        path, found = refuse_links(self.path, name), hashlib.sha256(content).hexdigest()
        with short_lock(self.path):
            sums = self.sums()

            def announce() -> None:
                if sums.get(name, found) != found:
                    self._list(sums, {name: found})

            write_atomically(path, lambda aside: aside.write_bytes(content), announce)
            if self._lists() != (wanted := sums | {name: found}, {}):
                self._list(wanted)
        return path

    def write_new(self, files: Mapping[str, bytes | str]) -> None:
        """Write several files that begin to count at once; one that is listed already is replaced by itself."""
        with short_lock(self.path):
            known, found = self.sums(), {}
            for name, content in files.items():
                if name in known:
                    self.write(name, content)
                    continue
                whole = content.encode() if isinstance(content, str) else content
                found[name] = hashlib.sha256(whole).hexdigest()
                write_atomically(refuse_links(self.path, name), partial(_fill, whole))
            if found:
                self._list(self.sums() | found)

    def write_all(self, files: Mapping[str, bytes | str]) -> None:
        """Write several files with nobody in between; what kills left half written goes."""
        with short_lock(self.path):
            self._remove_torn()
            for name, content in files.items():
                self.write(name, content)

    def write_json(self, name: str, value: Any) -> Path:
        """Write a value as readable JSON; a number that is not finite is refused."""
        return self.write(name, as_json(value))

    def list_file(self, name: str) -> None:
        """Enter a file that another tool wrote into the list."""
        with short_lock(self.path):
            self._list(self.sums() | {name: digest(refuse_links(self.path, name))})

    def remove(self, *names: str) -> None:
        """Take files off the list, then delete them: also those that a kill in between has left."""
        if not names:
            return
        paths = [refuse_links(self.path, name) for name in names]
        with short_lock(self.path):
            sums = self.sums()
            kept = {name: found for name, found in sums.items() if name not in names}
            if kept != sums:
                self._list(kept)
            for path in paths:
                path.unlink(missing_ok=True)

    def mend_list(self) -> None:
        """Write a damaged list again, with the files that are certainly whole."""
        with short_lock(self.path):
            known = salvaged_sums(read_plain(self.path, SUMS))
            self._list({name: found for name, found in known.items() if self._is(name, found)})

    def read(self, name: str) -> bytes:
        """The content of a file, after checking it."""
        before, lists = None, self._lists()
        while lists != before:  # else it was replaced between reading the list and the file
            sums, coming = before = lists
            content = self._content_or_none(name) if name in sums else None
            if content is not None and hashlib.sha256(content).hexdigest() in (sums[name], coming.get(name)):
                return content
            lists = self._lists()
        if content is None:
            raise FileNotFoundError(f"{self.path / name} does not exist, or was never written completely")
        raise DamagedFile(f"{self.path / name} is damaged: its checksum differs from the one in {SUMS}")

    def read_json(self, name: str) -> Any:
        """A JSON file, after checking it."""
        return parse_json(self.read(name), self.path / name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold this folder for one process; a second one is told so at once. What kills left half written goes."""
        with long_lock(self.path):
            with short_lock(self.path):
                self._remove_torn()
            yield

    def torn_files(self) -> list[Path]:
        """What kills left half written; certain only while nobody else writes."""
        return [*self.path.glob(".*.part"), *self.path.glob("*/.*.part")]

    def _remove_torn(self) -> None:
        for torn in self.torn_files():
            torn.unlink(missing_ok=True)

    def _lists(self) -> tuple[dict[str, str], dict[str, str]]:
        try:
            return read_sums(self._content_or_none(SUMS) or self._list_or_nothing())
        except ValueError as error:
            raise DamagedFile(f"{self.path / SUMS} is damaged: {error}") from error

    def _list_or_nothing(self) -> bytes:
        # a disk that says once that there is no list may be wrong, and no list means no files
        there = os.path.lexists(self.path / SUMS)
        return read_plain(self.path, SUMS, follow_links=self.follow_links) if there else b""

    def _is(self, name: str, expected: str) -> bool:
        try:
            content = self._content_or_none(name)
        except (OSError, ValueError):
            return False
        return content is not None and hashlib.sha256(content).hexdigest() == expected

    def _content_or_none(self, name: str) -> bytes | None:
        try:
            return read_plain(self.path, name, follow_links=self.follow_links)
        except FileNotFoundError:
            return None

    def _list(self, sums: dict[str, str], coming: dict[str, str] | None = None) -> None:
        write_text(self.path / SUMS, write_sums(sums, coming))


def _fill(content: bytes, path: Path) -> None:
    path.write_bytes(content)
