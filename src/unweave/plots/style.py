"""One quiet style for every figure: white ground, thin lines, colours that colour-blind readers can tell apart.

Blue, vermilion and grey differ for every common kind of colour blindness (Okabe and Ito, 2008); every type of latent
has its own marker besides, for readers and printers without any colour. Figures are made without
pyplot: nothing global is set.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.plots.arrays import TYPES
from unweave.plots.shown import shown_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.axis
    import matplotlib.figure

INK, MUTED, LINE, SURFACE = "#1d2733", "#5b6773", "#dde2e7", "#fefefe"
ACTIVE, MIXED, PASSIVE = "#0072b2", "#d55e00", "#7b858f"
COLOURS = dict(zip(TYPES, (ACTIVE, MIXED, PASSIVE)))
MARKERS = dict(zip(TYPES, ("o", "D", "s")))

DPI = 160
SMALL, NORMAL, LARGE = 8.5, 9.5, 10.5


def new_figure(
    width: float | int, height: float | int, rows: int = 1, columns: int = 1
) -> tuple["matplotlib.figure.Figure", np.ndarray]:
    """A figure of this size in inches and its styled axes [row, column], on an Agg canvas of its own."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = bare_figure(width, height)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.07))
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        quiet(one)
    return figure, axes


def bare_figure(width: float | int, height: float | int) -> "matplotlib.figure.Figure":
    """A figure without axes."""
    return shown_figure()(figsize=(width, height), dpi=DPI, facecolor=SURFACE)


def quiet(axes: "matplotlib.axes.Axes") -> None:
    """No box, thin lines, small grey numbers."""
    axes.set_facecolor("none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.spines["bottom"].set_linewidth(0.8)
    axes.tick_params(colors=MUTED, labelsize=SMALL, width=0.8, length=3)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


def name_axes(axes: "matplotlib.axes.Axes", title: str = "", x: str = "", y: str = "") -> None:
    """Title and labels; user's words are never read as formulas. Axes that are still free end at round numbers."""
    if axes.get_aspect() == "auto":
        if axes.get_autoscalex_on() and axes.get_xscale() != "log":
            axes.set_xlim(*_ends(axes.xaxis))
        if axes.get_autoscaley_on():
            axes.set_ylim(*_ends(axes.yaxis))
    axes.set_title(title, loc="left", fontsize=LARGE, fontweight="bold", color=INK, pad=8, parse_math=False)
    axes.set_xlabel(x, fontsize=NORMAL, color=MUTED, parse_math=False)
    axes.set_ylabel(y, fontsize=NORMAL, color=MUTED, parse_math=False)


def _ends(axis: "matplotlib.axis.Axis") -> tuple[float, float]:
    """The ticks around an axis's values, so that both of its ends carry a number; as it is where ticks are given."""
    from matplotlib.ticker import FixedLocator, NullLocator

    locator, (first, last) = axis.get_major_locator(), axis.get_view_interval()
    if isinstance(locator, FixedLocator | NullLocator):
        return first, last
    low, high = sorted((first, last))
    logarithmic = axis.get_scale() == "log"
    if min(axis.get_data_interval()) >= 0.0 and not logarithmic:
        low = max(low, 0.0)  # margins make no number negative that never is
    ticks = np.asarray(locator.tick_values(*((low / 10, 10 * high) if logarithmic else (low, high))))
    slack = 1e-9 * (high - low)
    below, above = ticks[ticks <= low + slack], ticks[ticks >= high - slack]
    if not len(below) or not len(above) or below.max() >= above.min():
        return first, last
    ends = float(below.max()), float(above.min())
    return ends if first <= last else ends[::-1]


def type_legend(axes: "matplotlib.axes.Axes", types: Sequence[str]) -> None:
    """Which colour is which type, with how many there are of each, right of the title."""
    from matplotlib.lines import Line2D

    present = [kind for kind in TYPES if kind in types]
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[kind], markersize=6, color=COLOURS[kind]) for kind in present
    ]
    labels = [f"{list(types).count(kind)} {kind}" for kind in present]
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 3, "borderaxespad": 0.3}
    look: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "labelcolor": INK}
    axes.legend(handles, labels, handletextpad=0.2, columnspacing=1.2, **where, **look)
