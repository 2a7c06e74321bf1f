"""A pairs file: a header, then one row a pair, two images by their files or by their row numbers from 0."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unweave.data.cells import WHOLE
from unweave.data.labels_csv import csv_rows
from unweave.files import require_file

FORM = "pairs (csv: a header, then two files or two row numbers)"


def read_pairs_csv(path: Path, n_images: int, files: Sequence[str] = ()) -> np.ndarray:
    """Rows that belong together, int64 [pair, 2]; whatever is amiss is refused by its line."""
    try:
        header, rows = csv_rows(require_file(path, FORM))
        known = {file: row for row, file in enumerate(files)}
        _check_header(header, known)
        pairs = [_pair(line, cells, known, n_images) for line, cells in rows]
        if not pairs:
            raise ValueError("it has a header and no pairs")
        return np.array(pairs, dtype=np.int64)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as {FORM}: {error}") from error


def checked_pairs(values: np.ndarray, n_images: int, what: str) -> np.ndarray:
    """An array of pairs of row numbers, int64 [pair, 2], or an error that names the first wrong one."""
    if values.ndim != 2 or values.shape[1] != 2 or not len(values) or values.dtype.kind not in "iu":
        raise ValueError(
            f"{what} is {values.dtype} of the shape {values.shape}; pairs are whole numbers of the shape (pair, 2): the"
            " rows of two images each"
        )
    outside = (values < 0) | (values >= n_images)
    if outside.any():
        pair, place = np.argwhere(outside)[0].tolist()
        raise ValueError(f"{what}: pair {pair} names row {values[pair, place]}, and rows are 0…{n_images - 1}")
    return values.astype(np.int64)


def _check_header(header: list[str], known: dict[str, int]) -> None:
    if any(cell in known or WHOLE.fullmatch(cell) for cell in header):
        raise ValueError(f"its first line is {','.join(header)[:80]!r}: write a header above it, as in first,second")
    if len(header) != 2:
        hint = "; columns are divided by commas" if ";" in header[0] or "\t" in header[0] else ""
        raise ValueError(f"its header has {len(header)} columns, a pair has two{hint}")


def _pair(line: int, cells: list[str], known: dict[str, int], n_images: int) -> tuple[int, int]:
    if len(cells) != 2 or not all(cells):
        raise ValueError(f"line {line} does not name two images: {','.join(cells)[:80]!r}")
    first, second = (_row(line, cell, known, n_images) for cell in cells)
    if first == second:
        raise ValueError(f"line {line} pairs {cells[0]} with itself")
    return first, second


def _row(line: int, cell: str, known: dict[str, int], n_images: int) -> int:
    if cell in known:
        return known[cell]
    if not WHOLE.fullmatch(cell):
        raise ValueError(f"line {line}: {cell!r} names no image here")
    if len(cell) > 18 or not 0 <= int(cell) < n_images:
        raise ValueError(f"line {line}: there is no row {cell[:40]}, rows are 0…{n_images - 1}")
    return int(cell)
