"""Data frames: csv, tsv and parquet files, and those of polars and pandas, as polars has them."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from unweave.files import require_file

GAPS = ("NA", "N/A", "NaN", "nan", "null")
"""Cells of a csv file that stand for no value, beside empty ones."""
SUFFIXES = (".csv", ".tsv", ".parquet")
UNNAMED = ("", "__index_level_0__")
"""What the first column is called where it holds the names of rows: the index of pandas, or what R writes."""


def is_frame(given: Any) -> bool:
    """Whether this is a data frame or a column of one, of polars or pandas."""
    ours = type(given).__module__.partition(".")[0] in ("polars", "pandas")
    return ours and (hasattr(given, "to_numpy") or _is_lazy(given))


def as_frame(given: Any) -> Any:
    """A polars or pandas frame as one of polars; the index of pandas is left out."""
    import polars as pl

    if _is_lazy(given):
        given = given.collect()
    if not hasattr(given, "columns"):
        given = given.to_frame()
    names = [str(name) for name in given.columns]
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"the frame has several columns named {twice[0]!r}: give each a name of its own")
    if isinstance(given, pl.DataFrame):
        return given
    return pl.DataFrame({name: _of_pandas(given.iloc[:, place]) for place, name in enumerate(names)})


def read_frame(path: Path, *, gaps: tuple[str, ...] = ()) -> Any:
    """The frame in a csv, tsv or parquet file without the names of its rows; ``gaps`` are words for no value."""
    import polars as pl

    kind = path.suffix.lower()
    if require_file(path, "a csv or parquet file").stat().st_size == 0:
        raise ValueError(f"{path} is empty: it holds no bytes at all")
    separator = "\t" if kind == ".tsv" else ","
    if kind != ".parquet":
        _check_text(path, separator)
    try:
        if kind == ".parquet":
            frame = pl.read_parquet(path)
        else:
            frame = pl.read_csv(path, infer_schema_length=None, separator=separator, null_values=list(gaps) or None)
    except (Exception, pl.exceptions.PanicException) as error:  # a panic is no Exception; its words are for nobody
        panic = isinstance(error, pl.exceptions.PanicException)
        reason = "it is damaged" if panic else (str(error).splitlines() or [type(error).__name__])[0]
        reason = (kind != ".parquet" and _longer_line(path, separator)) or reason
        raise ValueError(f"{path} cannot be read as {kind[1:]}: {reason}") from error
    return frame.drop([name for name in frame.columns if name in UNNAMED]) if frame.width > 1 else frame


def has_row_names(path: Path) -> bool:
    """Whether a csv, tsv or parquet file has a column of names of rows, which is not read."""
    import polars as pl

    if path.suffix.lower() == ".parquet":
        return len(names := list(pl.read_parquet_schema(path))) > 1 and not {*UNNAMED}.isdisjoint(names)
    with path.open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","), [])
    return len(names) > 1 and names[0].strip() in UNNAMED


def numbers_of(series: Any) -> np.ndarray | None:
    """A column as float64, NaN where it has gaps; None where it holds words, dates or lists."""
    import polars as pl

    kind = series.dtype
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return np.array(series.cast(pl.Float64).to_numpy(), dtype=np.float64)
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        return None
    cells = series.cast(pl.String).str.strip_chars()
    empty = (cells.is_null() | (cells == "").fill_null(value=True)).sum()
    tried = cells.cast(pl.Float64, strict=False)
    return np.array(tried.to_numpy(), dtype=np.float64) if tried.null_count() == empty else None


def _check_text(path: Path, separator: str) -> None:
    """Refuse what polars would read as other columns than there are."""
    with path.open("rb") as file:
        begin = file.read(1 << 20)
    first = begin.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in first:
        raise ValueError(f"{path} is no UTF-8 text (UTF-16, perhaps): save it as UTF-8")
    _check_encoding(path)
    head = first.decode(errors="replace").rstrip("\r")
    for mark, words in {";": "semicolons", "\t": "tabs", ",": "commas"}.items():
        if mark in head and separator not in head:
            wanted = "tabs" if separator == "\t" else "commas (tabs in a .tsv file)"
            raise ValueError(f"{path}: the names of its columns are divided by {words}: save it with {wanted}")
    names = next(csv.reader([head], delimiter=separator), [])
    if _are_values(names):
        raise ValueError(f"{path} begins with numbers ({head[:40]}): its first line must name the columns")
    if nameless := [place for place, name in enumerate(names[1:], start=2) if not name.strip()]:
        raise ValueError(f"{path}: column {nameless[0]} has no name: give it one, or take the column out")
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{path} has several columns named {twice[0]!r}: give each a name of its own")


def _check_encoding(path: Path) -> None:
    """Refuse other encodings: polars puts question marks for what it does not understand."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            while file.read(1 << 20):
                pass
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no UTF-8 text (Latin-1, perhaps): save it as UTF-8") from error


def _are_values(names: list[str]) -> bool:
    """Whether a first line holds numbers, and not names that are numbers in turn: 0, 1, 2 or 2019, 2020, 2021."""
    try:
        numbers = np.array(names, dtype=np.float64)
    except ValueError:
        return False
    return len(numbers) > 1 and not (np.diff(numbers) == 1).all()


def _longer_line(path: Path, separator: str) -> str:
    """The first line with more cells than the header, in words."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file, delimiter=separator)
        wide = len(next(lines, []))
        for cells in lines:
            if len(cells) > wide:
                return f"line {lines.line_num} has {len(cells)} cells, and the header {wide}"
    return ""


def _of_pandas(series: Any) -> Any:
    """A column of pandas as polars takes it, without pyarrow."""
    if series.dtype.kind in "biuf" and isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    if str(series.dtype).lower().startswith(("int", "uint", "float", "bool")):  # the kinds of pandas that know gaps
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if series.dtype.kind == "M":
        return series.to_numpy()
    return [None if _is_gap(value) else str(value) for value in series]


def _is_gap(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"


def _is_lazy(given: Any) -> bool:
    return type(given).__name__ == "LazyFrame"
