"""L-BFGS and its line search against the routine that scikit-learn calls, step by step."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from unweave.metrics.estimators.lbfgs import minimise
from unweave.metrics.estimators.line_search import Trial, line_search

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def valley(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def waves(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float((0.1 * x**2 + np.cos(3 * x)).sum()), 0.2 * x - 3 * np.sin(3 * x)


def cliffs(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sqrt(1e-4 + x**2).sum() + np.exp(x[0])), x / np.sqrt(1e-4 + x**2) + np.eye(len(x))[0] * np.exp(x[0])


@pytest.mark.parametrize("function", [valley, waves, cliffs])
@pytest.mark.parametrize("n_steps", [1, 2, 5, 12, 25])
@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_the_one_of_scipy(function: Function, n_steps: int, seed: int) -> None:
    start = 2 * np.random.default_rng(seed).normal(size=6)
    options = {"maxiter": n_steps, "maxls": 50, "gtol": 1e-9, "ftol": 0.0}
    wanted = minimize(function, start, method="L-BFGS-B", jac=True, options=options).x
    found = minimise(function, start, n_steps=n_steps, gradient_tolerance=1e-9, value_tolerance=0.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_it_ends_at_the_minimum_and_rests_there() -> None:
    found = minimise(valley, np.array([-1.2, 1.0]), n_steps=200, gradient_tolerance=1e-8)
    np.testing.assert_allclose(found, 1.0, atol=1e-7)
    np.testing.assert_array_equal(minimise(valley, np.ones(2)), np.ones(2))


def test_a_function_that_goes_against_its_gradient_is_left_where_it_is() -> None:
    start = np.array([3.0, 1.0])
    np.testing.assert_array_equal(minimise(lambda x: (float((x**2).sum()), -2 * x), start), start)


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0, 1e3])
def test_a_step_decreases_enough_and_leaves_little_slope(first: float) -> None:
    def at(step: float) -> Trial:
        # the first example of Moré and Thuente, with β = 2
        return Trial(step, -step / (step**2 + 2), (step**2 - 2) / (step**2 + 2) ** 2)

    start = at(0.0)
    found = line_search(at, start, first)
    assert found is not None
    assert found.value <= start.value + 1e-3 * start.slope * found.step
    assert abs(found.slope) <= 0.9 * abs(start.slope)
