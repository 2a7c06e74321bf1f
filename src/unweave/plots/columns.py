"""What a model makes of a table: small panels, one a column, in the units of the columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked, checked_names, checked_types
from unweave.plots.curves import DASHES, PALETTE
from unweave.plots.style import COLOURS, INK, LINE, MUTED, SMALL, new_figure

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

MOST_PANELS = 24
MOST_POINTS = 2000


def column_traversals(
    values: ArrayLike,
    columns: Sequence[str],
    types: Sequence[str],
    steps: ArrayLike,
    latents: Sequence[int] | None = None,
    deviations: ArrayLike | None = None,
) -> "matplotlib.figure.Figure":
    """Per column, a line a latent: values [latent, step, column] as the latent moves along ``steps`` [step].

    Passive latents are grey. Of more than 24 columns those that move the most are drawn. ``deviations`` [column] keep a
    panel at least as high as the column is wide, so that a line looks flat where nothing happens.
    """
    array = checked("values", values, "latent step column")
    kinds = checked_types(types, len(array))
    at = checked("steps", steps, "step", step=array.shape[1])
    names = checked_names("columns", columns, array.shape[2])
    widths = np.ptp(array, axis=(0, 1)) if deviations is None else checked("deviations", deviations, "column")
    figure, axes, chosen = _panels(np.ptp(array, axis=1).max(axis=0) / np.where(widths > 0, widths, 1.0))
    named = checked_names("latents", latents, len(array))
    looks = _looks(kinds)
    for one, column in zip(axes.flat, chosen):
        for line, (colour, dash) in sorted(zip(array[:, :, column], looks), key=lambda pair: pair[1][0] != MUTED):
            one.plot(at, line, color=colour, linestyle=dash, linewidth=0.9 if colour == MUTED else 1.5)
        _spread(one, array[:, :, column], float(widths[column]))
        _title(one, names[column])
    used = [place for place, kind in enumerate(kinds) if kind != "passive"]
    words = [(f"latent {named[place]}", *looks[place]) for place in used[:12]]
    passive = kinds.count("passive")
    _legend(
        figure, words + ([(f"{passive} passive", MUTED, "-")] if passive else []), "value of the latent, in deviations"
    )
    return figure


def column_reconstructions(
    rows: ArrayLike, reconstructed: ArrayLike, columns: Sequence[str]
) -> "matplotlib.figure.Figure":
    """Per column, what it was and what the model makes of it: both [row, column]. Perfect is the diagonal."""
    first = checked("rows", rows, "row column")[:MOST_POINTS]
    second = checked("reconstructed", reconstructed, "row column", column=first.shape[1])[:MOST_POINTS]
    if first.shape != second.shape:
        raise ValueError(f"rows and reconstructed must have one shape, given {first.shape} and {second.shape}")
    names = checked_names("columns", columns, first.shape[1])
    widths = first.std(axis=0)
    errors = np.sqrt(np.square(first - second).mean(axis=0)) / np.where(widths > 0, widths, np.inf)
    figure, axes, chosen = _panels(1.0 / (1e-9 + errors) if len(names) > MOST_PANELS else np.ones(len(names)))
    for one, column in zip(axes.flat, chosen):
        low, high = (float(reach) for reach in (first[:, column].min(), first[:, column].max()))
        one.plot([low, high], [low, high], color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)))
        one.scatter(first[:, column], second[:, column], s=5, color=COLOURS["active"], alpha=0.5, linewidths=0)
        _title(one, names[column])
    _legend(figure, [("perfect", MUTED, (0, (3, 2)))], "across: in the table; upwards: after passing through the code")
    return figure


def _panels(order: np.ndarray) -> tuple["matplotlib.figure.Figure", np.ndarray, list[int]]:
    """A figure with a panel a column; of too many columns those that come first by ``order``, in the table's order."""
    chosen = sorted(np.argsort(-order, kind="stable")[:MOST_PANELS].tolist())
    across = min(len(chosen), 4 if len(chosen) > 3 else 3)
    down = -(-len(chosen) // across)
    figure, axes = new_figure(max(3.6, 1.9 * across), 1.5 * down + 0.55, down, across)
    for spare in axes.flat[len(chosen) :]:
        spare.set_axis_off()
    return figure, axes, chosen


def _looks(kinds: Sequence[str]) -> list[tuple[str, Any]]:
    """Colour and dash of every latent; the passive ones are alike."""
    colours = [colour for colour in PALETTE if colour != COLOURS["passive"]]
    looks: list[tuple[str, Any]] = []
    used = 0
    for kind in kinds:
        dash = DASHES[used // len(colours) % len(DASHES)]
        looks.append((MUTED, "-") if kind == "passive" else (colours[used % len(colours)], dash))
        used += kind != "passive"
    return looks


def _spread(axes: "matplotlib.axes.Axes", values: np.ndarray, width: float | int) -> None:
    middle, half = (values.max() + values.min()) / 2, max(np.ptp(values) / 2, float(width))
    axes.set_ylim(middle - 1.08 * half if half else middle - 1, middle + 1.08 * half if half else middle + 1)
    axes.grid(axis="y", color=LINE, linewidth=0.8)


def _title(axes: "matplotlib.axes.Axes", name: str) -> None:
    words = name if len(name) <= 20 else f"{name[:19]}…"
    axes.set_title(words, loc="left", fontsize=SMALL + 0.5, color=INK, fontweight="bold", pad=3, parse_math=False)


def _legend(figure: "matplotlib.figure.Figure", lines: Sequence[tuple[str, str, Any]], across: str) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linestyle=dash, linewidth=1.5) for _, colour, dash in lines]
    labels = [words for words, _, _ in lines]
    where: dict[str, Any] = {"loc": "outside lower left", "ncols": min(4, len(lines)), "alignment": "left"}
    look: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "title_fontsize": SMALL, "labelcolor": INK}
    legend = figure.legend(handles, labels, title=across, **where, **look)
    legend.get_title().set_color(MUTED)
