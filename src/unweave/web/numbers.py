"""Numbers on their way into JSON, which knows neither infinity nor nothing-in-particular."""

import math
from typing import Any

from unweave.shapes import Tensor


def number(value: Any) -> float | None:
    """A finite float; None for whatever is none."""
    if isinstance(value, str | bool):
        return None
    try:
        found = float(value)
    except (TypeError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def numbers(values: Any) -> list[float | None]:
    """A list of them, rounded to six digits that matter."""
    plain = values.tolist() if isinstance(values, Tensor) else values
    return [None if (found := number(value)) is None else float(f"{found:.6g}") for value in plain]


def matrix(values: Any) -> list[list[float | None]]:
    """A table of them."""
    plain = values.tolist() if isinstance(values, Tensor) else values
    return [numbers(row) for row in plain]


def thinned(length: int, most: int) -> list[int]:
    """At most so many places of a list, evenly spread, both ends among them."""
    if length <= most:
        return list(range(length))
    return sorted({round(place * (length - 1) / (most - 1)) for place in range(most)})
