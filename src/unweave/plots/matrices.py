"""Matrices and their margins: mutual information, importances, correlations, similarities; bars with intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked, checked_names
from unweave.plots.format import number
from unweave.plots.style import ACTIVE, INK, LINE, MUTED, NORMAL, SMALL, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

MOST_WRITTEN = 260
"""Cells up to which every value is written into its cell."""

ON_LIGHT, ON_DARK = "#1a2430", "#ffffff"
EMPTY = "#eceff1"


def heat_map(
    matrix: ArrayLike,
    row_names: Sequence[Any] | None = None,
    column_names: Sequence[Any] | None = None,
    title: str = "",
    value_format: str = ".2f",
    *,
    limits: tuple[float | int, float | int] | None = None,
    diverging: bool = False,
    splits: tuple[Sequence[int], Sequence[int]] = ((), ()),
    row_label: str = "",
    column_label: str = "",
) -> "matplotlib.figure.Figure":
    """A matrix [row, column] as colours, with its values written in where there is room.

    ``splits`` are rows and columns before which a line is drawn: where an encoder ends and a decoder begins, for
    example. Values that are not numbers stay grey. A diverging map is centred on 0.
    """
    array = checked("matrix", matrix, "row column", finite=False).astype(float)
    rows = checked_names("row_names", row_names, array.shape[0])
    columns = checked_names("column_names", column_names, array.shape[1])
    low, high = _limits(array, limits, diverging)
    figure, axes = _map_axes(array.shape, rows, columns)
    drawn = axes.imshow(np.ma.masked_invalid(array), cmap=_colours(diverging), vmin=low, vmax=high, aspect="equal")
    if array.size <= MOST_WRITTEN:
        _write_values(axes, array, drawn, value_format)
    _draw_splits(axes, array.shape, splits)
    name_axes(axes, title, column_label, row_label)
    _colour_bar(figure, axes, drawn)
    layout = figure.get_layout_engine()
    assert layout is not None
    for _ in range(2):  # square cells and slanted names depend on each other: one pass of the layout cuts names off
        layout.execute(figure)
    return figure


def bars(
    values: ArrayLike,
    names: Sequence[Any],
    intervals: ArrayLike | None = None,
    title: str = "",
    label: str = "",
    colours: Sequence[str] | None = None,
) -> "matplotlib.figure.Figure":
    """One bar a name, with an interval [bar, 2] from low to high where one is given."""
    values = checked("values", values, "bar")
    names = checked_names("names", names, len(values))
    figure, grid = new_figure(4.6, 0.85 + 0.3 * len(values))
    axes, places = grid[0, 0], np.arange(len(values))
    axes.barh(places, values, height=0.62, color=colours or ACTIVE)
    ends = np.maximum(values, 0.0)
    if intervals is not None:
        ends = np.maximum(ends, _draw_intervals(axes, values, intervals))
    for place, value, end in zip(places, values, ends):
        axes.annotate(
            number(float(value)),
            (end, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=INK,
        )
    axes.set_yticks(places, names, fontsize=NORMAL, color=INK, parse_math=False)
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
    axes.spines["bottom"].set_visible(False)
    name_axes(axes, title, label)
    return figure


def _limits(array: np.ndarray, limits: tuple[float | int, float | int] | None, diverging: bool) -> tuple[float, float]:
    if limits is not None:
        if not limits[0] < limits[1]:
            raise ValueError(f"limits must be (low, high) with low below high, given {limits}")
        return float(limits[0]), float(limits[1])
    known = array[np.isfinite(array)]
    if not known.size:
        return 0.0, 1.0
    if diverging:
        # 1 for correlations and everything smaller; otherwise as far as the values go
        reach = max(float(np.abs(known).max()), 1e-12)
        return -reach, reach
    low, high = min(0.0, float(known.min())), float(known.max())
    return low, high if high > low else low + 1.0


def _map_axes(
    shape: tuple[int, ...], rows: list[str], columns: list[str]
) -> tuple["matplotlib.figure.Figure", "matplotlib.axes.Axes"]:
    cell = float(np.clip(6.0 / max(shape), 0.12, 0.46))
    widest = max(map(len, rows))
    slanted = max(map(len, columns)) * 0.085 > cell
    tall = 0.085 * max(map(len, columns)) * 0.75 if slanted else 0.2
    figure, grid = new_figure(max(2.6, cell * shape[1] + 0.085 * widest + 1.3), cell * shape[0] + tall + 0.75)
    axes = grid[0, 0]
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0)
    axes.set_yticks(*_thinned(rows, cell), color=INK, parse_math=False)
    turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(*_thinned(columns, cell), color=INK, parse_math=False, **turned)
    return figure, axes


def _thinned(names: list[str], cell: float) -> tuple[list[int], list[str]]:
    """Every name where cells are tall enough for text, else every second, third, …"""
    stride = int(np.ceil(0.16 / cell))
    return list(range(0, len(names), stride)), names[::stride]


def _colours(diverging: bool) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    anchors = (
        ["#8c3b00", "#e8905a", "#f7f7f5", "#5ba3cf", "#08457e"] if diverging else ["#f5f8fa", "#5ba3cf", "#08305c"]
    )
    return LinearSegmentedColormap.from_list("unweave", anchors).with_extremes(bad=EMPTY)


def _write_values(axes: "matplotlib.axes.Axes", array: np.ndarray, drawn: Any, value_format: str) -> None:
    size = SMALL if max(array.shape) <= 13 else 6.5
    for (row, column), value in np.ndenumerate(array):
        red, green, blue, _ = drawn.cmap(drawn.norm(value)) if np.isfinite(value) else (1.0, 1.0, 1.0, 1.0)
        # relative luminance, without its gamma: enough to choose between black and white
        dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
        words = format(value, value_format).replace("-", "−") if np.isfinite(value) else "–"
        written = axes.text(column, row, words, ha="center", va="center", fontsize=size)
        written.set(color=ON_DARK if dark else ON_LIGHT, in_layout=False)  # inside its cell: the layout need not ask


def _draw_splits(
    axes: "matplotlib.axes.Axes", shape: tuple[int, ...], splits: tuple[Sequence[int], Sequence[int]]
) -> None:
    for places, size, draw in zip(splits, shape, (axes.axhline, axes.axvline)):
        for place in places:
            if not 0 < place < size:
                raise ValueError(f"a split must lie in 1…{size - 1}, before a row or column, given {place}")
            draw(place - 0.5, color=ON_DARK, linewidth=4.0)
            draw(place - 0.5, color=ON_LIGHT, linewidth=1.6)


def _colour_bar(figure: "matplotlib.figure.Figure", axes: "matplotlib.axes.Axes", drawn: Any) -> None:
    bar = figure.colorbar(drawn, ax=axes, fraction=0.05, pad=0.03, aspect=18)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=SMALL, length=0)


def _draw_intervals(axes: "matplotlib.axes.Axes", values: np.ndarray, intervals: ArrayLike) -> np.ndarray:
    found = checked("intervals", intervals, "bar end", bar=len(values), end=2)
    if (found[:, 0] > values).any() or (found[:, 1] < values).any():
        raise ValueError("every interval must hold its value: low ≤ value ≤ high")
    spread = np.stack([values - found[:, 0], found[:, 1] - values])
    axes.errorbar(values, np.arange(len(values)), xerr=spread, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    return found[:, 1]
