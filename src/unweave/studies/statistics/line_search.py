"""A line search over a strength, over-pruned runs discarded (Zietlow, 2022, §4.3.4).

A model with fewer latents in use than the world has factors cannot be disentangled, whatever its scores say: several
factors share a latent. Such runs are counted and left out before strengths are compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.studies.statistics.intervals import Interval, mean_interval


@dataclass(frozen=True)
class Point:
    """One strength: its kept runs' mean score with an interval over seeds, and how many runs were over-pruned."""

    strength: float
    mean: float | None
    interval: Interval | None
    n: int
    n_discarded: int


@dataclass(frozen=True)
class LineSearch:
    """``best`` is the strength with the highest mean among those that kept at least half of their runs."""

    points: tuple[Point, ...]
    best: float | None


def line_search(
    strengths: Sequence[float | int] | np.ndarray,
    scores: Sequence[float | int] | np.ndarray,
    n_active: Sequence[int] | np.ndarray,
    n_needed: int,
) -> LineSearch:
    """The best strength by mean score, over runs with at least ``n_needed`` latents in use."""
    values = np.asarray(strengths, dtype=np.float64)
    found = np.asarray(scores, dtype=np.float64)
    active = np.asarray(n_active)
    if not len(values) == len(found) == len(active):
        given = f"{len(values)}, {len(found)} and {len(active)}"
        raise ValueError(f"every run needs a strength, a score and a count of latents, given {given} of them")
    kept = (active >= n_needed) & np.isfinite(found)
    points = tuple(_point(float(one), found[values == one], kept[values == one]) for one in np.unique(values))
    usable = [point for point in points if point.mean is not None and point.n >= point.n_discarded]
    best = max(usable, key=lambda point: point.mean or 0.0).strength if usable else None
    return LineSearch(points, best)


def _point(strength: float, scores: np.ndarray, kept: np.ndarray) -> Point:
    used = scores[kept]
    interval = mean_interval(used) if len(used) > 1 else None
    return Point(strength, float(used.mean()) if len(used) else None, interval, len(used), int((~kept).sum()))
