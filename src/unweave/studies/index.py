"""The index of a store: all configs, measures and scores in one parquet file. Never the truth, always rebuildable.

A run is read again when its list of checksums has changed. The file is written aside and renamed, so that any number
of processes may write it: each leaves a whole one, and what it lacks is read again by the next.
"""

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.data.files import write_atomically
from unweave.studies.failures import is_full, reason_of

if TYPE_CHECKING:
    import polars as pl

SUMS, FILE = "SHA256SUMS", "index.parquet"
TEXTS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def refresh(root: Path, home: Path, *, rebuild: bool = False) -> "pl.DataFrame":
    """The index brought up to date: one row a run, sorted by id, with its ``signature``."""
    import polars as pl

    known, seen = (_empty() if rebuild else _read(home / FILE)), _scan(root)
    now = pl.DataFrame({"id": list(seen), "signature": list(seen.values())}, schema=_empty().schema)
    kept = known.join(now, on=["id", "signature"], how="semi")
    if kept.height == known.height == now.height:
        return known
    missing = now.join(kept.select("id"), on="id", how="anti")
    rows = [_row(root / run_id, signature) for run_id, signature in missing.rows()]
    table = _joined(kept, [row for row in rows if row is not None], root)
    _write(home / FILE, table)
    return table


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested dictionaries as ``outer.inner`` columns; lists stay lists."""
    for key, inner in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(inner, Mapping):
            yield from flatten(inner, name)
        else:
            yield name, inner


def _scan(root: Path) -> dict[str, str]:
    """Run ids and what their lists of checksums look like, in one pass over the folder."""
    found = {}
    try:
        names = sorted(os.listdir(root))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for name in names:
        if name.startswith((".", "fleet-")):
            continue
        try:
            look = os.stat(f"{root}/{name}/{SUMS}")
        except OSError:
            continue
        # a list is replaced, never changed: its inode tells even where the clock does not
        found[name] = f"{look.st_mtime_ns}-{look.st_size}-{look.st_ino}"
    return found


def _row(folder: Path, signature: str) -> dict[str, Any] | None:
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    sums = {name: found for found, _, name in (line.partition("  ") for line in lines) if name}
    if "config.json" not in sums:
        return None
    failed = "failure.json" in sums
    trained = _there(folder, sums, "model.safetensors") or "weights.json" in sums
    state = "done" if trained else "failed" if failed else "unfinished"
    row = {"id": folder.name, "signature": signature, "state": state, "failure": None}
    try:
        _fill(row, folder, sums)
    except (OSError, ValueError) as error:
        row |= {"state": "damaged", "failure": str(error)}
    return row


def _fill(row: dict[str, Any], folder: Path, sums: Mapping[str, str]) -> None:
    def read(name: str) -> Any:
        content = (folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise ValueError(f"{folder / name} is damaged: its checksum differs from the one in {SUMS}")
        return json.loads(content)

    row |= dict(flatten(read("config.json")))
    for name in sums:
        stem = name.rpartition("/")[2].rpartition("-")[0]
        if name.startswith("measures/"):
            row |= dict(flatten(read(name), stem))
        elif name.startswith("failures/"):
            row[f"{stem}.failure"] = reason_of(read(name))
    if "failure.json" in sums:
        row["failure"] = reason_of(read("failure.json"))
    if "cost.json" in sums:
        row |= dict(flatten(read("cost.json"), "cost"))
    if "scores.json" in sums:
        row |= _scores(read("scores.json"))


def _scores(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"scores.{codes}.{metric}": number["value"]
        for codes in ("mean", "sampled")
        for metric, number in plain.get(codes, {}).get("scores", {}).items()
    }


def _there(folder: Path, sums: Mapping[str, str], name: str) -> bool:
    return name in sums and os.path.exists(f"{folder}/{name}")


def _empty() -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame({"id": [], "signature": []}, schema={"id": pl.String, "signature": pl.String})


def _read(path: Path) -> "pl.DataFrame":
    """The index as it was left; a missing or torn one is an empty one."""
    import polars as pl

    try:
        found = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        return _empty()
    return found if {"id", "signature", "state"} <= set(found.columns) else _empty()


def _joined(kept: "pl.DataFrame", rows: Sequence[Mapping[str, Any]], root: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        parts = [kept, frame(rows)] if kept.height else [frame(rows)]
        return pl.concat(parts, how="diagonal_relaxed").sort("id") if kept.height or rows else _empty()
    except pl.exceptions.PolarsError:  # columns that changed their kind: read all again
        found = (_row(root / run_id, signature) for run_id, signature in _scan(root).items())
        return frame([row for row in found if row is not None]).sort("id")


def _write(path: Path, table: "pl.DataFrame") -> None:
    content = io.BytesIO()
    table.write_parquet(content)  # not to the disk: of a full one polars says that a file is out of specification
    try:
        write_atomically(path, lambda aside: aside.write_bytes(content.getvalue()))
    except PermissionError:
        return  # a store that may only be read is read without an index
    except OSError as error:
        if not is_full(error):
            raise
        path.unlink(missing_ok=True)  # so is one on a full disk; better none than an old one


def frame(rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """Rows as a table; a column whose values are of several kinds is written as JSON text."""
    import polars as pl

    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame([_series(name, [row.get(name) for row in rows]) for name in names]) if rows else _empty()


def _series(name: str, values: list[Any]) -> "pl.Series":
    import polars as pl

    kinds = _kinds(values)
    if kinds <= {int, float, str} and float in kinds and str in kinds:
        values = _each(values, lambda leaf: TEXTS.get(leaf, leaf))
        kinds = _kinds(values)
    if kinds == {int, float}:
        values = _each(values, float)
    try:
        return pl.Series(name, values, dtype=pl.Null if not kinds and not any(values) else None, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        texts = [None if value is None else json.dumps(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)


def _kinds(values: Iterable[Any]) -> set[type]:
    kinds: set[type] = set()
    for value in values:
        if isinstance(value, list):
            kinds |= _kinds(value)
        elif value is not None:
            kinds.add(type(value))
    return kinds


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_each(item, change) for item in value]
    return None if value is None else change(value)
