"""A scatter: one number of every run against another, series by series."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.point_names import name_points
from unweave.plots.series import legend, series_style
from unweave.plots.style import LINE, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.figure

MOST_POINTS = 3000
"""Points beyond which they become a picture inside the figure: paths would make the page heavy."""


def scatter(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    *,
    names: Mapping[str, Sequence[str]] | None = None,
) -> "matplotlib.figure.Figure":
    """Points (x [run], y [run]) by series; ``names`` says of every point what it is, shown when it is pointed at."""
    if not series:
        raise ValueError("series is empty: give x and y by the name of their series")
    figure, grid = new_figure(4.8, 3.8 + 0.14 * len(series))
    axes = grid[0, 0]
    total = 0
    for place, (name, (x, y)) in enumerate(series.items()):
        across = checked(f"x of {name}", x, "run", finite=False).astype(float)
        up = checked(f"y of {name}", y, "run", finite=False, run=len(across)).astype(float)
        kept = np.isfinite(across) & np.isfinite(up)
        total += int(kept.sum())
        style = series_style(place)
        drawn = axes.scatter(
            across[kept], up[kept], s=22, c=style["color"], marker=style["marker"], alpha=0.8, linewidths=0, label=name
        )
        drawn.set_rasterized(total > MOST_POINTS)
        if names is not None:
            name_points(drawn, [word for word, known in zip(names[name], kept) if known])
    axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
    name_axes(axes, title, x_label, y_label)
    legend(axes, len(series))
    return figure
