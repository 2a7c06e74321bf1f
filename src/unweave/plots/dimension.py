"""The search for a number of latents: the way it took, what decided it, and elbow curves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.format import short
from unweave.plots.style import ACTIVE, INK, LINE, MIXED, MUTED, PASSIVE, SMALL, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

ALL_BELOW = 12
"""Values up to which every one gets its own tick."""


@dataclass(frozen=True)
class SearchTable:
    """Every model that was tried, in order, each [visit]: the value, its bracket, the two readings, and the verdict."""

    values: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    first: ArrayLike
    second: ArrayLike
    passes: ArrayLike
    names: tuple[str, str] = ("first", "second")
    over: str = "latents"

    def arrays(self) -> dict[str, np.ndarray]:
        """The columns, checked, all of one length."""
        n = len(np.asarray(self.values))
        columns = ("values", "lower", "upper", "first", "second", "passes")
        return {name: checked(name, getattr(self, name), "visit", visit=n) for name in columns}


@dataclass(frozen=True)
class ElbowTable:
    """Curves [size] by name over numbers of latents [size], and where each has its elbow, if it has one."""

    sizes: ArrayLike
    curves: Mapping[str, ArrayLike]
    elbows: Mapping[str, int]


def search_path(visited: SearchTable, answer: float | int) -> "matplotlib.figure.Figure":
    """The values in the order they were tried, each in the bracket that was open then."""
    from matplotlib.ticker import MaxNLocator

    columns = visited.arrays()
    figure, axes = new_figure(5.2, 3.2)
    one = axes[0, 0]
    order = np.arange(1, len(columns["values"]) + 1)
    low, high = columns["values"].min() / 1.5, columns["values"].max() * 1.5
    for place, below, above in zip(order, columns["lower"], columns["upper"]):
        one.plot([place, place], np.clip([below, above], low, high), color=LINE, linewidth=7, solid_capstyle="butt")
    one.plot(order, columns["values"], color=MUTED, linewidth=1.0)
    _verdicts(one, order, columns["values"], columns["passes"].astype(bool))
    if answer > 0:
        one.axhline(answer, color=INK, linewidth=1.0, linestyle="--")
    _doubling_axis(one, "y", columns["values"])
    one.set_ylim(low, high)
    one.xaxis.set_major_locator(MaxNLocator(integer=True))
    name_axes(one, f"The way to {short(answer)}", "model", visited.over)
    return figure


def criterion(visited: SearchTable, threshold: float | int, answer: float | int) -> "matplotlib.figure.Figure":
    """What decided: the difference against its threshold, and the two readings it comes from."""
    columns = visited.arrays()
    order = np.argsort(columns["values"], kind="stable")
    values, passes = columns["values"][order], columns["passes"][order].astype(bool)
    first, second = columns["first"][order], columns["second"][order]
    figure, axes = new_figure(8.4, 3.2, 1, 2)
    left, right = axes[0]
    left.plot(values, first - second, color=MUTED, linewidth=1.0)
    left.axhline(threshold, color=INK, linewidth=1.0, linestyle=":")
    _verdicts(left, values, first - second, passes)
    for readings, name, colour, marker in zip((first, second), visited.names, (PASSIVE, ACTIVE), ("s", "o")):
        right.plot(values, readings, color=colour, marker=marker, markersize=5, linewidth=1.4, label=name)
    right.legend(frameon=False, fontsize=SMALL, labelcolor=INK)
    for one in (left, right):
        _mark(one, answer)
        _doubling_axis(one, "x", values)
    difference = f"{visited.names[0]} − {visited.names[1]}"
    name_axes(left, difference, visited.over, difference)
    name_axes(right, "Both readings", visited.over, "reading")
    return figure


def elbow_curves(drawn: ElbowTable, answer: float | int | None = None) -> "matplotlib.figure.Figure":
    """One panel a curve; a ring where it bends, a line at the answer of the search."""
    numbers, curves, elbows = checked("sizes", drawn.sizes, "size"), drawn.curves, drawn.elbows
    if not curves:
        raise ValueError("curves is empty: give at least one curve by name")
    figure, axes = new_figure(4.2 * len(curves), 3.2, 1, len(curves))
    for one, (name, values) in zip(axes[0], curves.items()):
        heights = checked(name, values, "size", size=len(numbers))
        one.plot(numbers, heights, color=ACTIVE, marker="o", markersize=4, linewidth=1.4)
        if name in elbows:
            place = numbers.tolist().index(elbows[name])
            ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": MIXED, "markersize": 11}
            one.plot(numbers[place], heights[place], marker="o", linestyle="", markeredgewidth=1.6, **ring)
        if answer is not None:
            _mark(one, answer)
        _doubling_axis(one, "x", numbers)
        name_axes(one, name.capitalize(), "latents", name)
    return figure


def _verdicts(axes: "matplotlib.axes.Axes", x: np.ndarray, y: np.ndarray, passes: np.ndarray) -> None:
    for chosen, colour, marker in ((passes, ACTIVE, "o"), (~passes, MIXED, "D")):
        axes.plot(x[chosen], y[chosen], linestyle="", marker=marker, color=colour, markersize=6, zorder=3)


def _mark(axes: "matplotlib.axes.Axes", answer: float | int) -> None:
    if answer > 0:
        axes.axvline(answer, color=INK, linewidth=1.0, linestyle="--")


def _doubling_axis(axes: "matplotlib.axes.Axes", which: str, values: np.ndarray) -> None:
    """A scale on which doubling is one step, with plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=2)
    axis = axes.xaxis if which == "x" else axes.yaxis
    own = np.unique(values)
    # neighbours closer than a tenth would stand on each other
    few = len(own) <= ALL_BELOW and bool((own[1:] / own[:-1] > 1.1).all())
    axis.set_major_locator(FixedLocator(own.tolist()) if few else LogLocator(2))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(float(value))))
    axis.set_minor_locator(NullLocator())
