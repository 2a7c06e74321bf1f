"""The user's own table: columns of numbers in a csv, tsv, parquet, npz or npy file, with labels if any."""

import hashlib
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from unweave.config import later, noted, text, word
from unweave.data.cells import as_column, packed
from unweave.data.columns import Columns, matching, shortened
from unweave.data.files import Progress, data_folder, keep_arrays, kept_arrays
from unweave.data.frames import SUFFIXES, has_row_names
from unweave.data.image_sources import content_digest
from unweave.data.table_sources import Sheet, read_sheet
from unweave.data.world import Card, Data, World
from unweave.files import require_file
from unweave.words import number_of

LARGEST = 1e300
"""Numbers up to here have a mean and a deviation."""

FILES = (*SUFFIXES, ".npz", ".npy")
Missing = Literal["refuse", "mean", "drop"]


@dataclass(frozen=True)
class Table(World):
    """Any table of numbers, a row an example. Every column is brought to mean 0 and deviation 1 for the model.

    ``columns`` names those to learn from, and ``labels`` those that are known of a row and not learned from; both take
    patterns such as ``z*``. Left out, all columns of numbers are learned from, and words must be labels. ``missing``
    says what becomes of rows with gaps. ``key`` names the array in an npz file.

    ``digest`` is the hash of the file that :meth:`resolve` fills in, so that another table is another run, wherever it
    lies. Names, means and deviations of the columns stay with the run: its weights can be used without the file. The
    table is kept in the data folder as it was read, so that a run still opens when its file has grown or gone.
    """

    name: ClassVar[str] = "table"
    tabular: ClassVar[bool] = True
    path: str = noted("", help="a csv, tsv, parquet, npz or npy file")
    columns: tuple[str, ...] = text((), "columns to learn from, patterns such as z* too; else all of numbers")
    labels: tuple[str, ...] = text((), "columns that are labels, which nothing is learned from; or none")
    missing: Missing = text("refuse", "gaps: refuse them, fill in the column's mean, or drop their rows")
    digest: str = word("", "0123456789abcdef", help="of the contents; filled in by itself")
    key: str | None = later(None, help="the array of an npz file, where it has no usual name")
    called: str = noted("", help="what tables and titles call the data; else the name of the file")
    where: str = noted("", help="the full path; filled in by itself", hidden=True)
    rows: int = noted(0, help="how many; filled in by itself", hidden=True, least=0, most=10**12)
    names: tuple[str, ...] = noted((), help="of the columns; filled in by itself", hidden=True)
    means: tuple[float, ...] = noted((), help="of the columns; filled in by itself", hidden=True, least=-1e300)
    deviations: tuple[float, ...] = noted((), help="of the columns; filled in by itself", hidden=True, above=0)
    label_names: tuple[str, ...] = noted((), help="filled in by itself", hidden=True)

    def card(self) -> Card:
        here = bool(self.path) and self._place().exists()
        known = self if self.names else self._glance() if here else self
        get = "give the path of a csv, tsv, parquet, npz or npy file as path"
        note = "" if known.names else "columns are known once the table has been read"
        title = (self.called or Path(self.path).stem) if self.path else "Your own table"
        labels = known.label_names or ("yours: columns of the table",)
        return Card(title, (len(known.names),), known.rows or None, None, here, get, note, labels, columns=known.names)

    def known_columns(self) -> Columns | None:
        if not len(self.names) == len(self.means) == len(self.deviations):
            raise ValueError("a table's names, means and deviations are filled in by themselves, one of each a column")
        return Columns(self.names, self.means, self.deviations, self.missing == "mean") if self.names else None

    def resolve(self) -> World:
        if self.digest and self.names:
            return self
        return self._resolved(self._read(), self._digest())

    def near(self, folder: Path) -> World:
        """Where the table was, where the path says, or beside the run."""
        beside = folder.absolute().parent / self.path
        places = [place for place in (Path(self.where), Path(self.path).expanduser(), beside) if self.path]
        return replace(self, where=str(next((place for place in places if place.exists()), self.where)))

    def told(self, data: Data) -> str:
        """What was found, in a line."""
        assert data.columns is not None
        labels = f"labels: {', '.join(data.label_names)}" if data.label_names else "no labels"
        still = [name for name, column in zip(data.columns.names, data.store.T) if not bool(column.any())]
        constant = f"; the same in every row: {shortened(still)}" if still else ""
        gaps = {"refuse": "", "mean": "; gaps become their column's mean", "drop": "; rows with gaps left out"}
        rows, place = number_of(len(data), "row"), self._place()
        index = place.suffix.lower() in SUFFIXES and place.exists() and has_row_names(place)
        unnamed = "; not read: the column without a name" if index else ""
        return f"{self.card().title}: {rows} of {data.columns}; {labels}{constant}{gaps[self.missing]}{unnamed}"

    def load(self, progress: Progress | None = None) -> Data:
        digest = self._digest() if self._place().is_file() else ""
        if self.digest and digest != self.digest:
            return self._kept(digest)._as_data(self)
        if self.names and (read := self._read_before()) is not None:
            return read._as_data(self)
        read = self._read()
        known = self if self.names else self._resolved(read, digest)
        keep_arrays(known._copy(), read.arrays())
        return read._as_data(known)

    def _resolved(self, read: "_Read", digest: str) -> "Table":
        means, deviations = read.scale()
        return replace(
            self,
            digest=digest,
            called=self.called or self._file().stem,
            where=str(self._file().absolute()),
            rows=len(read.values),
            names=read.names,
            means=tuple(means.tolist()),
            deviations=tuple(deviations.tolist()),
            label_names=read.label_names,
        )

    def _digest(self) -> str:
        return content_digest([self._file()], self._file())

    def _glance(self) -> "Table":
        """The same for a card, which refuses nothing."""
        try:
            return self._resolved(self._read(), self._digest())
        except (ValueError, OSError):
            return self

    def _place(self) -> Path:
        given = Path(self.path).expanduser()
        return Path(self.where) if self.where and (Path(self.where).exists() or not given.exists()) else given

    def _file(self) -> Path:
        path = self._place()
        if not self.path or not path.exists():
            raise FileNotFoundError(f"table needs the path of a file; {self.path!r} is not there")
        require_file(path, "a csv, tsv, parquet, npz or npy file of numbers")
        if path.suffix.lower() not in FILES:
            raise ValueError(f"{path} is none of a {', '.join(FILES[:-1])} or {FILES[-1]} file")
        return path

    def _read(self) -> "_Read":
        path = self._file()
        sheet = read_sheet(path, self.key)
        labels = self._label_names(sheet)
        names = self._column_names(sheet, labels)
        values = np.stack([sheet.numbers[name] for name in names], axis=1)
        _refuse_infinite(values, names, path)
        known = {name: sheet.cells(name) for name in labels}
        keep = self._without_gaps(values, names, known, path)
        read = _Read(names, values[keep], {name: _as_label(name, cells[keep], path) for name, cells in known.items()})
        if len(read.values) < 2:
            rows = "one row" if len(read.values) else "no row"
            raise ValueError(f"{path} has {rows} to learn from, and a model learns how rows differ: give several")
        if (read.values == read.values[0]).all():
            raise ValueError(f"{path}: all rows are the same, and a model learns how rows differ: choose other columns")
        return read

    def _label_names(self, sheet: Sheet) -> tuple[str, ...]:
        if self.labels == ("none",):
            return ()
        return _matching(self.labels, sheet, "labels") if self.labels else sheet.labels

    def _column_names(self, sheet: Sheet, labels: Sequence[str]) -> tuple[str, ...]:
        """The columns to learn from; words among them are refused by name."""
        chosen = _matching(self.columns, sheet, "columns") if self.columns else tuple(sheet.names)
        names = tuple(name for name in chosen if name not in labels and (self.columns or name not in sheet.labels))
        words = [name for name in names if name not in sheet.numbers]
        if words:
            others = ",".join(name for name in names if name in sheet.numbers)
            place = f"{sheet.path}: column {words[0]!r} holds {sheet.kind(words[0])}, and a model learns from numbers"
            if not others:
                raise ValueError(f"{place}; it has no column of numbers among {shortened(names)}")
            raise ValueError(
                f"{place}: take it as a label, {_option('labels', ','.join([*labels, *words]))}, or choose the columns"
                f" to learn from, {_option('columns', others)}"
            )
        if not names:
            raise ValueError(f"{sheet.path} has no column to learn from; it has {shortened(sheet.names) or 'none'}")
        return names

    def _without_gaps(
        self, values: np.ndarray, names: Sequence[str], labels: Mapping[str, np.ndarray], path: Path
    ) -> np.ndarray:
        """The rows that stay; a gap is refused by its place, unless the user has said what to do with it."""
        gaps, unlabelled = np.isnan(values), {name: _is_gap(cells) for name, cells in labels.items()}
        if len(values) and gaps.all(axis=0).any():
            name = names[int(gaps.all(axis=0).argmax())]
            raise ValueError(f"{path}: column {name!r} is empty throughout; choose the others with columns")
        if self.missing == "drop":
            return ~np.any([gaps.any(axis=1), *unlabelled.values()], axis=0)
        if self.missing == "refuse" and gaps.any():
            raise ValueError(f"{path}: {_first_gap(gaps, names)}")
        for name, empty in unlabelled.items():
            if empty.any():
                place = f"{path}: row {int(empty.argmax()) + 1} of the label {name!r}"
                raise ValueError(f"{place} is empty: fill it in, or drop such rows, {_option('missing', 'drop')}")
        return np.ones(len(values), dtype=bool)

    def _copy(self) -> Path:
        ways = repr((self.columns, self.labels, self.missing, self.key))
        return data_folder() / self.name / f"{self.digest[:32]}-{hashlib.sha256(ways.encode()).hexdigest()[:8]}.npz"

    def _read_before(self) -> "_Read | None":
        """The kept copy of a table that is still the same: it is read many times as fast as text."""
        try:
            return _Read.from_arrays(kept_arrays(self._copy())) if self._copy().exists() else None
        except ValueError:
            return None  # it is damaged, and will be written again

    def _kept(self, digest: str) -> "_Read":
        """The table as it was when it was first read, where it was kept."""
        now = f"{self.path} has changed" if digest else f"{self.where or self.path} is not there any more"
        size = number_of(self.rows, "row") if self.rows else "rows"
        if not self._copy().exists():
            raise ValueError(
                f"{now}, and no copy of the {size} that this run was trained on was kept. Its model can still be used"
                " on any rows, with Run.encode and Run.decode; to measure it, bring the old ones back"
            )
        warnings.warn(f"{now}; going on with the {size} that were kept in {self._copy()}", stacklevel=3)
        return _Read.from_arrays(kept_arrays(self._copy()))


