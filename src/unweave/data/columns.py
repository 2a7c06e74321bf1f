"""The columns of a table: their names, and the mean and deviation by which a model sees them all on one scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch

from unweave.data.frames import as_frame, is_frame, numbers_of
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Columns:
    """Names, means and deviations, one of each a column. A gap becomes the mean where ``filled``."""

    names: tuple[str, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    filled: bool = False

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return f"{len(self)} column{'s' * (len(self) != 1)}"

    def standardised(self, given: Any) -> Float[Tensor, "row column"]:
        """Rows in the units of the columns, one or many, as the model sees them: (x − mean) / deviation."""
        rows = self._rows(given)
        bad = ~np.isfinite(rows) if not self.filled else np.isinf(rows)
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            raise ValueError(
                f"row {row + 1} of column {self.names[column]!r} is {rows[row, column]}, which is no number"
            )
        scaled = (rows - np.array(self.means)) / np.array(self.deviations)
        return torch.from_numpy(np.nan_to_num(scaled, nan=0.0).astype(np.float32))

    def in_units(self, scaled: Float[Tensor, "*any column"]) -> Float[Tensor, "*any column"]:
        """What the model sees, or makes, in the units of the columns: mean + deviation · x."""
        values = scaled.detach().to("cpu", torch.float64)
        return (
            torch.tensor(self.means, dtype=torch.float64) + torch.tensor(self.deviations, dtype=torch.float64) * values
        )

    def errors_in_units(self, errors: Float[Tensor, "*any column"]) -> Float[Tensor, "*any column"]:
        """Differences between rows in the units of the columns."""
        return torch.tensor(self.deviations, dtype=torch.float64) * errors.detach().to("cpu", torch.float64)

    def _rows(self, given: Any) -> np.ndarray:
        if is_frame(given) and set(self.names) <= set(getattr(given, "index", ())) and not hasattr(given, "columns"):
            given = given[list(self.names)].to_numpy()  # a row of a pandas frame
        elif is_frame(given) and not hasattr(given, "columns") and len(given) == len(self):
            given = given.to_numpy()  # a row without names
        if is_frame(given):
            return self._from_frame(as_frame(given))
        try:
            values = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
            if given is None or np.iscomplexobj(values):
                raise TypeError("real numbers")
            rows = np.atleast_2d(values.astype(np.float64))
        except (TypeError, ValueError) as error:
            told = " ".join(f"{given!r}".split())  # an array goes over lines
            raise ValueError(f"rows are arrays, tensors, lists or data frames of numbers, not {told:.80}") from error
        if rows.ndim != 2 or rows.shape[1] != len(self):
            found = " × ".join(map(str, values.shape)) or "a single number"
            raise ValueError(f"this model takes rows of {self} ({shortened(self.names)}), one or many; given {found}")
        return rows

    def _from_frame(self, frame: Any) -> np.ndarray:
        if missing := [name for name in self.names if name not in frame.columns]:
            raise ValueError(f"this model reads the column {missing[0]!r}; the frame has {shortened(frame.columns)}")
        found = [numbers_of(frame[name]) for name in self.names]
        for name, column in zip(self.names, found):
            if column is None:
                raise ValueError(f"the column {name!r} holds words, and this model was trained on numbers there")
        return np.stack([column for column in found if column is not None], axis=1)


def matching(patterns: Sequence[str], names: Sequence[str], missed: Callable[[str], str]) -> list[str]:
    """The columns that names and patterns such as ``z*`` stand for, each once, in the order they are asked for.

    ``missed`` is the sentence about a pattern that no column fits.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise ValueError(missed(pattern))
        found |= dict.fromkeys(fitting)
    return list(found)


def shortened(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence, however many there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
