"""SciPy's L-BFGS (Liu & Nocedal, 1989; search along a line: Moré & Thuente, 1994), as scikit-learn's learners call it.

Vectors are short here: threads would only wait for each other, so there is one. Where there is no SciPy, as on machines
that have PyTorch alone, PyTorch's own takes its place: it ends as near the minimum, by another path.
"""

import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

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
    if importlib.util.find_spec("scipy") is None:
        return _by_torch(objective, start, n_steps, gradient_tolerance, value_tolerance)
    from scipy.optimize import minimize

    options = {"maxiter": n_steps, "maxls": 50, "gtol": gradient_tolerance, "ftol": value_tolerance}
    with one_blas_thread():
        found: np.ndarray = minimize(objective, start, method="L-BFGS-B", jac=True, options=options).x
    return found


def _by_torch(
    objective: Objective, start: Float[np.ndarray, " weight"], n_steps: int, gradient: float, value: float
) -> Float[np.ndarray, " weight"]:
    """The same by PyTorch; ``gradient`` and ``value`` are the tolerances of both."""
    point = torch.from_numpy(np.array(start, dtype=np.float64))
    optimiser = torch.optim.LBFGS(
        [point],
        max_iter=n_steps,
        tolerance_grad=gradient,
        tolerance_change=value,
        history_size=10,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        found, slope = objective(point.numpy())
        point.grad = torch.from_numpy(np.array(slope))
        return found

    with one_blas_thread():
        optimiser.step(closure)
    return point.numpy()


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
    """The libraries of both, where there are some. Finding them takes 10 ms, longer than most fits: once a process."""
    if importlib.util.find_spec("scipy") is not None:
        import scipy.linalg  # noqa: F401
    if importlib.util.find_spec("threadpoolctl") is None:
        return _NoLibraries()
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _NoLibraries:
    """Nothing can be limited: workers have one thread anyway."""

    def limit(self, *, limits: int) -> "_NoLibraries":
        return self

    def restore_original_limits(self) -> None:
        return
