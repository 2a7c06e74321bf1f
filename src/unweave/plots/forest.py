"""Published beside ours: intervals as lines, our values as dots, published ones as diamonds (a forest plot)."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked, checked_names
from unweave.plots.series import COLOURS
from unweave.plots.style import INK, LINE, MIXED, SMALL, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.figure

WRAPPED = 52
"""Letters of a name before it goes on in a second line."""


def forest(
    ours: ArrayLike, intervals: ArrayLike, published: ArrayLike, names: Sequence[str], title: str = "", label: str = ""
) -> "matplotlib.figure.Figure":
    """One row a comparison: ours [row] with its interval [row, 2] (NaN for none), and the published value [row]."""
    values = checked("ours", ours, "row", finite=False).astype(float)
    ends = checked("intervals", intervals, "row end", finite=False, row=len(values), end=2).astype(float)
    told = checked("published", published, "row", finite=False, row=len(values)).astype(float)
    names = checked_names("names", names, len(values))
    lines = [fill(name, WRAPPED) for name in names]
    figure, grid = new_figure(8.4, 1.1 + 0.2 * sum(2 + line.count("\n") for line in lines) * 0.75)
    axes, places = grid[0, 0], np.arange(len(values))
    axes.hlines(places, ends[:, 0], ends[:, 1], color=COLOURS[0], linewidth=2.2, alpha=0.5)
    axes.scatter(values, places, s=30, color=COLOURS[0], label="ours, 95 % interval", zorder=3)
    axes.scatter(told, places, s=34, marker="D", facecolors="none", edgecolors=MIXED, label="published", zorder=4)
    axes.set_yticks(places, lines, fontsize=SMALL, color=INK, parse_math=False)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
    name_axes(axes, title, label)
    # outside, so that the layout makes room for it however few rows there are
    figure.legend(loc="outside lower right", ncols=2, frameon=False, fontsize=SMALL, labelcolor=INK)
    return figure
