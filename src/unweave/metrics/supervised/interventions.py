"""Batches in which one factor is held fixed, drawn from the rows of a table."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from unweave.shapes import Float, Int, Tensor

N_AT_ONCE = 32_768
"""Rows gathered at a time, so that a block of codes stays in the cache and memory stays bounded."""


@dataclass(frozen=True)
class Grouped:
    """A table's rows grouped by the value of every factor that varies: a group is a slice of ``order``."""

    factors: Int[np.ndarray, " moving"]
    """The columns of the factors that vary; the others cannot be held fixed."""
    order: Int[np.ndarray, "moving sample"]
    start: Int[np.ndarray, "moving sample"]
    size: Int[np.ndarray, "moving sample"]
    """Where a row's own group starts, and how many rows it has."""
    anchors: tuple[Int[np.ndarray, " _"], ...]
    """For every moving factor the rows that share their value with another row."""


def grouped(factors: Int[np.ndarray, "sample factor"]) -> Grouped:
    """Group the rows. A factor that takes (nearly) every value once cannot be held fixed and is refused."""
    moving = np.flatnonzero((factors != factors[0]).any(0))
    order = np.argsort(factors[:, moving].T, axis=1, kind="stable")
    starts, sizes, anchors = [], [], []
    for column in moving:
        labels = factors[:, column]
        counts = np.bincount(labels)
        starts.append((np.cumsum(counts) - counts)[labels])
        sizes.append(counts[labels])
        anchors.append(np.flatnonzero(counts[labels] > 1))
        if 2 * len(anchors[-1]) < len(labels):
            raise ValueError(
                f"factors column {column} has {len(np.unique(labels))} values in {len(labels)} rows, too few rows of "
                "one value to hold it fixed; bin the factor or give more rows"
            )
    empty = np.zeros((0, len(factors)), np.int64)
    return Grouped(
        moving, order, np.stack(starts) if starts else empty, np.stack(sizes) if sizes else empty, tuple(anchors)
    )


def fixed_batches(
    table: Grouped, n_batches: int, batch_size: int, generator: np.random.Generator
) -> Iterator[tuple[Int[np.ndarray, " batch"], Int[np.ndarray, "batch sample"]]]:
    """Which factor is fixed, and rows that share one value of it, a block of batches at a time."""
    for n in _blocks(n_batches, batch_size):
        which = generator.integers(len(table.factors), size=n)
        anchor = _anchors(table, which[:, None], 1, generator)
        rows = _companions(table, which[:, None], np.broadcast_to(anchor, (n, batch_size)), generator)
        yield table.factors[which], rows


def fixed_pairs(
    table: Grouped, n_batches: int, batch_size: int, generator: np.random.Generator
) -> Iterator[tuple[Int[np.ndarray, " batch"], Int[np.ndarray, "batch sample"], Int[np.ndarray, "batch sample"]]]:
    """Which factor is shared, and pairs of rows that share its value, each pair its own value."""
    for n in _blocks(n_batches, batch_size):
        which = generator.integers(len(table.factors), size=n)
        first = _anchors(table, which[:, None], batch_size, generator)
        yield table.factors[which], first, _companions(table, which[:, None], first, generator)


def gather(
    table: Float[Tensor, "sample latent"], rows: Int[np.ndarray, "batch row"], kept: list[Tensor] | None = None
) -> Float[Tensor, "batch row latent"]:
    """The drawn rows of the table, on its device; in the memory of the block before where a list keeps it."""
    places = torch.from_numpy(rows.ravel()).to(table.device)
    kept = [] if kept is None else kept
    if not kept or len(kept[0]) < len(places):
        kept[:] = [table.new_empty(len(places), table.shape[1])]
    return torch.index_select(table, 0, places, out=kept[0][: len(places)]).view(*rows.shape, -1)


def _blocks(n_batches: int, batch_size: int) -> Iterator[int]:
    at_once = max(1, N_AT_ONCE // batch_size)
    for start in range(0, n_batches, at_once):
        yield min(at_once, n_batches - start)


def _anchors(
    table: Grouped, which: Int[np.ndarray, "batch 1"], n: int, generator: np.random.Generator
) -> Int[np.ndarray, "batch sample"]:
    """So many random rows, of those that have a companion: values come as often as in the table."""
    uniform = generator.random((len(which), n))
    sizes = np.array([len(anchors) for anchors in table.anchors])
    place = (uniform * sizes[which]).astype(np.int64)
    return np.concatenate(table.anchors).take(place + (np.cumsum(sizes) - sizes)[which])


def _companions(
    table: Grouped, which: np.ndarray, rows: np.ndarray, generator: np.random.Generator
) -> Int[np.ndarray, "batch sample"]:
    """A random row, with replacement, of the same group as each row."""
    # rows of one table after another, which NumPy finds faster than those of two numbers
    place, own = which * table.order.shape[1] + rows, which * table.order.shape[1]
    offset = (generator.random(rows.shape) * table.size.take(place)).astype(np.int64)
    offset += table.start.take(place) + own
    return table.order.take(offset)
