"""L-BFGS ends where it should, on one thread, and leaves the number of threads as it was."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der
from threadpoolctl import threadpool_info, threadpool_limits

from unweave.metrics.estimators import lbfgs
from unweave.metrics.estimators.lbfgs import minimise, one_blas_thread
from unweave.metrics.estimators.softmax import fit_softmax, probabilities


def valley(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def n_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_it_ends_at_the_minimum_and_rests_there() -> None:
    found = minimise(valley, np.array([-1.2, 1.0]), n_steps=200, gradient_tolerance=1e-8)
    np.testing.assert_allclose(found, 1.0, atol=1e-7)
    np.testing.assert_array_equal(minimise(valley, np.ones(2)), np.ones(2))


def test_it_ends_when_its_steps_run_out() -> None:
    start = np.array([-1.2, 1.0])
    values = [valley(minimise(valley, start, n_steps=n_steps))[0] for n_steps in (1, 5, 20)]
    assert valley(start)[0] > values[0] > values[1] > values[2] > 0.0


def test_a_function_that_goes_against_its_gradient_is_left_where_it_is() -> None:
    start = np.array([3.0, 1.0])
    np.testing.assert_array_equal(minimise(lambda x: (float((x**2).sum()), -2 * x), start), start)


def test_threads_are_given_back_by_the_last_to_leave() -> None:
    def look(_: int) -> set[int]:
        with one_blas_thread():
            return n_threads()

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        with one_blas_thread(), ThreadPoolExecutor(4) as pool:
            assert set().union(*pool.map(look, range(40))) == {1}
            assert n_threads() == {1}
        assert n_threads() == before


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that has neither SciPy nor threadpoolctl."""
    for name in ("scipy", "scipy.optimize", "scipy.linalg", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(lbfgs.importlib.util, "find_spec", lambda name: None)
    lbfgs._blas.cache_clear()
    yield
    lbfgs._blas.cache_clear()


def test_a_machine_without_scipy_ends_at_the_same_minimum(bare: None) -> None:
    start = np.array([-1.2, 1.0])
    np.testing.assert_allclose(minimise(valley, start, n_steps=100), 1.0, atol=1e-4)
    np.testing.assert_array_equal(start, [-1.2, 1.0])
    np.testing.assert_array_equal(minimise(valley, np.ones(2)), np.ones(2))


def test_classes_are_told_apart_as_well_without_scipy(bare: None, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 600)
    codes = generator.normal(size=(600, 3)) + 1.5 * np.eye(4, 3)[labels]
    without = probabilities(fit_softmax(codes, labels), codes)
    monkeypatch.undo()
    np.testing.assert_allclose(without, probabilities(fit_softmax(codes, labels), codes), atol=2e-3)
