"""The elbow of a curve: where it bends most, by its distance to the chord (Satopää et al., 2011, "Kneedle")."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

CLEAR = 0.1
"""Distance, as a share of the curve's height, below which a bend is not called an elbow."""


@dataclass(frozen=True)
class Elbow:
    """``size`` is where the curve lies farthest from its chord; ``found`` is false for curves without a clear bend."""

    size: int
    distance: float
    found: bool


def elbow(sizes: Sequence[int], values: Sequence[float]) -> Elbow:
    """The size after which more of it brings little, for a loss that falls or an accuracy that rises.

    With sizes and values scaled to [0, 1] the distance is taken along the value axis, on the side where the curve is
    ahead of its chord.
    """
    if len(sizes) != len(values) or len(sizes) < 3:
        raise ValueError(f"an elbow takes three sizes or more with a value each, given {len(sizes)} and {len(values)}")
    if any(right <= left for left, right in pairwise(sizes)):
        raise ValueError(f"sizes must rise, given {', '.join(map(str, sizes))}")
    height, width = values[-1] - values[0], sizes[-1] - sizes[0]
    if height == 0:
        return Elbow(sizes[0], 0.0, False)
    # d(n) = (v(n) − v₀) / (v₁ − v₀) − (n − n₀) / (n₁ − n₀): how far ahead of the chord, falling or rising
    ahead = [(value - values[0]) / height - (size - sizes[0]) / width for size, value in zip(sizes, values)]
    best = max(range(len(sizes)), key=lambda place: ahead[place])
    return Elbow(sizes[best], ahead[best], ahead[best] >= CLEAR)
