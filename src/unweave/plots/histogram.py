"""Histograms: how often each value was found, one outline a series over the same bins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.series import COLOURS, legend
from unweave.plots.style import name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.figure


def histogram(
    series: Mapping[str, ArrayLike],
    title: str = "",
    label: str = "",
    *,
    n_bins: int = 20,
    limits: tuple[float | int, float | int] | None = None,
    as_share: bool = True,
) -> "matplotlib.figure.Figure":
    """Values [run] by series, over ``n_bins`` equal bins from the smallest to the largest value, or within limits."""
    if not series:
        raise ValueError("series is empty: give values by the name of their series")
    found = {name: checked(name, values, "run", finite=False).astype(float) for name, values in series.items()}
    kept = {name: values[np.isfinite(values)] for name, values in found.items()}
    every = np.concatenate(list(kept.values()))
    if not len(every) and limits is None:
        raise ValueError("no value is finite: there is nothing to count")
    low, high = (float(every.min()), float(every.max())) if limits is None else map(float, limits)
    edges = np.linspace(low, high if high > low else low + 1.0, n_bins + 1)
    figure, grid = new_figure(4.8, 3.2 + 0.1 * len(series))
    axes = grid[0, 0]
    for place, (name, values) in enumerate(kept.items()):
        weights = np.full(len(values), 1.0 / max(1, len(values))) if as_share else None
        colour = COLOURS[place % len(COLOURS)]
        axes.hist(np.clip(values, edges[0], edges[-1]), edges, weights=weights, color=colour, alpha=0.25)
        axes.hist(values, edges, weights=weights, color=colour, histtype="step", linewidth=1.4, label=name)
    if limits is not None:
        axes.set_xlim(edges[0], edges[-1])
    name_axes(axes, title, label, "share of runs" if as_share else "runs")
    legend(axes, len(series))
    return figure
