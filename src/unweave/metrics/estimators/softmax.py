"""Softmax regression, as scikit-learn's ``LogisticRegression(solver="lbfgs")`` fits it, several times faster.

The optimiser, its start, its tolerances and its 100 iterations are the same, so the weights are too, where it converges
and where it does not (a separable code without a penalty never does). What is faster is the loss and its gradient:
vectorised exponentials on arrays class × sample.
"""

import numpy as np
import torch

from unweave.metrics.estimators.lbfgs import minimise
from unweave.shapes import Float, Int, Tensor

N_STEPS = 100
TOLERANCE = 1e-4


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
        self.columns = torch.from_numpy(np.column_stack([codes, np.ones(n_samples)]).astype(np.float64)).T.contiguous()
        self.targets = torch.from_numpy(targets)[None]
        # balanced: n / (K n_k) for a sample of class k, which leaves the total at n
        share = n_samples / (n_classes * counts[targets]) if balanced else np.ones(n_samples)
        self.share = torch.from_numpy(share / n_samples)
        self.penalty = 1.0 / (cost * n_samples)
        # one table for all steps: a new one's memory would cost as much as the exponentials
        self.scores = torch.empty(self.shape[0], n_samples, dtype=torch.float64)

    def loss_and_gradient(self, flat: Float[np.ndarray, " weight"]) -> tuple[float, Float[np.ndarray, " weight"]]:
        weights = torch.from_numpy(flat).view(self.shape)
        scores = torch.mm(weights, self.columns, out=self.scores)
        loss, pull = self._softmax(scores) if len(scores) > 1 else self._sigmoid(scores)
        free = weights.clone()
        free[:, -1] = 0.0
        # Σ_i s_i (−log p_i) + ½ λ‖w‖², and its gradient Σ_i s_i (p_i − y_i) x_i + λ w
        gradient = (self.columns @ pull.T).T + self.penalty * free
        return float(loss + 0.5 * self.penalty * free.square().sum()), gradient.flatten().numpy()

    def _softmax(self, scores: Float[Tensor, "class sample"]) -> tuple[Tensor, Float[Tensor, "class sample"]]:
        scores -= scores.amax(0)
        own = scores.gather(0, self.targets)[0]
        chances = scores.exp_()
        total = chances.sum(0)
        loss = (self.share * (total.log() - own)).sum()
        chances *= self.share / total
        chances.scatter_add_(0, self.targets, -self.share[None])
        return loss, chances

    def _sigmoid(self, scores: Float[Tensor, "class sample"]) -> tuple[Tensor, Float[Tensor, "class sample"]]:
        # log(1 + eˢ) − y s
        loss = self.share * (torch.nn.functional.softplus(scores, threshold=1000.0) - self.targets * scores)
        return loss.sum(), self.share * (scores.sigmoid() - self.targets)
