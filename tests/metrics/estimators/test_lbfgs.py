"""L-BFGS ends where it should, on one thread, and leaves the number of threads as it was."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.optimize import rosen, rosen_der
from threadpoolctl import threadpool_info, threadpool_limits

from unweave.metrics.estimators.lbfgs import minimise, one_blas_thread


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
