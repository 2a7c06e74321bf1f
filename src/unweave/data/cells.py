"""Cells of other people's tables: numbers keep their order, words are words, and what is neither is refused by place.

A column is one of numbers when every cell is one, as in ``12``, ``-0.5`` or ``1e-3``. It is one of words when none is.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]+")
NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
OTHERWISE = re.compile(r"[+-]?[0-9][0-9.,_'\s]*%?")
"""Numbers as people write them: 1,5 and 1 000. Sorted as words they would lose their order."""

LARGEST = 2**53
"""Up to here every whole number has a float64 of its own."""

Place = Callable[[int], str]
"""From the row of a cell, counted from 0, to words that say where it is."""


def as_column(values: Sequence[object] | np.ndarray, place: Place) -> np.ndarray:
    """A column as int64 or float64 numbers, or as words (str); ValueError names the first cell that is neither."""
    array = values if isinstance(values, np.ndarray) else np.array([str(value) for value in values])
    if array.dtype.kind == "S":
        array = np.array([value.decode(errors="replace") for value in array])
    if array.dtype.kind in "OU":
        return _of_texts([str(value).strip() for value in array], place)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{place(0)}: {array.dtype} is neither a number nor a word")
    return _of_numbers(array, place)


def ranks(words: np.ndarray) -> np.ndarray:
    """The place of every word in the sorted list of all."""
    return np.unique(words, return_inverse=True)[1].reshape(-1).astype(np.int64)


def packed(column: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, others as float32 where that tells them apart, words by their place in the alphabet."""
    if column.dtype.kind == "U":
        return ranks(column)
    if column.dtype.kind == "i":
        return column
    with np.errstate(over="ignore"):
        short = column.astype(np.float32)
    kept = np.isfinite(short).all() and len(np.unique(short)) == len(np.unique(column))
    return short if kept else column


def _of_texts(cells: list[str], place: Place) -> np.ndarray:
    for row, cell in enumerate(cells):
        if not cell:
            raise ValueError(f"{place(row)} is empty: fill it in, or leave the row out")
        if NO_NUMBER.fullmatch(cell):
            raise ValueError(f"{place(row)} is {cell}, which is no number: fill it in, or leave the row out")
    numbers = [NUMBER.fullmatch(cell) is not None for cell in cells]
    if all(numbers):
        whole = all(WHOLE.fullmatch(cell) for cell in cells)
        return _of_numbers(np.array([_number(cell, whole, place, row) for row, cell in enumerate(cells)]), place)
    if any(numbers):
        number, word = numbers.index(True), numbers.index(False)
        raise ValueError(
            f"{place(word)} is the word {cells[word]!r}, but {place(number)} is the number {cells[number]}: the order"
            " of numbers would be lost among words. Write all as numbers, or put a letter before each"
        )
    for row, cell in enumerate(cells):
        if OTHERWISE.fullmatch(cell):
            raise ValueError(f"{place(row)} is {cell!r}: write numbers as 1234.5, or put a letter before what is none")
    return np.array(cells)


def _number(cell: str, whole: bool, place: Place, row: int) -> int | float:
    digits = cell.lstrip("+-0")
    if whole and (len(digits) > 18 or abs(int(cell)) > LARGEST):
        raise _too_large(place(row), cell[:40])
    return int(cell) if whole else float(cell)


def _of_numbers(values: np.ndarray, place: Place) -> np.ndarray:
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{place(row)} is {values[row]}, which is no number: fill it in, or leave the row out")
    if values.dtype.kind in "iu" and len(values) and (int(values.max()) > LARGEST or int(values.min()) < -LARGEST):
        row = int(np.argmax((values > LARGEST) | (values < -LARGEST)))
        raise _too_large(place(row), str(values[row]))
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    numbers = values.astype(np.float64)
    whole = bool((numbers == np.rint(numbers)).all()) and bool((np.abs(numbers) <= LARGEST).all())
    return numbers.astype(np.int64) if whole else numbers


def _too_large(place: str, value: str) -> ValueError:
    return ValueError(f"{place} is {value}: beyond 2**53 numbers are not told from their neighbours. Make them smaller")
