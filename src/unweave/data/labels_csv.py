"""labels.csv: a header, then one row a picture: its file, and a label in every further column."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from unweave.data.cells import as_column
from unweave.files import require_file

FORM = "labels (csv: a header, then file, label, …)"


def read_labels_csv(path: Path, files: Sequence[str]) -> dict[str, np.ndarray]:
    """Column to its labels in the order of ``files``: numbers, or words. Whatever is amiss is refused by its place."""
    try:
        header, rows = csv_rows(require_file(path, FORM))
        _check_header(header, files)
        at = _places(rows, len(header), files)
        ordered = [rows[at[file]] for file in files]
        return {
            name: as_column(
                [cells[column] for _, cells in ordered],
                lambda row, name=name: f"column {name!r} of {files[row]} (line {ordered[row][0]})",  # type: ignore[misc]
            )
            for column, name in enumerate(header[1:], start=1)
        }
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as {FORM}: {error}") from error


def csv_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and every row with its line; blank lines are left out."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is no UTF-8 text (UTF-16, perhaps): save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("it holds zero bytes (UTF-16, perhaps): save it as UTF-8")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}; quotes come in pairs") from error
    if not rows:
        raise ValueError("it is empty")
    return rows[0][1], rows[1:]


def _check_header(header: list[str], files: Sequence[str]) -> None:
    if header[0] in set(files):
        raise ValueError(f"its first line is {','.join(header)[:80]!r}: write a header above it, as in file,age,kind")
    if len(header) < 2:
        hint = "; columns are divided by commas" if ";" in header[0] or "\t" in header[0] else ""
        raise ValueError(f"it has no column of labels beside the file names{hint}")
    if "" in header[1:]:
        raise ValueError(f"column {header.index('', 1) + 1} has no name in the header")
    name, n = Counter(header[1:]).most_common(1)[0]
    if n > 1:
        raise ValueError(f"{n} columns are named {name!r}")


def _places(rows: list[tuple[int, list[str]]], width: int, files: Sequence[str]) -> dict[str, int]:
    """File name to its row."""
    known, at = set(files), dict[str, int]()
    for place, (line, cells) in enumerate(rows):
        if len(cells) != width:
            raise ValueError(f"line {line} has {len(cells)} cells, the header has {width}")
        # ./a.png, and sub\a.png as Windows writes it
        file = cells[0] if cells[0] in known else PurePosixPath(cells[0].replace("\\", "/")).as_posix()
        if file not in known:
            raise ValueError(f"line {line}: {cells[0]!r} names no image here{_nearest(cells[0], files)}")
        if file in at:
            raise ValueError(f"lines {rows[at[file]][0]} and {line} are both of {file}")
        at[file] = place
    missing = [file for file in files if file not in at]
    if missing:
        raise ValueError(f"it has no row for {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else ""))
    return at


def _nearest(cell: str, files: Sequence[str]) -> str:
    """The image that was probably meant: its name without the ending, or in other letters."""
    names = {file: (file.lower(), str(PurePosixPath(file.lower()).with_suffix(""))) for file in files}
    meant = [file for file, either in names.items() if cell.lower() in either]
    return f"; write {meant[0]}" if meant else ""
