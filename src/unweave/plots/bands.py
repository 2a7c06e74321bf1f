"""Lines with bands: a mean over seeds and its interval, against a strength or anything ordered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.series import legend, series_style
from unweave.plots.style import name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure


LONG = 10_000
"""Numbers from here on are long on an axis."""


@dataclass(frozen=True)
class Band:
    """A line [point] with its lower and upper ends [point]; ends that are not numbers leave the band open."""

    x: ArrayLike
    middle: ArrayLike
    low: ArrayLike
    high: ArrayLike


def bands(
    panels: Mapping[str, Mapping[str, Band]],
    x_label: str = "",
    y_label: str = "",
    *,
    tick_names: Sequence[str] | None = None,
    logarithmic: bool = False,
    same_height: bool = False,
) -> "matplotlib.figure.Figure":
    """One panel a name, one line a series. ``tick_names`` are words for x = 0, 1, 2, …"""
    if not panels or not all(panels.values()):
        raise ValueError("panels is empty: give at least one line by the name of its series")
    n_series = max(map(len, panels.values()))
    figure, grid = new_figure(4.0 * len(panels) + 0.4, 3.3 + 0.09 * n_series, 1, len(panels))
    order = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for axes, (title, lines) in zip(grid[0], panels.items()):
        for name, band in lines.items():
            _draw(axes, band, name, order.index(name))
        if logarithmic:
            axes.set_xscale("log")
        if tick_names is not None:
            axes.set_xticks(range(len(tick_names)), tick_names)
        elif not logarithmic:
            _few_ticks(axes)
        name_axes(axes, title, x_label, y_label if axes is grid[0, 0] else "")
    if same_height:
        _level(list(grid[0]))
    legend(grid[0, 0], n_series)
    return figure


def _few_ticks(axes: "matplotlib.axes.Axes") -> None:
    """As many ticks as have room: five where numbers are as long as steps of a training, written 100,000."""
    if max(map(abs, axes.get_xlim())) >= LONG:
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")


def _draw(axes: "matplotlib.axes.Axes", band: Band, name: str, place: int) -> None:
    x = checked(f"x of {name}", band.x, "point").astype(float)
    middle, low, high = (
        checked(f"{part} of {name}", getattr(band, part), "point", finite=False, point=len(x)).astype(float)
        for part in ("middle", "low", "high")
    )
    style = series_style(place)
    axes.plot(x, middle, linewidth=1.6, markersize=5, label=name, **style)
    known = np.isfinite(low) & np.isfinite(high)
    axes.fill_between(x[known], low[known], high[known], color=style["color"], alpha=0.16, linewidth=0)


def _level(panels: Sequence["matplotlib.axes.Axes"]) -> None:
    ends = [axes.get_ylim() for axes in panels]
    for axes in panels:
        axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
