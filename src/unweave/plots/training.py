"""Curves over training: one panel for each term of the loss."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.format import short
from unweave.plots.style import ACTIVE, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

LOG_FROM = 8.0
"""A term that begins at this many times its smallest value is drawn on a logarithmic scale."""


def loss_curves(steps: ArrayLike, terms: Mapping[str, ArrayLike], columns: int = 3) -> "matplotlib.figure.Figure":
    """Every term [row] over the steps [row]: each batch in pale, its running mean in full colour."""
    steps = checked("steps", steps, "row")
    if not terms:
        raise ValueError("terms is empty: give at least one term of the loss by name")
    found = {name: checked(name, values, "row", finite=False, row=len(steps)) for name, values in terms.items()}
    columns = min(columns, len(found))
    rows = -(-len(found) // columns)
    figure, axes = new_figure(4.4 if columns == 1 else 3.3 * columns, 2.7 * rows, rows, columns)
    for one, (name, values) in zip(axes.flat, found.items()):
        _curve(one, steps, values.astype(float), name)
    for spare in axes.flat[len(found) :]:
        spare.set_axis_off()
    return figure


def running_mean(values: ArrayLike, reach: int) -> np.ndarray:
    """Mean over the ``2 reach + 1`` neighbours of every value, over fewer near the ends so that nothing is shifted."""
    array = checked("values", values, "row", finite=False).astype(float)
    reaches = np.minimum(reach, np.minimum(np.arange(len(array)), np.arange(len(array))[::-1]))
    return np.array([array[i - r : i + r + 1].mean() for i, r in enumerate(reaches)])


def _curve(axes: "matplotlib.axes.Axes", steps: np.ndarray, values: np.ndarray, name: str) -> None:
    reach = len(values) // 60
    marker = "o" if len(values) == 1 else ""
    if reach:
        axes.plot(steps, values, color=ACTIVE, alpha=0.3, linewidth=0.8)
    axes.plot(steps, running_mean(values, reach), color=ACTIVE, linewidth=1.6, marker=marker)
    known = values[np.isfinite(values)]
    logarithmic = len(known) > 0 and known.min() > 0 and known[0] > LOG_FROM * known.min()
    if logarithmic:
        _logarithmic(axes)
    unit = "KL (nats)" if name == "kl" else _title(name)
    name_axes(axes, _title(name), "step", f"{unit}, log scale" if logarithmic else unit)
    thousands(axes)


def _title(name: str) -> str:
    return "KL" if name == "kl" else name.replace("_", " ")


def _logarithmic(axes: "matplotlib.axes.Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0), numticks=9))
    # plain numbers: quicker to read and, without the formula renderer, to draw
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_minor_locator(NullLocator())


def thousands(axes: "matplotlib.axes.Axes") -> None:
    """Steps with their thousands apart, the first and the last among them, few enough to stand side by side."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    first, last = axes.dataLim.intervalx
    room = (last - first) / 6
    between = [one for one in MaxNLocator(4, integer=True).tick_values(first, last) if first + room < one < last - room]
    axes.set_xticks([first, *between, last] if last > first else [first])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(first - 0.02 * (last - first or 1.0), last + 0.02 * (last - first or 1.0))
