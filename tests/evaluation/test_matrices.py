"""Matrices of a representation: fewer of them where factors are missing, fractions or words."""

import numpy as np
import pytest

from unweave.evaluation.matrices import matrices

CODES = np.random.default_rng(0).normal(size=(60, 3))
CLASSES = np.arange(60)[:, None] % 4


def test_without_factors_latents_are_only_compared_with_each_other() -> None:
    found = matrices(CODES)
    assert (found.information, found.correlation) == (None, None)
    np.testing.assert_allclose(found.code_correlation, np.corrcoef(CODES.T), atol=1e-12)


@pytest.mark.parametrize(
    ("factors", "shares", "linear"),
    [(CLASSES, True, True), (CLASSES / 7, False, True), (CLASSES.astype(str).astype(object) + "a", True, False)],
)
def test_with_factors_there_is_what_they_allow(factors: np.ndarray, shares: bool, linear: bool) -> None:
    found = matrices(np.column_stack([CODES, CLASSES]), factors)
    assert (found.information is not None, found.correlation is not None) == (shares, linear)
    if found.information is not None:
        assert float(found.information[3, 0]) == pytest.approx(1.0)
    if found.correlation is not None:
        assert float(found.correlation[3, 0]) == pytest.approx(1.0)
