"""A run's folder: files written aside and renamed, each with its checksum in ``SHA256SUMS`` (as sha256sum writes it).

A file counts once its line stands in the list. A file without a line was interrupted: it is ignored and written again.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unweave.data.files import digest, write_atomically, write_text

SUMS = "SHA256SUMS"


class DamagedFile(ValueError):
    """A file whose bytes are not the ones that were written."""


class RunFolder:
    """Atomic, checked writing and reading below one folder."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def sums(self) -> dict[str, str]:
        """File name to checksum, for every file that was written completely."""
        try:
            lines = (self.path / SUMS).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        return {name: found for found, _, name in (line.partition("  ") for line in lines) if name}

    def has(self, name: str) -> bool:
        """Whether a file was written completely."""
        return name in self.sums() and (self.path / name).exists()

    @property
    def trained(self) -> bool:
        """Whether the run came to its end; its weights may have been left behind (:meth:`leave_weights`)."""
        return self.has("model.safetensors") or self.has("weights.json")

    def leave_weights(self) -> None:
        """Drop the weights of a finished run and keep their checksum: its measures can travel without them."""
        file = self.path / "model.safetensors"
        if self.has("model.safetensors"):
            note = {"sha256": self.sums()["model.safetensors"], "bytes": file.stat().st_size}
            self.write_json("weights.json", note)
            self.remove("model.safetensors")

    def names(self, prefix: str = "") -> list[str]:
        """All complete files whose name begins with ``prefix``, sorted."""
        return sorted(name for name in self.sums() if name.startswith(prefix))

    def write(self, name: str, content: bytes | str) -> Path:
        """Write one file; a kill at any moment leaves either the old state or the new one, never a torn file."""
        content = content.encode() if isinstance(content, str) else content
        if name in self.sums():
            self._list({name: None})
        write_atomically(self.path / name, lambda aside: aside.write_bytes(content))
        self._list({name: hashlib.sha256(content).hexdigest()})
        return self.path / name

    def write_json(self, name: str, value: Any) -> Path:
        """Write a value as readable JSON; a number that is not finite is refused."""
        return self.write(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def adopt(self, name: str) -> None:
        """Enter a file that another tool wrote into the list."""
        self._list({name: digest(self.path / name)})

    def remove(self, *names: str) -> None:
        """Take files off the list, then delete them."""
        if not names:
            return
        self._list(dict.fromkeys(names))
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """The content of a file, after checking it."""
        expected = self.sums().get(name)
        if expected is None or not (self.path / name).exists():
            raise FileNotFoundError(f"{self.path / name} does not exist, or was never written completely")
        content = (self.path / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise DamagedFile(f"{self.path / name} is damaged: its checksum differs from the one in {SUMS}")
        return content

    def read_json(self, name: str) -> Any:
        """A JSON file, after checking it."""
        return json.loads(self.read(name))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold this folder for one process; a second one is told so at once. A kill releases it."""
        import fcntl

        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BlockingIOError(f"{self.path} is being written by another process; wait for it to end") from error
            yield

    def _list(self, changes: dict[str, str | None]) -> None:
        merged = {name: found for name, found in (self.sums() | changes).items() if found is not None}
        write_text(self.path / SUMS, "".join(f"{found}  {name}\n" for name, found in sorted(merged.items())))
