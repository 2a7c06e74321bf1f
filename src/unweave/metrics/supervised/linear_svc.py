"""Linear support vector classification of one number: squared hinge, one class against the rest (Fan et al., 2008).

With one feature the samples inside the margin of a class are those on one side of a threshold. Sums over them are
differences of prefix sums over the sorted feature, so a Newton step costs a binary search, whatever the sample size.
"""

from dataclasses import dataclass

import numpy as np

from unweave.shapes import Bool, Float, Int

N_STEPS = 100
"""Newton steps at most; a piecewise quadratic of two unknowns ends after some ten."""
TOLERANCE = 1e-9
"""Of the gradient, relative to the one at the origin."""
N_HALVINGS = 30
Evaluated = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Objective, gradient and Newton step at a point."""


def linear_svc(
    feature: Float[np.ndarray, " sample"],
    labels: Int[np.ndarray, " sample"],
    *,
    cost: float = 0.01,
) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Slope and intercept of every class present, as ``LinearSVC(C=cost, class_weight="balanced")`` converged.

    The labels must be 0 … K − 1, each present. Two classes share one row, positive for the second, as there.
    """
    # liblinear weighs class k by n / (K n_k) where it is the positive one and, unless K = 2, leaves the rest at 1
    counts = np.bincount(labels)
    balance = len(labels) / (len(counts) * counts)
    if len(counts) == 2:
        problem = _Problem.of(feature, labels, np.array([1]), cost * balance[1:], cost * balance[:1])
    else:
        problem = _Problem.of(feature, labels, np.arange(len(counts)), cost * balance, np.full(len(counts), cost))
    return problem.solve()


def decide(
    feature: Float[np.ndarray, " sample"], slope: Float[np.ndarray, " row"], intercept: Float[np.ndarray, " row"]
) -> Int[np.ndarray, " sample"]:
    """The class with the largest score."""
    scores = feature[:, None] * slope + intercept
    return scores.argmax(1) if len(slope) > 1 else (scores[:, 0] > 0).astype(np.int64)


@dataclass(frozen=True)
class _Problem:
    """½(w² + b²) + Σ cost · max(0, 1 ∓ (w x + b))² for several positive classes at once."""

    values: Float[np.ndarray, " sample"]
    moments: Float[np.ndarray, "moment prefix"]
    keys: Int[np.ndarray, " sample"]
    own_moments: Float[np.ndarray, "moment prefix"]
    classes: Int[np.ndarray, " row"]
    positive_cost: Float[np.ndarray, " row"]
    negative_cost: Float[np.ndarray, " row"]

    @classmethod
    def of(
        cls,
        feature: np.ndarray,
        labels: np.ndarray,
        classes: np.ndarray,
        positive_cost: np.ndarray,
        negative_cost: np.ndarray,
    ) -> "_Problem":
        order = np.argsort(feature, kind="stable")
        values, sorted_labels = feature[order], labels[order]
        # the fewer bytes, the faster: small numbers are sorted by counting
        by_class = np.argsort(sorted_labels.astype(np.min_scalar_type(labels.max())), kind="stable")
        # rank within (class, value) as one integer, so that one search serves all classes
        keys = sorted_labels[by_class] * (len(values) + 1) + by_class
        own = _prefix(values[by_class])
        return cls(values, _prefix(values), keys, own, classes, positive_cost, negative_cost)

    def solve(self) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, " row"]]:
        """Damped Newton, all rows together, until no gradient is left."""
        slope, intercept = np.zeros(len(self.classes)), np.zeros(len(self.classes))
        known = self._newton(slope, intercept)
        scale = np.abs(known[1]).max(0)
        for _ in range(N_STEPS):
            moving = np.abs(known[1]).max(0) > TOLERANCE * scale
            if not moving.any():
                break
            slope, intercept, known = self._step(slope, intercept, known, moving)
        return slope, intercept

    def _step(
        self, slope: np.ndarray, intercept: np.ndarray, known: Evaluated, moving: Bool[np.ndarray, " row"]
    ) -> tuple[np.ndarray, np.ndarray, Evaluated]:
        """The rows that move after a step, halved until it gains enough, and what is known there."""
        objective, gradient, step = known
        step = step * moving
        size, descent = np.ones(len(objective)), (gradient * step).sum(0)
        for _ in range(N_HALVINGS):
            reached = slope + size * step[0], intercept + size * step[1]
            found = self._newton(*reached)
            short = found[0] > objective * (1 + 1e-14) + 1e-4 * size * descent
            if not short.any():
                break
            size[short] /= 2
        return *reached, found

    def _newton(self, slope: np.ndarray, intercept: np.ndarray) -> Evaluated:
        """Objective, gradient and Newton step, from the sums of 1, x and x² over the samples inside the margin."""
        inside = self._below(slope, intercept, 1.0)[1]
        every, own = self._below(-slope, -intercept, 1.0)
        positive, negative = self.positive_cost * inside, self.negative_cost * (every - own)
        # Σ c (t − w x − b)² with t = ±1 on the two sides
        n, x, xx = positive + negative
        t, tx = (positive - negative)[:2]
        error = n - 2 * (slope * tx + intercept * t) + slope**2 * xx + 2 * slope * intercept * x + intercept**2 * n
        objective = 0.5 * (slope**2 + intercept**2) + error
        gradient = np.stack(
            [slope + 2 * (slope * xx + intercept * x - tx), intercept + 2 * (slope * x + intercept * n - t)]
        )
        a, b, d = 1 + 2 * xx, 2 * x, 1 + 2 * n
        determinant = a * d - b * b
        step = -np.stack([d * gradient[0] - b * gradient[1], a * gradient[1] - b * gradient[0]]) / determinant
        return objective, gradient, step

    def _below(
        self, slope: np.ndarray, intercept: np.ndarray, level: float
    ) -> tuple[Float[np.ndarray, "moment row"], Float[np.ndarray, "moment row"]]:
        """Sums of (1, x, x²) over the samples with w x + b < level: over all samples, and over the row's own class."""
        flat = slope == 0
        threshold = (level - intercept) / np.where(flat, 1.0, slope)
        rising = np.searchsorted(self.values, threshold, side="left")
        falling = np.searchsorted(self.values, threshold, side="right")
        n = len(self.values)
        start = np.where(flat, 0, np.where(slope > 0, 0, falling))
        stop = np.where(flat, np.where(intercept < level, n, 0), np.where(slope > 0, rising, n))
        base = self.classes * (n + 1)
        own_start, own_stop = (np.searchsorted(self.keys, base + place) for place in (start, stop))
        return (
            self.moments[:, stop] - self.moments[:, start],
            self.own_moments[:, own_stop] - self.own_moments[:, own_start],
        )


def _prefix(values: Float[np.ndarray, " sample"]) -> Float[np.ndarray, "moment prefix"]:
    powers = np.stack([np.ones_like(values), values, values**2])
    return np.concatenate([np.zeros((3, 1)), np.cumsum(powers, axis=1)], axis=1)
