"""Sequences of frames: which image follows which, the pairs they make, and time cut into segments."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np

from unweave.data.world import MOST_VALUES
from unweave.words import number_of

Sequences = Mapping[str, Sequence[int]]
"""From a sequence's name to the rows of its frames, in the order of time."""


def by_folder(files: Sequence[PurePath]) -> Sequences:
    """Every folder is a sequence, its frames in the natural order of their names: frame2 before frame10."""
    folders: dict[str, list[int]] = {}
    for row, file in enumerate(files):
        folders.setdefault(file.parent.as_posix(), []).append(row)
    if len(folders) > 1 and "." in folders:
        raise ValueError(
            f"{files[folders['.'][0]]} lies beside the folders of the sequences, not in one: move it into one"
        )
    return {name: sorted(rows, key=lambda row: natural(files[row].name)) for name, rows in folders.items()}


def by_axis(n_sequences: int, n_frames: int) -> Sequences:
    """Sequences that lie one after the other."""
    return {f"sequence {s}": range(s * n_frames, (s + 1) * n_frames) for s in range(n_sequences)}


def frames_of(images: np.ndarray) -> tuple[int, np.ndarray]:
    """How many sequences an array holds, and all their frames one after the other.

    (sequence, time, height, width[, channel]), (sequence, time, channel, height, width), or one sequence of images.
    """
    if images.ndim == 5 or (images.ndim == 4 and images.shape[-1] not in (1, 3)):
        return len(images), images.reshape(images.shape[0] * images.shape[1], *images.shape[2:])
    return 1, images


def natural(name: str) -> tuple[tuple[int | float, str], ...]:
    """A key that sorts the numbers in names by their size; the name itself decides between 1 and 01."""
    parts = [part for part in re.split(r"([0-9]+)", name) if part]
    return tuple((int(part), part) if part[0] in "0123456789" else (math.inf, part) for part in parts)


def sequence_pairs(sequences: Sequences, furthest: int = 1) -> np.ndarray:
    """Every frame but the last with the one 1, 2, … ``furthest`` later, or the last: rows, int64 [pair, 2].

    So a pair drawn uniformly has a uniform start and a uniform distance, cut short by the end of its sequence.
    """
    for name, rows in sequences.items():
        if len(rows) < 2:
            raise ValueError(f"{name} has one frame only, and a pair needs two: leave it out, or set sequences=false")
    return np.concatenate([_pairs_within(np.asarray(rows), furthest) for rows in sequences.values()])


def _pairs_within(rows: np.ndarray, furthest: int) -> np.ndarray:
    starts, steps = np.arange(len(rows) - 1)[:, None], np.arange(1, furthest + 1)
    partners = np.minimum(starts + steps, len(rows) - 1)
    return np.stack([rows[np.broadcast_to(starts, partners.shape)], rows[partners]], axis=-1).reshape(-1, 2)


def segments_of(sequences: Sequences, n: int) -> np.ndarray:
    """The segment of every row, int64: each sequence is cut into n parts of equal time, counted on through them all."""
    n_all = n * len(sequences)
    if not 2 <= n_all <= MOST_VALUES:
        raise ValueError(
            f"{number_of(n, 'segment')} in each of {number_of(len(sequences), 'sequence')} make {n_all}; between 2 and"
            f" {MOST_VALUES} tell times apart: change segments"
        )
    found = np.empty(sum(map(len, sequences.values())), dtype=np.int64)
    for place, (name, rows) in enumerate(sequences.items()):
        if len(rows) < n:
            raise ValueError(f"{name} has {len(rows)} frames, fewer than its {n} segments: ask for fewer")
        found[np.asarray(rows)] = place * n + np.arange(len(rows)) * n // len(rows)
    return found
