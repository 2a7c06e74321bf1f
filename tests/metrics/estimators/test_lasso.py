"""The batched Lasso against scikit-learn, to rounding, and against the conditions of optimality."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso

from unweave.metrics.estimators.lasso import _gap, lasso


def problem(seed: int, shared: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(300, 6))
    inputs = sources @ rng.normal(size=(6, 6)) + shared * sources[:, :1]
    targets = np.tanh(sources @ rng.normal(size=(6, 4)))
    return (inputs - inputs.mean(0)) / inputs.std(0), (targets - targets.mean(0)) / targets.std(0)


def solve(inputs: np.ndarray, targets: np.ndarray, **options: float) -> np.ndarray:
    x, y = torch.tensor(inputs), torch.tensor(targets)
    gram = (x.T @ x).expand(y.shape[1], -1, -1)
    return lasso(gram, (x.T @ y).T, y.square().sum(0), 0.1 * len(x), **options).numpy()  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [0.0, 3.0])
def test_it_stops_where_scikit_learn_stops(seed: int, shared: float) -> None:
    inputs, targets = problem(seed, shared)
    np.testing.assert_allclose(solve(inputs, targets), Lasso(alpha=0.1).fit(inputs, targets).coef_, atol=1e-11)


def test_the_optimum_meets_its_conditions() -> None:
    inputs, targets = problem(0, 1.0)
    weights = solve(inputs, targets, tolerance=1e-14, max_sweeps=100_000)
    pull = inputs.T @ (targets - inputs @ weights.T) / len(inputs)
    alive = weights.T != 0
    np.testing.assert_allclose(pull[alive], 0.1 * np.sign(weights.T[alive]), atol=1e-9)
    assert (np.abs(pull[~alive]) <= 0.1 + 1e-9).all()


def test_the_gap_is_the_primal_less_the_dual_objective() -> None:
    inputs, targets = problem(2, 1.0)
    weights, penalty = np.random.default_rng(0).normal(size=(4, 6)), 0.1 * len(inputs)
    residual = targets - inputs @ weights.T
    primal = 0.5 * (residual**2).sum(0) + penalty * np.abs(weights).sum(1)
    dual = residual * np.minimum(1.0, penalty / np.abs(inputs.T @ residual).max(0))
    expected = primal - (0.5 * (targets**2).sum(0) - 0.5 * ((dual - targets) ** 2).sum(0))
    x, y = torch.tensor(inputs), torch.tensor(targets)
    gram = (x.T @ x).expand(4, -1, -1)
    found = _gap(gram, (x.T @ y).T, y.square().sum(0), torch.tensor(weights), penalty)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_empty_inputs_get_no_weight() -> None:
    inputs, targets = problem(1, 0.0)
    inputs[:, 2] = 0.0
    assert (solve(inputs, targets)[:, 2] == 0.0).all()
    assert (solve(np.zeros_like(inputs), targets) == 0.0).all()
