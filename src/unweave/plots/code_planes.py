"""Planes of codes: where a model of two latents puts a square, restart beside restart (Zietlow, 2022, Figure 3.5)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.arrays import checked
from unweave.plots.style import name_axes, new_figure

if TYPE_CHECKING:
    import matplotlib.figure


def code_planes(
    codes: Mapping[str, ArrayLike], factors: Mapping[str, ArrayLike], labels: tuple[str, str] = ("", "")
) -> "matplotlib.figure.Figure":
    """One panel a name: codes [sample, 2], coloured by factors [sample, 2]: the first from blue to orange, the second
    from light to dark, so that both directions of a turned square can be seen."""
    if not codes:
        raise ValueError("codes is empty: give codes [sample, 2] by the name of their panel")
    figure, grid = new_figure(2.3 * len(codes), 2.6, 1, len(codes))
    for axes, (name, plane) in zip(grid[0], codes.items()):
        points = checked(f"codes of {name}", plane, "sample latent", latent=2)
        truth = checked(f"factors of {name}", factors[name], "sample factor", sample=len(points), factor=2)
        drawn = axes.scatter(points[:, 0], points[:, 1], s=5, c=_colours(truth), linewidths=0)
        drawn.set_rasterized(True)  # a thousand points a panel would make the page heavy
        axes.set_aspect("equal", adjustable="datalim")
        name_axes(axes, name, labels[0], labels[1] if axes is grid[0, 0] else "")
    return figure


def _colours(truth: np.ndarray) -> np.ndarray:
    from matplotlib.colors import to_rgb

    low, high = truth.min(0), truth.max(0)
    share = (truth - low) / np.where(high > low, high - low, 1.0)
    blue, orange = np.array(to_rgb("#0072b2")), np.array(to_rgb("#d55e00"))
    hue = blue + share[:, :1] * (orange - blue)
    # from a tint of the hue to the hue itself
    mixed: np.ndarray = 1.0 - (0.25 + 0.75 * share[:, 1:]) * (1.0 - hue)
    return mixed
