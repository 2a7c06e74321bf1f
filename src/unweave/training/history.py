"""The history of a run: one row of numbers every so many steps."""

import csv
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from unweave.frames import pandas_frame
from unweave.models.optimisers import Tensors
from unweave.parquet import read_parquet
from unweave.runs.folder import RunFolder
from unweave.shapes import Float, Tensor
from unweave.training.engine import LATENT_STATISTICS, Rows
from unweave.words import number_of

if TYPE_CHECKING:
    import polars as pl

PENDING = 256
"""Rows that stay on the device before they are fetched together."""

_WRITING = threading.Lock()
"""Held while numbers become text: Python's threads take turns there, and taking turns costs as much again."""


@dataclass
class History:
    """The table of one run: its columns, the step of each row, and the rows.

    ``history.to_pandas()`` and ``history.to_polars()`` are data frames, and so are ``pd.DataFrame(history)`` and
    ``pl.DataFrame(history)``; going through it gives one row after the other, by name.
    """

    columns: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    rows: Float[Tensor, "row column"] = field(default_factory=lambda: torch.zeros(0, 0))

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[dict[str, float]]:
        for step, row in zip(self.steps, self.rows.tolist()):
            yield {"step": step} | dict(zip(self.columns, row))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The table as Arrow's interface hands it over, to polars and others."""
        return self.to_polars().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        names = f"{', '.join(self.columns[:6])}{', …' if len(self.columns) > 6 else ''}"
        return f"History: {number_of(len(self), 'row')} of {len(self.columns)} columns ({names})"

    def to_polars(self) -> "pl.DataFrame":
        """The table as a polars data frame, the step first."""
        import polars as pl

        return pl.DataFrame(self._by_name())

    def to_pandas(self) -> Any:
        """The table as a pandas data frame, the step as its index; pandas must be installed."""
        return pandas_frame(self._by_name(), "step")

    def _by_name(self) -> dict[str, Any]:
        columns = {name: column.tolist() for name, column in zip(self.columns, self.rows.unbind(1))}
        return {"step": self.steps} | columns

    @property
    def terms(self) -> list[str]:
        """The columns that are not about a single latent: the loss and its parts."""
        return [name for name in self.columns if name.rpartition("_")[0] not in LATENT_STATISTICS]

    def values(self) -> Float[Tensor, "row column"]:
        """All rows as one tensor."""
        return self.rows

    def column(self, name: str) -> Float[Tensor, " row"]:
        """One quantity over time."""
        if name not in self.columns:
            raise KeyError(f"the history has no column {name!r}; it has {', '.join(self.columns)}")
        return self.rows[:, self.columns.index(name)]

    def latent(self, statistic: str) -> Float[Tensor, "row latent"]:
        """One statistic of every latent over time: one of LATENT_STATISTICS."""
        chosen = [i for i, name in enumerate(self.columns) if name.rpartition("_")[0] == statistic]
        if statistic not in LATENT_STATISTICS or not chosen:
            raise KeyError(f"no latent statistic {statistic!r}; there are {', '.join(LATENT_STATISTICS)}")
        return self.rows[:, chosen]


class Recording:
    """The rows of all models that train together, by groups: [row, model, column], fetched from the device rarely."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.steps: list[int] = []
        self.columns: list[list[str]] = []
        self.pending: list[list[Float[Tensor, "model column"]]] = []
        self.fetched: list[list[Float[Tensor, "row model column"]]] = []

    def add(self, step: int, groups: list[Rows]) -> None:
        """Keep what every group recorded in a step."""
        if not self.steps:
            self.pending, self.fetched = [[] for _ in groups], [[] for _ in groups]
        self.steps.append(step)
        self.columns = [rows.columns for rows in groups]
        for pending, rows in zip(self.pending, groups):
            pending.append(rows.values)
        if len(self.pending[0]) >= PENDING:
            self._fetch()

    def of(self, group: int, place: int, before: int | None = None) -> History:
        """The history of one model; with ``before``, of the steps before that one."""
        kept = [row for row, step in enumerate(self.steps) if before is None or step < before]
        if not kept:
            return History(self.columns[group] if self.columns else [])
        with self.turn:
            self._fetch()
        rows = self.fetched[group][0][:, place] if before is None else self.fetched[group][0][kept, place]
        return History(self.columns[group], [self.steps[row] for row in kept], rows)

    def tensors(self) -> Tensors:
        """Everything as tensors, for a checkpoint."""
        self._fetch()
        rows = {_name(group): fetched[0] for group, fetched in enumerate(self.fetched) if fetched}
        return rows | {"history.steps": torch.tensor(self.steps, dtype=torch.int64)}

    def restore(self, tensors: Tensors, columns: list[list[str]]) -> None:
        """The inverse of :meth:`tensors`."""
        self.steps, self.columns = tensors["history.steps"].tolist(), columns
        self.pending = [[] for _ in columns]
        self.fetched = [[tensors[_name(group)]] if self.steps else [] for group in range(len(columns))]

    def _fetch(self) -> None:
        """All rows of a group in one tensor on the CPU."""
        for rows, fetched in zip(self.pending, self.fetched):
            if rows:
                fetched[:] = [torch.cat([*fetched, torch.stack(rows).cpu()])]
                rows.clear()


def write_history(folder: RunFolder, history: History) -> None:
    """``history.parquet``, or ``history.csv`` where polars is not installed."""
    folder.write(*history_file(history))


def history_file(history: History) -> tuple[str, bytes | str]:
    """The name and the content of that file."""
    table = {"step": history.steps} | {n: v.tolist() for n, v in zip(history.columns, history.values().T)}
    try:
        import polars
    except ImportError:
        with _WRITING:
            return "history.csv", _as_csv(table)
    content = io.BytesIO()
    polars.DataFrame(table).write_parquet(content)
    return "history.parquet", content.getvalue()


def read_history(folder: RunFolder) -> History:
    """The history of a finished run, from either format."""
    if folder.has("history.parquet"):
        frame = read_parquet(folder.read("history.parquet"), str(folder.path / "history.parquet"))
        names, rows = frame.columns, frame.rows()
    else:
        lines = list(csv.reader(io.StringIO(folder.read("history.csv").decode())))
        names, rows = lines[0], [tuple(map(float, line)) for line in lines[1:]]
    values = torch.tensor([row[1:] for row in rows], dtype=torch.float32).reshape(len(rows), len(names) - 1)
    return History(list(names[1:]), [int(row[0]) for row in rows], values)


def _name(group: int) -> str:
    return f"group{group}/history"


def _as_csv(table: dict[str, list[Any]]) -> str:
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(table)
    # numbers need no quotes: what csv would look for in each of a million is not there
    return head.getvalue() + "".join(f"{','.join(map(repr, row))}\n" for row in zip(*table.values()))
