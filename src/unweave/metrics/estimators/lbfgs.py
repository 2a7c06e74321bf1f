"""SciPy's L-BFGS (Liu & Nocedal, 1989; search along a line: Moré & Thuente, 1994), as scikit-learn's learners call it.

Vectors are short here: threads would only wait for each other, so there is one.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from unweave.shapes import Float

Objective = Callable[[Float[np.ndarray, " weight"]], tuple[float, Float[np.ndarray, " weight"]]]
"""From a point to the value and the gradient there."""


def minimise(
    objective: Objective,
    start: Float[np.ndarray, " weight"],
    *,
    n_steps: int = 100,
    gradient_tolerance: float = 1e-4,
    value_tolerance: float = 64 * float(np.finfo(np.float64).eps),
) -> Float[np.ndarray, " weight"]:
    """The point reached when no entry of the gradient exceeds its tolerance, the value rests, or steps run out."""
    from scipy.optimize import minimize

    options = {"maxiter": n_steps, "maxls": 50, "gtol": gradient_tolerance, "ftol": value_tolerance}
    with one_blas_thread():
        found: np.ndarray = minimize(objective, start, method="L-BFGS-B", jac=True, options=options).x
    return found


class _Users:
    """How many are inside, and what to undo when the last one leaves."""

    lock = threading.Lock()
    n_inside = 0
    limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy and SciPy compute on one thread inside; the last to leave restores what was.

    OpenBLAS listens to the main thread alone: enter before handing work to others.
    """
    with _Users.lock:
        if _Users.n_inside == 0:
            _Users.limit = _blas().limit(limits=1)
        _Users.n_inside += 1
    try:
        yield
    finally:
        with _Users.lock:
            _Users.n_inside -= 1
            if _Users.n_inside == 0:
                _Users.limit.restore_original_limits()


@cache
def _blas() -> Any:
    """The libraries of both. Finding them takes 10 ms, longer than most fits: once a process."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