@dataclass(frozen=True)
class _Read:
    """The numbers of a table with NaN for gaps, and the labels of its rows."""

    names: tuple[str, ...]
    values: np.ndarray
    labels: dict[str, np.ndarray]

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.labels)

    def scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of every column over its known cells; one that never changes has deviation 1."""
        least, most = np.nanmin(self.values, axis=0), np.nanmax(self.values, axis=0)
        # where all cells are equal, their mean may differ from them by rounding
        means = np.where(least == most, least, np.nanmean(self.values, axis=0))
        with np.errstate(over="ignore", under="ignore"):
            deviations = np.nanstd(self.values, axis=0)
        # squares of numbers beyond 1e±154 are no numbers any more: these are brought to 1 first
        span = np.where(least == most, 1.0, np.nanmax(np.abs(self.values - means), axis=0))
        lost = ~np.isfinite(deviations) | (deviations == 0)
        deviations = np.where(lost, span * np.nanstd(self.values / span - means / span, axis=0), deviations)
        return means, np.where(least == most, 1.0, deviations)

    def arrays(self) -> dict[str, np.ndarray]:
        labels = {f"label_{place}": column for place, column in enumerate(self.labels.values())}
        return {"names": np.array(self.names), "values": self.values, "labels": np.array(self.label_names)} | labels

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> "_Read":
        labels = {str(name): arrays[f"label_{place}"] for place, name in enumerate(arrays["labels"])}
        return _Read(tuple(arrays["names"].tolist()), arrays["values"], labels)

    def _as_data(self, world: Table) -> Data:
        columns = world.known_columns()
        assert columns is not None
        given = replace(columns, filled=True).standardised(self.values)
        labels = None if not self.labels else torch.from_numpy(np.stack([*self.labels.values()], axis=1))
        return Data(given, (len(columns),), "floats", labels=labels, label_names=self.label_names, columns=columns)


def _matching(patterns: Sequence[str], sheet: Sheet, place: str) -> tuple[str, ...]:
    held = shortened(sheet.names)
    told = f"{place}: {sheet.path} has no column"
    return tuple(matching(patterns, sheet.names, lambda pattern: f"{told} {pattern!r}; it has {held}"))


def _option(name: str, value: str) -> str:
    """How an option is said on a command line and in a notebook."""
    short = value if len(value) <= 120 else "…"
    return f'--world.{name} {shlex.quote(short)} (in Python {name}="{short}")'


def _first_gap(gaps: np.ndarray, names: Sequence[str]) -> str:
    (row, column), n = np.argwhere(gaps)[0].tolist(), int(gaps.sum())
    more = f", and {n - 1:,} more cells are" if n > 2 else ", and one more cell is" if n == 2 else ""
    return (
        f"row {row + 1} of column {names[column]!r} is empty{more}: fill in, or drop such rows,"
        f" {_option('missing', 'drop')}, or take the column's mean, {_option('missing', 'mean')}"
    )


def _as_label(name: str, cells: np.ndarray, path: Path) -> np.ndarray:
    return packed(as_column(cells, lambda row: f"{path}: row {row + 1} of the label {name!r}"))


def _is_gap(cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    return np.array([cell is None or not str(cell).strip() for cell in cells], dtype=bool)


def _refuse_infinite(values: np.ndarray, names: Sequence[str], path: Path) -> None:
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0].tolist()
        raise ValueError(f"{path}: row {row + 1} of column {names[column]!r} is {values[row, column]}: no number")
    if (large := np.abs(values) > LARGEST).any():
        row, column = np.argwhere(large)[0].tolist()
        place = f"{path}: row {row + 1} of column {names[column]!r} is {values[row, column]:g}"
        raise ValueError(f"{place}: beyond {LARGEST:g} numbers cannot be averaged; divide the column")
