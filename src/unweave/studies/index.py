"""The index of a store: all configs, measures and scores in one parquet file. Never the truth, always rebuildable.

A run is read again when its list of checksums has changed. The file is written aside and renamed, so that any number
of processes may write it: each leaves a whole one, and what it lacks is read again by the next. Whatever was read when,
the table is the one that reading all runs again would give.
"""

import errno
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.files import write_atomically, write_text
from unweave.parquet import read_parquet
from unweave.runs.columns import split_raw
from unweave.runs.folder import RunFolder, signature
from unweave.runs.names import read_plain
from unweave.runs.row import raw_row_of
from unweave.studies.failures import is_full

if TYPE_CHECKING:
    import polars as pl

FILE, SEAL, VERSION = "index.parquet", "index.sha256", 3
"""The table, and the file that says which version wrote it and what its checksum is."""

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
TEXTS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Index:
    """A table with one row a run, and what is to be known when rows are added to it."""

    table: "pl.DataFrame"
    places: dict[str, int] = field(default_factory=dict)
    """Where a column stands at the earliest in a row: tables keep the order of the files."""
    mixed: tuple[str, ...] = ()
    """Columns whose values are of several kinds, so that one row decides how others are written."""


def refresh(root: Path, home: Path, *, rebuild: bool = False) -> "pl.DataFrame":
    """The index brought up to date: one row a run, sorted by id, with its ``signature``."""
    import polars as pl

    known, seen = (Index(_empty()) if rebuild else _read(home)), _scan(root)
    now = pl.DataFrame({"id": list(seen), "signature": list(seen.values())}, schema=_empty().schema)
    kept = known.table.join(now, on=["id", "signature"], how="semi")
    if kept.height == known.table.height == now.height:
        return known.table
    missing = now.join(kept.select("id"), on="id", how="anti")["id"].to_list()
    if known.mixed:
        kept, missing = kept.clear(), list(seen)
    rows = _rows(root, {run_id: seen[run_id] for run_id in missing})
    found = _joined(replace(known, table=kept), rows) or _indexed(_rows(root, seen))
    if kept.height < known.table.height or any(row["state"] != "damaged" for row in rows):
        _write(home, found)
    return found.table


def _rows(root: Path, seen: Mapping[str, str]) -> list[dict[str, Any]]:
    found = (_row(root / run_id, now) for run_id, now in seen.items())
    return [row for row in found if row is not None]


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
    found = raw_row_of(RunFolder(folder))
    return None if found is None else {"id": found["id"], "signature": now} | found


def _empty() -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame({"id": [], "signature": []}, schema={"id": pl.String, "signature": pl.String})


def read_index(home: Path) -> "pl.DataFrame":
    """The index as it was left; one that is missing, torn, edited or of another version is an empty one."""
    return _read(home).table


def index_rows(home: Path) -> list[dict[str, Any]]:
    """The rows of the index as their runs would give them; none where a column would make some of them others."""
    found = _read(home)
    return [] if found.mixed else list(found.table.iter_rows(named=True))


def _read(home: Path) -> Index:
    import polars as pl

    try:
        content = read_plain(home, FILE)
        if read_plain(home, SEAL).decode() != _seal(content):
            return Index(_empty())
        found = read_parquet(content, FILE)
        notes = json.loads(pl.read_parquet_metadata(io.BytesIO(content))["unweave"])
    except (OSError, ValueError, KeyError):
        return Index(_empty())
    known = {"id", "signature", "state"} <= set(found.columns)
    return Index(found, notes["places"], tuple(notes["mixed"])) if known else Index(_empty())


def _seal(content: bytes) -> str:
    return f"{VERSION} {hashlib.sha256(content).hexdigest()}\n"


def _joined(known: Index, rows: Sequence[Mapping[str, Any]]) -> Index | None:
    """The index with more rows; None where they do not fit, because a column is of another kind in them."""
    import polars as pl

    added, kept = _indexed(rows), known.table
    if not kept.height:
        return added
    both = set(kept.columns) & set(added.table.columns)
    kinds = ({kept.schema[name], added.table.schema[name]} - {pl.Null} for name in both)
    if added.mixed or any(len(found) > 1 for found in kinds):
        return None
    places = _earliest(known.places, added.places)
    table = pl.concat([kept, added.table] if rows else [kept], how="diagonal_relaxed").sort("id")
    return Index(_ordered(_without_empty(table), places), places)


def _indexed(rows: Sequence[Mapping[str, Any]]) -> Index:
    if not rows:
        return Index(_empty())
    places: dict[str, int] = {}
    for row in rows:
        places = _earliest(places, {name: place for place, name in enumerate(row)})
    return Index(_ordered(frame(rows).sort("id"), places), places, tuple(_mixed(rows)))


def _earliest(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {**first, **{name: min(place, first.get(name, place)) for name, place in second.items()}}


def _ordered(table: "pl.DataFrame", places: Mapping[str, int]) -> "pl.DataFrame":
    names = sorted(table.columns, key=lambda name: (places.get(name, len(places)), name))
    return picked(table, {name: name for name in names})


def _without_empty(table: "pl.DataFrame") -> "pl.DataFrame":
    """Without what only runs had that have gone, as if it had been read anew."""
    import polars as pl

    gone = [n for n, kind in table.schema.items() if kind != pl.Null and table[n].null_count() == table.height]
    kept = {name: name for name in table.columns if name not in gone or not split_raw(name)}
    return picked(table, kept).with_columns(pl.lit(None).alias(name) for name in gone if name in kept)


def _mixed(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if len(_kinds(values)) > 1 or len({isinstance(value, list) for value in values if value is not None}) > 1:
            yield name


def _write(home: Path, found: Index) -> None:
    import polars as pl

    content = io.BytesIO()
    notes = json.dumps({"places": found.places, "mixed": found.mixed})
    # not to the disk: of a full one polars says that a file is out of specification
    # nor a damaged run: a file that is brought back is noticed without a change of the list
    whole = found.table.filter(pl.col("state") != "damaged") if "state" in found.table.columns else found.table
    whole.write_parquet(content, metadata={"unweave": notes})
    try:
        write_atomically(home / FILE, lambda aside: aside.write_bytes(content.getvalue()))
        write_text(home / SEAL, _seal(content.getvalue()))
    except OSError as error:
        if error.errno in READ_ONLY:
            return  # a store that may only be read is read without an index
        if not is_full(error):
            raise
        (home / FILE).unlink(missing_ok=True)  # so is one on a full disk; better none than an old one


def picked(table: "pl.DataFrame", names: Mapping[str, str]) -> "pl.DataFrame":
    """Some columns under new names, in this order. To ``select`` and ``rename`` a name may be a pattern."""
    import polars as pl

    return pl.DataFrame([table.get_column(name).alias(shown) for name, shown in names.items()])


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
