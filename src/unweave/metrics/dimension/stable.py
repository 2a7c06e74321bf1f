"""The stable range of an estimate over numbers of neighbours (Karbauskaitė et al., 2011; Bonheme, 2023, §8.2.4)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stable:
    """The neighbouring values of k over which the estimate hardly changes, and its mean there.

    ``spread`` is (largest − smallest) / mean within the range. ``found`` is false when no two neighbours agree: then
    the range is the pair that comes nearest to it.
    """

    value: float
    neighbours: tuple[int, ...]
    spread: float
    found: bool


def stable_range(neighbours: Sequence[int], estimates: Sequence[float], *, tolerance: float = 0.1) -> Stable:
    """The longest run of k whose estimates differ by at most ``tolerance`` of their mean; of equals, the calmest."""
    if len(neighbours) != len(estimates) or not neighbours:
        raise ValueError(f"one estimate for each k is needed, given {len(estimates)} for {len(neighbours)}")
    count = len(estimates)
    if count == 1:
        return Stable(float(estimates[0]), tuple(neighbours), 0.0, found=False)
    runs = [(first, last) for first in range(count) for last in range(first + 2, count + 1)]
    calm = [run for run in runs if _spread(estimates[slice(*run)]) <= tolerance]
    if calm:
        first, last = max(calm, key=lambda run: (run[1] - run[0], -_spread(estimates[slice(*run)])))
    else:
        first, last = min(
            (run for run in runs if run[1] - run[0] == 2), key=lambda run: _spread(estimates[slice(*run)])
        )
    chosen = estimates[first:last]
    return Stable(sum(chosen) / len(chosen), tuple(neighbours[first:last]), _spread(chosen), bool(calm))


def _spread(estimates: Sequence[float]) -> float:
    if not all(map(math.isfinite, estimates)):
        return math.inf
    mean = sum(estimates) / len(estimates)
    return (max(estimates) - min(estimates)) / mean if mean > 0 else 0.0
