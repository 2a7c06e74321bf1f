"""L-BFGS (Liu & Nocedal, 1989) with the line search of Moré & Thuente (1994).

Start, memory, tolerances and safeguards are those of the routine that scikit-learn's learners call (L-BFGS-B without
bounds), so the path is the same, stopped early or not. Vectors are short here: threads would only wait for each other.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unweave.metrics.estimators.line_search import Trial, line_search
from unweave.shapes import Float

MEMORY = 10
EPSILON = float(np.finfo(np.float64).eps)

Objective = Callable[[Float[np.ndarray, " weight"]], tuple[float, Float[np.ndarray, " weight"]]]
"""From a point to the value and the gradient there."""


class _Pair(NamedTuple):
    """A step, what it changed in the gradient, and the product of both."""

    step: Float[np.ndarray, " weight"]
    change: Float[np.ndarray, " weight"]
    product: float


def minimise(
    objective: Objective,
    start: Float[np.ndarray, " weight"],
    *,
    n_steps: int = 100,
    gradient_tolerance: float = 1e-4,
    value_tolerance: float = 64 * EPSILON,
) -> Float[np.ndarray, " weight"]:
    """The point reached when no entry of the gradient exceeds its tolerance, the value rests, or steps run out."""
    point, pairs = start, deque[_Pair](maxlen=MEMORY)
    value, gradient = objective(point)
    n_done = 0
    while n_done < n_steps and np.abs(gradient).max() > gradient_tolerance:
        direction = -_newton(gradient, pairs)
        path = _Path(objective, point, direction)
        slope = float(gradient @ direction)
        length = 1.0 / float(np.linalg.norm(direction)) if n_done == 0 else 1.0
        reached = line_search(path.at, Trial(0.0, value, slope), length) if slope < 0 else None
        if reached is None:
            if not pairs:
                break
            # what is remembered misleads: begin anew with the gradient
            pairs.clear()
            continue
        rise = (reached.slope - slope) * reached.step
        if rise > -EPSILON * slope * reached.step:
            pairs.append(_Pair(reached.step * direction, path.gradient - gradient, rise))
        rest = value - reached.value <= value_tolerance * max(abs(value), abs(reached.value), 1.0)
        point, value, gradient = path.point, reached.value, path.gradient
        n_done += 1
        if rest:
            break
    return point


class _Path:
    """The objective along a direction; remembers the last place asked for."""

    def __init__(self, objective: Objective, start: np.ndarray, direction: np.ndarray) -> None:
        self.objective, self.start, self.direction = objective, start, direction
        self.point = self.gradient = start

    def at(self, step: float) -> Trial:
        self.point = self.start + step * self.direction
        value, self.gradient = self.objective(self.point)
        return Trial(step, value, float(self.gradient @ self.direction))


def _newton(gradient: Float[np.ndarray, " weight"], pairs: deque[_Pair]) -> Float[np.ndarray, " weight"]:
    """H g, with H the inverse Hessian that the pairs imply: from the newest to the oldest, and back."""
    if not pairs:
        return gradient
    found, shares = gradient.copy(), []
    for pair in reversed(pairs):
        shares.append(float(pair.step @ found) / pair.product)
        found -= shares[-1] * pair.change
    newest = pairs[-1]
    found *= newest.product / float(newest.change @ newest.change)
    for pair, share in zip(pairs, reversed(shares)):
        found += (share - float(pair.change @ found) / pair.product) * pair.step
    return found
