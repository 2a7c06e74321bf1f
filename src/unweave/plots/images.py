"""Pictures in rows and columns: examples, reconstructions, traversals, planes. Every pixel is shown as it is.

A figure is laid out in device pixels, so that one image pixel covers a whole number of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked, checked_names, checked_types, pictures
from unweave.plots.format import short
from unweave.plots.style import COLOURS, DPI, INK, MUTED, NORMAL, SMALL, bare_figure

if TYPE_CHECKING:
    import matplotlib.figure

CELL = 84
"""Least width of one image in device pixels: about half an inch."""


def grid(images: ArrayLike, columns: int = 8) -> "matplotlib.figure.Figure":
    """Images [image, channel, height, width], row after row."""
    array = pictures("images", images, "image")
    if columns < 1:
        raise ValueError(f"columns must be at least 1, given {columns}")
    return _drawn(_folded(array, min(columns, len(array))))[0]


def reconstructions(
    originals: ArrayLike,
    reconstructed: ArrayLike,
    columns: int = 10,
    names: tuple[str, str] = ("original", "reconstructed"),
) -> "matplotlib.figure.Figure":
    """Each original above its reconstruction; both [image, channel, height, width]."""
    first = pictures("originals", originals, "image")
    second = pictures("reconstructed", reconstructed, "image")
    if first.shape != second.shape:
        raise ValueError(f"originals and reconstructed must have one shape, given {first.shape} and {second.shape}")
    columns = min(columns, len(first))
    pairs = np.stack([_folded(first, columns), _folded(second, columns)], axis=1)
    figure, ticks = _drawn(pairs.reshape(-1, *pairs.shape[2:]), left=100)
    for row, y in enumerate(ticks.rows):
        _beside(figure, ticks, y, names[row % 2], "")
    return figure


def named_rows(images: ArrayLike, names: Sequence[str]) -> "matplotlib.figure.Figure":
    """Images [row, column, channel, height, width], each row with its name beside it."""
    array = pictures("images", images, "row column")
    names = checked_names("names", names, len(array))
    figure, ticks = _drawn(array, left=100)
    for y, name in zip(ticks.rows, names):
        _beside(figure, ticks, y, name, "")
    return figure


def traversals(
    images: ArrayLike,
    types: Sequence[str],
    kl: ArrayLike,
    values: ArrayLike,
    latents: Sequence[int] | None = None,
) -> "matplotlib.figure.Figure":
    """One row a latent, one column a value of it: images [latent, step, channel, height, width].

    Rows are drawn in the order given; ``latents`` are their numbers, ``values`` [step] stand along the bottom.
    """
    array = pictures("images", images, "latent step")
    kinds = checked_types(types, len(array))
    kl = checked("kl", kl, "latent", latent=len(array))
    values = checked("values", values, "step", step=array.shape[1])
    names = checked_names("latents", latents, len(array))
    figure, ticks = _drawn(array, left=120, bottom=42)
    for y, name, kind, cost in zip(ticks.rows, names, kinds, kl):
        _beside(figure, ticks, y, f"latent {name}", f"{kind} · {cost:.2f} nats", COLOURS[kind])
    _below(figure, ticks, [short(float(value)) for value in values], "value of the latent, in deviations")
    return figure


def plane(
    images: ArrayLike,
    row_values: ArrayLike | None = None,
    column_values: ArrayLike | None = None,
    row_label: str = "",
    column_label: str = "",
) -> "matplotlib.figure.Figure":
    """Two latents or factors at once: images [row, column, channel, height, width], the first row at the top."""
    array = pictures("images", images, "row column")
    figure, ticks = _drawn(
        array, left=64 if row_values is not None else 0, bottom=42 if column_values is not None else 0
    )
    if row_values is not None:
        for y, value in zip(ticks.rows, checked("row_values", row_values, "row", row=len(array))):
            _beside(figure, ticks, y, short(float(value)), "", MUTED)
        _text(figure, 4, ticks.height / 2, row_label, rotation=90, ha="left", va="center", color=MUTED)
    if column_values is not None:
        found = checked("column_values", column_values, "column", column=array.shape[1])
        _below(figure, ticks, [short(float(value)) for value in found], column_label)
    return figure


@dataclass(frozen=True)
class _Ticks:
    """Where rows and columns have their middle, in device pixels from the top left corner."""

    width: int
    height: int
    left: int
    rows: list[float]
    columns: list[float]
    foot: int


def _drawn(images: np.ndarray, left: int = 0, bottom: int = 0) -> tuple["matplotlib.figure.Figure", _Ticks]:
    """A figure of the mosaic of [row, column, height, width, colour], with margins in points · DPI / 72."""
    left, bottom, pad = (round(margin * DPI / 100) for margin in (left, bottom, 6))
    rows, columns, height, width = images.shape[:4]
    scale, gap = math.ceil(CELL / width), max(1, round(width / 16))
    mosaic = _mosaic(images, gap)
    tall, wide = (scale * size for size in mosaic.shape[:2])
    size = (left + wide + 2 * pad, bottom + tall + 2 * pad)
    figure = bare_figure(size[0] / DPI, size[1] / DPI)
    axes = figure.add_axes(((left + pad) / size[0], (bottom + pad) / size[1], wide / size[0], tall / size[1]))
    axes.imshow(mosaic, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    middles = [
        [pad + start + scale * (place * (cell + gap) + cell / 2) for place in range(n)]
        for start, n, cell in ((0, rows, height), (left, columns, width))
    ]
    return figure, _Ticks(*size, left, middles[0], middles[1], pad + tall)


def _mosaic(images: np.ndarray, gap: int) -> np.ndarray:
    """[row, column, height, width, 3] as one RGBA picture; the gaps are transparent, so any ground shows through."""
    rows, columns, height, width = images.shape[:4]
    opaque = np.concatenate([images, np.where(np.isnan(images[..., :1]), 0.0, 1.0)], axis=-1)
    padded = np.pad(np.nan_to_num(opaque), ((0, 0), (0, 0), (0, gap), (0, gap), (0, 0)))
    flat = padded.transpose(0, 2, 1, 3, 4).reshape(rows * (height + gap), columns * (width + gap), 4)
    return (255.0 * flat[:-gap, :-gap]).round().astype(np.uint8)


def _folded(images: np.ndarray, columns: int) -> np.ndarray:
    """[image, …] as [row, column, …]; places left over are nan, which the mosaic leaves empty."""
    rows = -(-len(images) // columns)
    empty = np.full((rows * columns - len(images), *images.shape[1:]), np.nan)
    return np.concatenate([images, empty]).reshape(rows, columns, *images.shape[1:])


def _beside(
    figure: "matplotlib.figure.Figure", ticks: _Ticks, y: float | int, first: str, second: str, colour: str = INK
) -> None:
    x, shift = ticks.left - 2, (8 * DPI / 100 if second else 0)
    weight = "bold" if second else "normal"
    _text(figure, x, y - shift, first, ha="right", va="center", color=colour, fontsize=NORMAL, fontweight=weight)
    if second:
        _text(figure, x, y + shift, second, ha="right", va="center", color=MUTED)


def _below(figure: "matplotlib.figure.Figure", ticks: _Ticks, values: Sequence[str], label: str) -> None:
    line = 13 * DPI / 100
    for x, value in zip(ticks.columns, values):
        _text(figure, x, ticks.foot + 0.8 * line, value, ha="center", va="center", color=MUTED)
    middle = (ticks.columns[0] + ticks.columns[-1]) / 2
    _text(figure, middle, ticks.foot + 2.2 * line, label, ha="center", va="center", color=MUTED)


def _text(figure: "matplotlib.figure.Figure", x: float | int, y: float | int, words: str, **how: Any) -> None:
    width, height = figure.get_size_inches() * DPI
    figure.text(x / width, 1 - y / height, words, parse_math=False, **{"fontsize": SMALL} | how)
