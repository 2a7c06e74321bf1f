"""Curves of studies: lines with the spread over seeds, and stacked numbers of active, mixed and passive latents."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from unweave.plots.arrays import TYPES
from unweave.plots.format import short
from unweave.plots.style import COLOURS, INK, SMALL, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.figure

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b858f", "#1d2733")
"""Okabe and Ito's, the strongest first."""

DASHES = ("-", "--", ":", "-.")
FEW = 5
"""Lines whose names find room among them; the names of more stand beside the figure."""


def line_bands(
    lines: Mapping[str, Mapping[float, Sequence[float]]],
    x: str,
    y: str,
    title: str = "",
    *,
    marks: Mapping[str, float] | None = None,
    even: bool = True,
) -> "matplotlib.figure.Figure":
    """One line a name through the means of its values at every x, with a band from the least to the largest value.

    With ``even`` the places on the x-axis are evenly spaced, for strengths that grow by factors. ``marks`` are vertical
    lines by name.
    """
    places = sorted({place for line in lines.values() for place in line})
    where = {place: float(number) for number, place in enumerate(places)} if even else {one: one for one in places}
    figure, axes = new_figure(5.2, 3.2)
    one = axes[0, 0]
    for number, (name, line) in enumerate(lines.items()):
        here = sorted(line)
        at = [where[place] for place in here]
        colour, dash = PALETTE[number % len(PALETTE)], DASHES[number // len(PALETTE) % len(DASHES)]
        middle = [float(np.mean(line[place])) for place in here]
        one.plot(at, middle, color=colour, linestyle=dash, linewidth=1.5, marker="o", markersize=3.5, label=name)
        low, high = ([float(pick(line[place])) for place in here] for pick in (np.min, np.max))
        one.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
    for name, place in (marks or {}).items():
        x_of = where.get(place, place)
        one.axvline(x_of, color=INK, linewidth=1.0, linestyle="--")
        one.annotate(
            name, (x_of, 1.0), (3, -9), xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=SMALL
        )
    if even:
        one.set_xticks(list(where.values()), [short(place) for place in places])
    look = {"frameon": False, "fontsize": SMALL, "labelcolor": INK}
    if len(lines) > FEW:
        figure.legend(loc="outside right upper", **look)
    else:
        one.legend(loc="best", **look)
    name_axes(one, title, x, y)
    return figure


def stacked_types(
    places: Sequence[float], counts: Mapping[str, Sequence[float]], *, x: str, title: str = ""
) -> "matplotlib.figure.Figure":
    """A bar a place, divided into its mean numbers of active, mixed and passive latents."""
    figure, axes = new_figure(max(5.2, 0.5 * len(places) + 1.6), 3.2)
    one, at = axes[0, 0], np.arange(len(places))
    below = np.zeros(len(places))
    for kind in TYPES:
        heights = np.asarray(counts[kind], dtype=float)
        one.bar(at, heights, 0.7, bottom=below, color=COLOURS[kind], label=kind)
        below += heights
    one.set_xticks(at, [short(place) for place in places])
    figure.legend(loc="outside lower right", ncols=3, frameon=False, fontsize=SMALL, labelcolor=INK)
    name_axes(one, title, x, "latents")
    return figure
