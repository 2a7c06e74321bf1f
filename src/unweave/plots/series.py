"""Colours and markers for several series side by side: told apart without colour too (Okabe and Ito, 2008)."""

from typing import TYPE_CHECKING, Any

from unweave.plots.style import INK, SMALL

if TYPE_CHECKING:
    import matplotlib.axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b858f", "#1d2733")
MARKERS = ("o", "D", "s", "^", "v", "P", "X", "*")


def series_style(place: int) -> dict[str, Any]:
    """Colour and marker of the n-th series; they repeat after eight."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def legend(axes: "matplotlib.axes.Axes", n_series: int) -> None:
    """Which series is which, below the axes; none for a single one."""
    if n_series < 2:
        return
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.2), "ncols": min(3, n_series)}
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=INK, handletextpad=0.4, columnspacing=1.4, **where)
