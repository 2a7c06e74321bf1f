"""Kernels run in Triton's interpreter here, which needs NumPy 2."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _interpreter() -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("Triton's interpreter refuses masks of NumPy 1")
