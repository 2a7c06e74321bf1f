"""The index of a store: all configs, measures and scores in one parquet file. Never the truth, always rebuildable.

A run is read again when its list of checksums has changed. The file is written aside and renamed, so that any number
of processes may write it: each leaves a whole one, and what it lacks is read again by the next.
"""

import errno
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.files import write_atomically, write_text
from unweave.runs.folder import RunFolder, signature
from unweave.runs.names import read_plain
from unweave.runs.row import row_of
from unweave.studies.failures import is_full

if TYPE_CHECKING:
    import polars as pl

FILE, SEAL, VERSION = "index.parquet", "index.sha256", 2
"""The table, and the file that says which version wrote it and what its checksum is."""

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
TEXTS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def refresh(root: Path, home: Path, *, rebuild: bool = False) -> "pl.DataFrame":
    """The index brought up to date: one row a run, sorted by id, with its ``signature``."""
    import polars as pl

    known, seen = (_empty() if rebuild else read_index(home)), _scan(root)
    now = pl.DataFrame({"id": list(seen), "signature": list(seen.values())}, schema=_empty().schema)
    kept = known.join(now, on=["id", "signature"], how="semi")
    if kept.height == known.height == now.height:
        return known
    missing = now.join(kept.select("id"), on="id", how="anti")
    rows = [_row(root / run_id, seen[run_id]) for run_id in missing["id"]]
    table = _joined(kept, [row for row in rows if row is not None], root)
    _write(home, table)
    return table


def _scan(root: Path) -> dict[str, str]:
    """Run ids and what their lists of checksums look like, in one pass over the folder."""
    found = {}
    try:
        names = sorted(os.listdir(root))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for name in names:
        if not name.startswith((".", "fleet-")) and name.isprintable() and (now := signature(f"{root}/{name}")):
            found[name] = now
    return found


def _row(folder: Path, now: str) -> dict[str, Any] | None:
    found = row_of(RunFolder(folder))
    return None if found is None else {"id": found["id"], "signature": now} | found


def _empty() -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame({"id": [], "signature": []}, schema={"id": pl.String, "signature": pl.String})


def read_index(home: Path) -> "pl.DataFrame":
    """The index as it was left; one that is missing, torn, edited or of another version is an empty one."""
    import polars as pl

    try:
        content = read_plain(home, FILE)
        if read_plain(home, SEAL).decode() != _seal(content):
            return _empty()
        found = pl.read_parquet(io.BytesIO(content))
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return _empty()
    return found if {"id", "signature", "state"} <= set(found.columns) else _empty()


def _seal(content: bytes) -> str:
    return f"{VERSION} {hashlib.sha256(content).hexdigest()}\n"


def _joined(kept: "pl.DataFrame", rows: Sequence[Mapping[str, Any]], root: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        parts = [kept, frame(rows)] if kept.height else [frame(rows)]
        return pl.concat(parts, how="diagonal_relaxed").sort("id") if kept.height or rows else _empty()
    except pl.exceptions.PolarsError:  # columns that changed their kind: read all again
        found = (_row(root / run_id, now) for run_id, now in _scan(root).items())
        return frame([row for row in found if row is not None]).sort("id")


def _write(home: Path, table: "pl.DataFrame") -> None:
    content = io.BytesIO()
    table.write_parquet(content)  # not to the disk: of a full one polars says that a file is out of specification
    try:
        write_atomically(home / FILE, lambda aside: aside.write_bytes(content.getvalue()))
        write_text(home / SEAL, _seal(content.getvalue()))
    except OSError as error:
        if error.errno in READ_ONLY:
            return  # a store that may only be read is read without an index
        if not is_full(error):
            raise
        (home / FILE).unlink(missing_ok=True)  # so is one on a full disk; better none than an old one


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
