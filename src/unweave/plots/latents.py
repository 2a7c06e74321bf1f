"""What every latent does: its KL at the end and over training, its distribution, and the rule that names its type."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import TYPES, checked, checked_names, checked_types
from unweave.plots.style import COLOURS, INK, LINE, MARKERS, MUTED, SMALL, SURFACE, name_axes, new_figure, type_legend
from unweave.plots.training import running_mean, thousands

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

MOST_WRITTEN = 14
"""Latents up to which every bar carries its value."""

NOTHING = 0.1
"""Nats up to which an axis always goes: less is no information."""

MOST_NAMED = 12
"""Lines that are named at their end."""


def kl_bars(kl: ArrayLike, types: Sequence[str]) -> "matplotlib.figure.Figure":
    """KL of every latent [latent], the largest first."""
    kl = checked("kl", kl, "latent")
    kinds = checked_types(types, len(kl))
    order = np.argsort(-kl, kind="stable")
    figure, grid = new_figure(float(np.clip(0.3 * len(kl) + 1.2, 4.4, 14.0)), 2.9)
    axes, places = grid[0, 0], np.arange(len(kl))
    axes.bar(places, kl[order], width=0.68, color=[COLOURS[kinds[latent]] for latent in order])
    if len(kl) <= MOST_WRITTEN:
        for place, value in zip(places, kl[order]):
            axes.annotate(
                f"{value:.2f}",
                (place, value),
                (0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
                color=INK,
            )
    stride = -(-len(kl) // 40)
    axes.set_xticks(places[::stride], [str(latent) for latent in order[::stride]])
    axes.margins(x=0.02, y=0.12)
    # latents that are all switched off look so, and not like tall bars on a scale of millionths
    axes.update_datalim([(0, 0), (0, NOTHING)], updatex=False)
    axes.autoscale_view(scalex=False)
    axes.tick_params(axis="x", length=0)
    name_axes(axes, "KL per latent", "latent, the largest KL first", "KL (nats)")
    type_legend(axes, kinds)
    return figure


def latent_history(
    steps: ArrayLike,
    values: ArrayLike,
    types: Sequence[str],
    title: str = "KL of every latent over training",
    y: str = "KL (nats)",
) -> "matplotlib.figure.Figure":
    """One line a latent: values [row, latent] at steps [row], named at its end; the passive ones together."""
    steps = checked("steps", steps, "row")
    values = checked("values", values, "row latent", finite=False, row=len(steps)).astype(float)
    kinds = checked_types(types, values.shape[1])
    smooth = np.stack([running_mean(line, len(steps) // 60) for line in values.T])
    figure, grid = new_figure(4.4, 2.9)
    axes = grid[0, 0]
    # the passive ones first, so that they lie below
    for latent in sorted(range(len(kinds)), key=lambda one: -TYPES.index(kinds[one])):
        axes.plot(
            steps, smooth[latent], color=COLOURS[kinds[latent]], linewidth=1.5, marker="o" if len(steps) == 1 else ""
        )
    name_axes(axes, title, "step", y)
    thousands(axes)
    _name_lines(axes, float(steps[-1]), smooth[:, -1], kinds)
    return figure


def histograms(
    mean: ArrayLike, sampled: ArrayLike, types: Sequence[str], columns: int = 4, latents: Sequence[int] | None = None
) -> "matplotlib.figure.Figure":
    """Per latent, how mean and sampled codes [sample, latent] are spread, beside the prior; all of one height."""
    mean = checked("mean", mean, "sample latent")
    sampled = checked("sampled", sampled, "sample latent", sample=mean.shape[0], latent=mean.shape[1])
    kinds = checked_types(types, mean.shape[1])
    names = checked_names("latents", latents, mean.shape[1])
    columns = min(columns, len(kinds))
    rows = -(-len(kinds) // columns)
    figure, axes = new_figure(max(3.2, 1.75 * columns), 1.5 * rows + 0.45, rows, columns)
    reach = float(np.clip(np.abs(sampled).max(), 3.2, 6.0))
    for one, name, kind, means, samples in zip(axes.flat, names, kinds, mean.T, sampled.T):
        _histogram(one, means, samples, reach, COLOURS[kind])
        one.set_title(f"latent {name}", loc="left", fontsize=SMALL + 0.5, color=COLOURS[kind], fontweight="bold", pad=3)
    for spare in axes.flat[len(kinds) :]:
        spare.set_axis_off()
    _histogram_legend(figure)
    figure.supxlabel("value of the latent", fontsize=SMALL, color=MUTED)
    # one row of panels is too low for more words
    words = "density, each curve to the same height" if rows > 1 else "density, to one height"
    figure.supylabel(words, fontsize=SMALL, color=MUTED)
    return figure


def variance_scatter(
    mean_variance: ArrayLike, variance_of_variance: ArrayLike, types: Sequence[str], alpha: float | int = 0.1
) -> "matplotlib.figure.Figure":
    """Mean and variance of σ² over examples [latent], with the two regions of the rule (Bonheme and Grzes, 2021).

    Active: both at most α. Passive: the mean within 1 ± α and the variance at most α. Mixed: everything else.
    """
    x = checked("mean_variance", mean_variance, "latent")
    y = checked("variance_of_variance", variance_of_variance, "latent", latent=len(x))
    kinds = checked_types(types, len(x))
    figure, grid = new_figure(4.4, 2.9)
    axes = grid[0, 0]
    top = max(2.2 * alpha, 1.25 * float(y.max()))
    right = max(1.0 + 2 * alpha, 1.05 * float(x.max()))
    axes.set(xlim=(-0.3 * alpha, right), ylim=(-0.06 * top, top))
    axes.grid(visible=True, axis="both", color=LINE, linewidth=0.8)
    for kind, left, width in (("active", 0.0, alpha), ("passive", 1.0 - alpha, 2 * alpha)):
        axes.axvspan(
            left, left + width, 0.06 / 1.06, (alpha / top + 0.06) / 1.06, color=COLOURS[kind], alpha=0.16, linewidth=0
        )
        axes.annotate(
            kind,
            (left + width / 2, alpha),
            (0, 3),
            textcoords="offset points",
            fontsize=SMALL,
            color=COLOURS[kind],
            ha="left" if kind == "active" else "center",
        )
    for kind in TYPES:
        chosen = [latent for latent, one in enumerate(kinds) if one == kind]
        axes.scatter(
            x[chosen],
            y[chosen],
            s=34,
            marker=MARKERS[kind],
            color=COLOURS[kind],
            edgecolors=SURFACE,
            linewidths=0.7,
            zorder=3,
        )
    _name_points(axes, x, y)
    name_axes(axes, "How sure the encoder is", "mean of σ² over examples", "variance of σ² over examples")
    return figure


def _name_lines(axes: "matplotlib.axes.Axes", last: float, ends: np.ndarray, kinds: list[str]) -> None:
    """Names beside the ends of lines, pushed apart where they would overlap."""
    labels = [
        (float(ends[latent]), f"latent {latent}", COLOURS[kind])
        for latent, kind in enumerate(kinds)
        if kind != "passive"
    ]
    labels = sorted(labels, reverse=True)[:MOST_NAMED]
    passive = [float(end) for end, kind in zip(ends, kinds) if kind == "passive"]
    if passive:
        labels.append((float(np.nanmedian(passive)), f"{len(passive)} passive", COLOURS["passive"]))
    low, high = axes.get_ylim()
    # a line of text is about a fifteenth of the axes' height
    heights = _apart([label[0] for label in labels], (high - low) / 15)
    for height, (_, words, colour) in zip(heights, labels):
        axes.annotate(
            words,
            (last, height),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=colour,
            annotation_clip=False,
        )


def _apart(places: list[float], gap: float) -> list[float]:
    """The places in the same order, moved up just enough that neighbours are a gap apart."""
    moved = [0.0] * len(places)
    lowest = -np.inf
    for place in sorted(range(len(places)), key=lambda one: places[one]):
        moved[place] = lowest = max(places[place], lowest + gap)
    return moved


def _histogram(axes: "matplotlib.axes.Axes", mean: np.ndarray, sampled: np.ndarray, reach: float, colour: str) -> None:
    edges = np.linspace(-reach, reach, 49)
    for values, style in (
        (mean, {"color": colour, "alpha": 0.45}),
        (sampled, {"color": INK, "fill": False, "linewidth": 0.9}),
    ):
        counts, _ = np.histogram(values, edges)
        axes.stairs(counts / max(1, counts.max()), edges, **{"fill": True} | style)  # type: ignore[arg-type]
    middle = np.linspace(-reach, reach, 121)
    axes.plot(middle, np.exp(-0.5 * middle**2), color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.set(xlim=(-reach, reach), ylim=(0, 1.08), yticks=[], xticks=[-3, 0, 3])
    axes.set_xticklabels(["−3", "0", "3"])


def _histogram_legend(figure: "matplotlib.figure.Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=MUTED, alpha=0.45),
        Line2D([], [], color=INK, linewidth=0.9),
        Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (3, 2))),
    ]
    figure.legend(
        handles,
        ["mean codes", "sampled codes", "prior"],
        loc="outside upper left",
        ncols=3,
        frameon=False,
        fontsize=SMALL,
        labelcolor=INK,
    )


def _name_points(axes: "matplotlib.axes.Axes", x: np.ndarray, y: np.ndarray) -> None:
    """The numbers of points beside them; points that nearly coincide share one label."""
    scale = np.array([axes.get_xlim()[1], axes.get_ylim()[1]])
    groups: list[list[int]] = []
    for latent in np.lexsort((y, x)):
        near = [
            g for g in groups if np.hypot(*((np.array([x[latent], y[latent]]) - (x[g[0]], y[g[0]])) / scale)) < 0.07
        ]
        near[0].append(int(latent)) if near else groups.append([int(latent)])
    for group in groups:
        shown = sorted(group)[:6]
        words = ", ".join(map(str, shown)) + (" …" if len(group) > 6 else "")
        right, left = float(x[group].max()), float(x[group].min())
        beyond = right > 0.8 * scale[0]
        axes.annotate(
            words,
            (left if beyond else right, float(y[group].mean())),
            (-6 if beyond else 6, 0),
            textcoords="offset points",
            ha="right" if beyond else "left",
            va="center",
            fontsize=SMALL,
            color=INK,
        )
