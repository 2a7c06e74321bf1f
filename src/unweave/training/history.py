"""The history of a run: one row of numbers every so many steps."""

import csv
import io
from dataclasses import dataclass, field

import torch

from unweave.runs.folder import RunFolder
from unweave.shapes import Float, Int, Tensor
from unweave.training.step import LATENT_STATISTICS


@dataclass
class History:
    """Rows kept on the training device until they are written."""

    columns: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    rows: list[Float[Tensor, " column"]] = field(default_factory=list)

    def add(self, step: int, columns: list[str], row: Float[Tensor, " column"]) -> None:
        """Append one row."""
        self.columns = columns
        self.steps.append(step)
        self.rows.append(row)

    def values(self) -> Float[Tensor, "row column"]:
        """All rows as one tensor on the CPU."""
        return torch.stack(self.rows).cpu() if self.rows else torch.zeros(0, len(self.columns))

    def column(self, name: str) -> Float[Tensor, " row"]:
        """One quantity over time."""
        if name not in self.columns:
            raise KeyError(f"the history has no column {name!r}; it has {', '.join(self.columns)}")
        return self.values()[:, self.columns.index(name)]

    def latent(self, statistic: str) -> Float[Tensor, "row latent"]:
        """One statistic of every latent over time: one of LATENT_STATISTICS."""
        chosen = [i for i, name in enumerate(self.columns) if name.rpartition("_")[0] == statistic]
        if statistic not in LATENT_STATISTICS or not chosen:
            raise KeyError(f"no latent statistic {statistic!r}; there are {', '.join(LATENT_STATISTICS)}")
        return self.values()[:, chosen]

    def tensors(self) -> dict[str, Tensor]:
        """The history as tensors, for a checkpoint."""
        return {"history.steps": torch.tensor(self.steps, dtype=torch.int64), "history.values": self.values()}


def restored(columns: list[str], steps: Int[Tensor, " row"], values: Float[Tensor, "row column"]) -> History:
    """The inverse of :meth:`History.tensors`."""
    return History(columns, steps.tolist(), list(values.unbind(0)))


def write_history(folder: RunFolder, history: History) -> None:
    """``history.parquet``, or ``history.csv`` where polars is not installed."""
    table = {"step": history.steps} | {n: v.tolist() for n, v in zip(history.columns, history.values().T)}
    try:
        import polars
    except ImportError:
        folder.write("history.csv", _as_csv(table))
        return
    content = io.BytesIO()
    polars.DataFrame(table).write_parquet(content)
    folder.write("history.parquet", content.getvalue())


def read_history(folder: RunFolder) -> History:
    """The history of a finished run, from either format."""
    if folder.has("history.parquet"):
        import polars

        frame = polars.read_parquet(io.BytesIO(folder.read("history.parquet")))
        names, rows = frame.columns, frame.rows()
    else:
        lines = list(csv.reader(io.StringIO(folder.read("history.csv").decode())))
        names, rows = lines[0], [tuple(map(float, line)) for line in lines[1:]]
    values = torch.tensor([row[1:] for row in rows], dtype=torch.float32).reshape(len(rows), len(names) - 1)
    return History(list(names[1:]), [int(row[0]) for row in rows], list(values.unbind(0)))


def _as_csv(table: dict[str, list[float]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values()))
    return text.getvalue()
