"""Softmax regression, as scikit-learn's ``LogisticRegression(solver="lbfgs")`` fits it, several times faster.

The optimiser, its start, its tolerances and its 100 iterations are the same, so the weights are too, where it converges
and where it does not (a separable code without a penalty never does). What is faster is the loss and its gradient:
vectorised exponentials on arrays class × sample.
"""

import numpy as np
import torch

from unweave.metrics.estimators.lbfgs import minimise
from unweave.shapes import Float, Int

N_STEPS = 100
TOLERANCE = 1e-4
LARGE = 690.0
"""e to it, and a hundred million times it, is a number yet, and so is one over it."""


def fit_softmax(
    codes: Float[np.ndarray, "sample feature"],
    targets: Int[np.ndarray, " sample"],
    *,
    n_classes: int | None = None,
    cost: float = 1.0,
    balanced: bool = False,
    start: Float[np.ndarray, "row feature_and_one"] | None = None,
) -> Float[np.ndarray, "row feature_and_one"]:
    """Weights and, in the last column, intercepts of classes 0 … K − 1, as many as occur unless told.

    ``cost`` is one over the penalty on the weights, infinite for none. Two classes share one row, for the second.
    The search begins at ``start``, or at zero.
    """
    problem = _Problem(codes, targets, n_classes or int(targets.max()) + 1, cost, balanced)
    begin = np.zeros(problem.shape) if start is None else start
    found = minimise(problem.loss_and_gradient, begin.ravel(), n_steps=N_STEPS, gradient_tolerance=TOLERANCE)
    return found.reshape(problem.shape)


def probabilities(
    weights: Float[np.ndarray, "row feature_and_one"], codes: Float[np.ndarray, "sample feature"]
) -> Float[np.ndarray, "sample class"]:
    """Of every class in every sample."""
    slopes, intercepts = torch.from_numpy(weights).split([weights.shape[1] - 1, 1], dim=1)
    scores = torch.from_numpy(codes) @ slopes.T + intercepts.T
    if len(weights) > 1:
        return scores.softmax(1).numpy()
    return torch.cat([(-scores).sigmoid(), scores.sigmoid()], dim=1).numpy()


class _Problem:
    """Mean log-loss and half the squared weights over (cost · total weight of the samples)."""

    def __init__(self, codes: np.ndarray, targets: np.ndarray, n_classes: int, cost: float, balanced: bool) -> None:
        counts, n_samples = np.bincount(targets), len(targets)
        self.shape = (n_classes if n_classes > 2 else 1, codes.shape[1] + 1)
        self.columns = np.ascontiguousarray(np.column_stack([codes, np.ones(n_samples)]).T, np.float64)
        self.targets = targets
        # balanced: n / (K n_k) for a sample of class k, which leaves the total at n
        share = n_samples / (n_classes * counts[targets]) if balanced else np.ones(n_samples)
        self.share = share / n_samples
        self.penalty = 1.0 / (cost * n_samples)
        # one table for all steps: a new one's memory would cost as much as the exponentials
        self.scores = np.empty((self.shape[0], n_samples))
        self.own = targets * n_samples + np.arange(n_samples)
        self.longest = np.linalg.norm(self.columns, axis=0).max()
        # with rows of zeros at the end, for BLAS takes four at a time and is slow with what is left
        self.padded = np.concatenate([self.columns, np.zeros((-self.shape[1] % 4, n_samples))])

    def loss_and_gradient(self, flat: Float[np.ndarray, " weight"]) -> tuple[float, Float[np.ndarray, " weight"]]:
        weights = flat.reshape(self.shape)
        loss, pull = self._softmax(weights) if len(weights) > 1 else self._sigmoid(weights)
        free = weights.copy()
        free[:, -1] = 0.0
        # Σ_i s_i (−log p_i) + ½ λ‖w‖², and its gradient Σ_i s_i (p_i − y_i) x_i + λ w
        gradient = (pull @ self.padded.T)[:, : self.shape[1]] + self.penalty * free
        return loss + 0.5 * self.penalty * float(np.vdot(free, free)), gradient.ravel()

    def _softmax(self, weights: Float[np.ndarray, "class feature"]) -> tuple[float, Float[np.ndarray, "class sample"]]:
        """The loss, and s (p − y)."""
        scores = np.matmul(weights, self.columns, out=self.scores)
        # |w x| ≤ ‖w‖ ‖x‖: the largest score is taken off only where its exponential might be too large
        # (or where that overflows itself)
        if not np.linalg.norm(weights, axis=1).max() * self.longest <= LARGE:
            scores -= scores.max(0)
        own = scores.take(self.own)
        chances = _exp(scores)
        total = chances.sum(0)
        chances *= self.share / total
        # a difference sample by sample: of two sums nothing exact would be left where the fit is nearly perfect
        chances.ravel()[self.own] -= self.share
        return float(self.share @ (np.log(total) - own)), chances

    def _sigmoid(self, weights: Float[np.ndarray, "1 feature"]) -> tuple[float, Float[np.ndarray, "1 sample"]]:
        scores, truth, share = (torch.from_numpy(one) for one in (weights @ self.columns, self.targets, self.share))
        # log(1 + eˢ) − y s
        loss = share * (torch.nn.functional.softplus(scores, threshold=700.0) - truth * scores)
        return float(loss.sum()), (share * (scores.sigmoid() - truth)).numpy()


def _exp(table: Float[np.ndarray, "class sample"]) -> Float[np.ndarray, "class sample"]:
    """eˣ in place, by whoever is faster: with AVX512 NumPy takes half of PyTorch's time, without it twice."""
    if torch.backends.cpu.get_cpu_capability() == "AVX512":
        return np.exp(table, out=table)
    return torch.from_numpy(table).exp_().numpy()
