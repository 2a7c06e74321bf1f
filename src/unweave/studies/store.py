"""The store: a folder of run folders. The folders are the truth; everything else about them can be rebuilt."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.train.folder import RunFolder
from unweave.train.run import Run

if TYPE_CHECKING:
    import polars as pl


class Store:
    """Runs by their id: the name of their folder directly below the store's."""

    def __init__(self, root: Path | str = "runs") -> None:
        self.root = Path(root)

    def ids(self) -> list[str]:
        """Every run that has begun, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if (path / "config.json").exists())

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a run by its id, which is never a path."""
        if not run_id or run_id.startswith(".") or "/" in run_id or "\\" in run_id:
            raise ValueError(f"a run is named by its id, such as micro-beta_vae-0123456789ab, not {run_id!r}")
        return RunFolder(self.root / run_id)

    def run(self, run_id: str) -> Run:
        """A run that can be asked."""
        return Run(self.folder(run_id).path)

    def table(self, ids: Iterable[str] | None = None) -> "pl.DataFrame":
        """One row a run: ``id``, ``state``, its config and all its measures, flattened with dots."""
        import polars as pl

        rows = [self._row(run_id) for run_id in (self.ids() if ids is None else ids)]
        return pl.from_dicts(rows, infer_schema_length=None) if rows else pl.DataFrame({"id": [], "state": []})

    def _row(self, run_id: str) -> dict[str, Any]:
        folder = self.folder(run_id)
        done, failed = folder.has("model.safetensors"), folder.has("failure.json")
        row = {"id": run_id, "state": "done" if done else "failed" if failed else "unfinished"}
        row |= dict(flatten(json.loads((folder.path / "config.json").read_text())))
        for name in folder.names("measures/"):
            measure = name.removeprefix("measures/").rpartition("-")[0]
            row |= dict(flatten(folder.read_json(name), measure))
        return row


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested dictionaries as ``outer.inner`` columns; lists stay lists."""
    for key, inner in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(inner, Mapping):
            yield from flatten(inner, name)
        else:
            yield name, inner
