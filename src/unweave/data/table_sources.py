"""Where a user's table comes from: the columns of a csv, tsv, parquet, npz or npy file, each under its name."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unweave.data.files import open_npz, reading
from unweave.data.frames import GAPS, SUFFIXES, numbers_of, read_frame
from unweave.data.image_sources import LABEL_KEYS

TABLE_KEYS = ("table", "features", "x", "X", "data", "x_train", "points", "values")
NAME_KEYS = ("columns", "names", "feature_names")


@dataclass(frozen=True)
class Sheet:
    """A table as it lies in its file: every column, as numbers with NaN for gaps where it holds numbers.

    ``labels`` are those columns that the file itself says are labels.
    """

    path: Path
    columns: dict[str, Any]
    numbers: dict[str, np.ndarray]
    labels: tuple[str, ...] = field(default=())

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def cells(self, name: str) -> np.ndarray:
        """The cells of a column that is a label: numbers, or words with None for gaps."""
        if name in self.numbers:
            return self.numbers[name]
        found = self.columns[name]
        return found if isinstance(found, np.ndarray) else np.array(found.to_list(), dtype=object)

    def kind(self, name: str) -> str:
        """What a column holds that is not one of numbers, with the first cell that is none."""
        cells = self.cells(name)
        others = [place for place, cell in enumerate(cells) if cell is not None and not _is_number(cell)]
        first, row = (cells[others[0]], others[0]) if others else ("", 0)
        if not isinstance(first, str):
            return f"{type(first).__name__}s ({first!s:.40})"
        few = 2 * len(others) < len(cells)
        gaps = f"; cells that stand for no value are empty, or {', '.join(GAPS[:-1])} or {GAPS[-1]}" if few else ""
        return f"words ({first[:40]!r}{f' in row {row + 1}' if row else ''}{gaps})"


def read_sheet(path: Path, key: str | None) -> Sheet:
    """All columns of a file."""
    if path.suffix.lower() in SUFFIXES:
        return _from_frame(path)
    if path.suffix.lower() == ".npy":
        with reading(path, "an array of numbers, row × column (npy)"):
            array = np.load(path, allow_pickle=False)
        return _from_array(path, array, None, {})
    return _from_npz(path, key)


def _from_frame(path: Path) -> Sheet:
    frame = read_frame(path, gaps=GAPS)
    columns = {str(name).strip(): frame[name] for name in frame.columns}
    found = {name: numbers_of(series) for name, series in columns.items()}
    return Sheet(path, columns, {name: values for name, values in found.items() if values is not None})


def _from_npz(path: Path, key: str | None) -> Sheet:
    with open_npz(path, "an npz file of arrays") as file:
        names = list(file)
        if key is not None and key not in names:
            raise ValueError(f"{path} has no array {key!r}; it has {', '.join(names)}")
        flat = [name for name in names if file[name].ndim == 2 and file[name].dtype.kind in "biuf"]
        found = key or next((name for name in TABLE_KEYS if name in flat), flat[0] if len(flat) == 1 else None)
        if found is None:
            raise ValueError(
                f"{path} has no array named like a table ({', '.join(TABLE_KEYS)}), row × column; say which of"
                f' {", ".join(names)} it is, --world.key {names[0]} (in Python key="{names[0]}")'
            )
        titles = next((file[name] for name in NAME_KEYS if name in names and file[name].ndim == 1), None)
        labels = next((name for name in LABEL_KEYS if name in names and name != found), None)
        return _from_array(path, file[found], titles, {} if labels is None else {labels: file[labels]})


def _from_array(path: Path, array: np.ndarray, titles: np.ndarray | None, labels: dict[str, np.ndarray]) -> Sheet:
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} holds {array.dtype} {array.shape}; a table is numbers, row × column")
    if titles is not None and len(set(titles.tolist())) != array.shape[1]:
        raise ValueError(f"{path} has {array.shape[1]} columns and {len(set(titles.tolist()))} different names of them")
    names = [f"x{place}" for place in range(array.shape[1])] if titles is None else [str(name) for name in titles]
    columns: dict[str, Any] = dict(zip(names, array.astype(np.float64).T))
    extra = {name: column for key, values in labels.items() for name, column in _label_columns(path, key, values)}
    for name, column in extra.items():
        if len(column) != len(array):
            raise ValueError(f"{path}: the labels {name} have {len(column)} rows, the table has {len(array)}")
        columns[name if name not in columns else f"label {name}"] = column
    numbers = {name: column.astype(np.float64) for name, column in columns.items() if column.dtype.kind in "biuf"}
    return Sheet(path, columns, numbers, tuple(columns)[len(names) :])


def _label_columns(path: Path, name: str, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if values.ndim == 1:
        return [(name, values)]
    if values.ndim != 2:
        raise ValueError(f"{path}: the labels {name} have the shape {values.shape}; they are row, or row × label")
    return [(f"{name}_{place}", column) for place, column in enumerate(values.T)]


def _is_number(cell: object) -> bool:
    try:
        return isinstance(cell, str) and bool(cell.strip()) and math.isfinite(float(cell))
    except ValueError:
        return False
