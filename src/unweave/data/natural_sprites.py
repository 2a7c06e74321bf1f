"""Natural Sprites (Klindt et al., 2021): sprites that move and grow as objects in films do.

The published file says where objects were in consecutive frames of YouTube films, and how large. A sprite is drawn at
each place; its shape and its angle are drawn at random and stay within a pair.
"""

import ast
import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from unweave import rng
from unweave.config import check_fields, number
from unweave.data.files import (
    Progress,
    Published,
    cached_array,
    converted,
    data_folder,
    how_to_get,
    place_of,
    reading,
    require,
    verify,
)
from unweave.data.procedural.sprites import SHAPES, render_sprite
from unweave.data.world import Card, Data, World
from unweave.files import digest

PIXELS = 64
OUTLIERS = 0.1
"""The share of pairs, by the area of their first and of their second frame, that the authors leave out as outliers."""

N_ANGLES = 40
N_BINS = {"x": 32, "y": 32, "scale": 6}
LABELS = ("x", "y", "scale", "angle", "shape")
PUBLISHED = Published(
    "downscale_keepaspect.csv", "https://zenodo.org/record/3948069/files/downscale_keepaspect.csv?download=1"
)
"""The record's checksum was not at hand when this was written."""


@dataclass(frozen=True)
class NaturalSprites(World):
    """White sprites on black, two rows a pair. ``discrete`` brings places and sizes to 32, 32 and 6 values.

    ``seed`` decides which shape and angle each pair has. The original draws them anew whenever a pair is seen, and has
    three equal channels; here they are drawn once, and there is one.
    """

    name: ClassVar[str] = "natural_sprites"
    discrete: bool = False
    seed: int = number(0, least=0, most=2**63 - 1, help="decides the shape and the angle of each pair")

    def files(self) -> tuple[Published, ...]:
        return (PUBLISHED,)

    def card(self) -> Card:
        here = place_of(self.name, PUBLISHED).exists()
        note, get = "positions and sizes from films; rendered on first use", how_to_get(self.name, self.files())
        return Card(
            "Natural Sprites", (1, PIXELS, PIXELS), None, None, here, get, note, LABELS, "frames that follow each other"
        )

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        path = require(self.name, PUBLISHED)
        verify(path, PUBLISHED, progress)
        place, about = data_folder() / self.name, digest(path, progress=progress)[:16]
        found = cached_array(place / f"pairs-{about}.npy", lambda: read_transitions(path), progress)
        truth, labels = self._sprites(usual(found))
        cache = place / f"images-{about}-{'discrete' if self.discrete else 'continuous'}-{self.seed}.npy"
        shape = (len(truth), 1, PIXELS, PIXELS)
        images = converted(cache, shape, lambda array: _render(array, truth, progress), progress)
        return Data(
            torch.from_numpy(images),
            shape[1:],
            labels=torch.from_numpy(labels),
            label_names=LABELS,
            pairs=torch.arange(len(truth)).view(-1, 2),
        )

    def _sprites(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x, y and scale on the unit square, angle and shape by number, of every row; and the same as labels."""
        where = np.stack([pairs[..., 1] / PIXELS, pairs[..., 0] / PIXELS, np.sqrt(pairs[..., 2]) / PIXELS], axis=-1)
        drawn = rng.words(self.seed, rng.Purpose.WORLD, 0, len(pairs), 2)
        kinds = ((drawn * torch.tensor([N_ANGLES, len(SHAPES)])) >> 32).numpy()
        kept = np.repeat(kinds, 2, axis=0)
        if not self.discrete:
            truth = np.column_stack([where.reshape(-1, 3), kept])
            return truth, truth.astype(np.float32)
        bins, centres = zip(*(_binned(pairs[..., place], n) for place, n in zip((1, 0, 2), N_BINS.values())))
        x, y, area = (middle[found].reshape(-1) for middle, found in zip(centres, bins))
        truth = np.column_stack([x / PIXELS, y / PIXELS, np.sqrt(area) / PIXELS, kept])
        return truth, np.column_stack([found.reshape(-1) for found in bins] + [kept]).astype(np.int64)


def read_transitions(path: Path) -> np.ndarray:
    """Every object in two consecutive frames, float64 [pair, 2, (y, x, area)], in pixels of a 64×64 window."""
    with reading(path, "the published Natural Sprites (csv: id, cat_id, t_0, …)"), path.open(newline="") as file:
        rows = csv.reader(file)
        if next(rows, [])[:2] != ["id", "cat_id"]:
            raise ValueError("its header does not begin with id, cat_id")
        found = [pair for row in rows for pair in _pairs_of(row, rows.line_num)]
        if not found:
            raise ValueError("it has no object in two consecutive frames")
        return np.array(found, dtype=np.float64)


def usual(pairs: np.ndarray) -> np.ndarray:
    """Pairs whose areas are no outliers, first and second frames each judged by themselves."""
    low, high = np.quantile(pairs[..., 2], [OUTLIERS / 2, 1 - OUTLIERS / 2], axis=0)
    return pairs[((pairs[..., 2] >= low) & (pairs[..., 2] <= high)).all(axis=1)]


def _pairs_of(row: list[str], line: int) -> Iterator[list[Any]]:
    frames = [_windows(cell, line, time) for time, cell in enumerate(row[2:])]
    for first, second in itertools.pairwise(frames):
        yield from ([one, other] for one, other in zip(first, second) if one and other)


def _windows(cell: str, line: int, time: int) -> list[Any]:
    """Where an object is in each window that is cut from a frame; None where it is not in it."""
    try:
        found = ast.literal_eval(cell) if cell else []
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(one is None or _is_place(one) for one in found):
        raise ValueError(f"line {line}, t_{time}: {cell[:40]!r} is no list of (y, x, area) or None")
    return found


def _is_place(given: Any) -> bool:
    numbers = isinstance(given, tuple) and all(isinstance(value, int | float) for value in given)
    return numbers and len(given) == 3 and all(map(math.isfinite, given)) and given[2] > 0


def _binned(values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of the centres of n equal bins, by number, and the centres."""
    edges = np.histogram_bin_edges(values, bins=n)
    centres = edges[:-1] + np.diff(edges) / 2
    # nearest, and the lower of two that are equally near
    return np.searchsorted((centres[1:] + centres[:-1]) / 2, values, side="left"), centres


def _render(array: np.ndarray, truth: np.ndarray, progress: Progress | None) -> None:
    for row, (x, y, scale, angle, shape) in enumerate(truth):
        array[row, 0] = render_sprite(tuple(SHAPES)[int(shape)], x, y, scale, angle * 360 / N_ANGLES, PIXELS)
        if progress and row % 1000 == 0:
            progress("rendering natural sprites", row, len(truth))
