"""Violins: how the scores of many runs are distributed, group beside group (Hintze & Nelson, 1998)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked_names
from unweave.plots.series import COLOURS
from unweave.plots.style import INK, NORMAL, SURFACE, name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

ENOUGH = 8
"""Runs of a group from which on it has a shape; fewer are points and their median."""

MOST_POINTS = 60
"""Runs of a group up to which every one is drawn besides."""


def violins(
    samples: Sequence[ArrayLike],
    names: Sequence[Any],
    title: str = "",
    label: str = "",
    group_label: str = "",
    *,
    families: Sequence[int] | None = None,
) -> "matplotlib.figure.Figure":
    """One violin a group of values [run], with its median and, where there are few, every value; points below eight.

    ``families`` numbers the groups that share a colour: the strengths of one objective, for example. A group without
    values leaves its place empty.
    """
    names = checked_names("names", names, len(samples))
    if not names:
        raise ValueError("samples is empty: give one list of values a group")
    families = [0] * len(names) if families is None else list(families)
    if len(families) != len(names):
        raise ValueError(f"families must have {len(names)} entries, given {len(families)}")
    slanted = max(map(len, names)) * 0.09 > 0.62
    figure, grid = new_figure(float(np.clip(1.2 + 0.62 * len(names), 3.2, 12.0)), 3.6)
    axes = grid[0, 0]
    for place, (values, family) in enumerate(zip(samples, families)):
        _violin(axes, place, _finite(values), COLOURS[family % len(COLOURS)], names[place])
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(len(names)), names, fontsize=NORMAL, color=INK, parse_math=False, **turned)
    axes.set_xlim(-0.6, len(names) - 0.4)
    name_axes(axes, title, group_label, label)
    return figure


def _violin(axes: "matplotlib.axes.Axes", place: int, values: np.ndarray, colour: str, name: str) -> None:
    if not len(values):
        return
    heights, widths = outline(values) if len(values) >= ENOUGH else (np.zeros(1), np.full(1, 0.5))
    if len(values) >= ENOUGH:
        axes.fill_betweenx(heights, place - 0.38 * widths, place + 0.38 * widths, color=colour, alpha=0.28, linewidth=0)
    if len(values) <= MOST_POINTS:
        spread = spread_out(len(values)) * np.interp(values, heights, widths)
        axes.scatter(place + 0.3 * spread, values, s=11, color=colour, alpha=0.85, linewidths=0, label=name)
    median = [float(np.median(values))]
    axes.scatter(
        [place], median, s=34, color=SURFACE, edgecolors=INK, linewidths=1.1, zorder=3, label=f"{name}, median"
    )


def outline(values: ArrayLike, n_points: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Heights, and the density there as a share of its largest: a Gaussian kernel, cut off at the extremes.

    The width of the kernel is Scott's, n^(−1/5) standard deviations; equal values give a narrow spindle.
    """
    found = np.asarray(values, dtype=np.float64)
    spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
    if spread == 0.0:
        reach = max(abs(float(found[0])), 1.0) * 1e-3
        return np.array([found[0] - reach, found[0], found[0] + reach]), np.array([0.0, 1.0, 0.0])
    heights = np.linspace(found.min(), found.max(), n_points)
    width = spread * len(found) ** -0.2
    # beyond some thousand values the density of their quantiles is the same to the eye
    seen = found if len(found) <= 2000 else np.quantile(found, np.linspace(0, 1, 2000))
    density = np.exp(-0.5 * ((heights[:, None] - seen[None]) / width) ** 2).sum(1)
    return heights, density / density.max()


def spread_out(n: int) -> np.ndarray:
    """Places in [−1, 1] that fill evenly, the same every time: multiples of the golden ratio."""
    found: np.ndarray = (np.arange(1, n + 1) * 0.6180339887498949) % 1.0 * 2.0 - 1.0
    return found


def _finite(values: ArrayLike) -> np.ndarray:
    found = np.asarray(values, dtype=np.float64).reshape(-1)
    return found[np.isfinite(found)]
