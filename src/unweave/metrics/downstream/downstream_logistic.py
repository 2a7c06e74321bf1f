"""Downstream accuracy of logistic regression (Locatello et al., 2019)."""

from collections.abc import Sequence
from typing import Any

from unweave.metrics.downstream.learning import Downstream, downstream


def downstream_logistic(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    scheme: str = "multinomial",
    sizes: Sequence[int] | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Downstream:
    """How well, and from how few labels, a linear learner predicts the factors; see :func:`downstream`.

    ``scheme="ovr"`` is the learner of the published studies (:mod:`unweave.metrics.supervised.logistic`).
    """
    return downstream(
        codes, factors, test_codes, test_factors,
        predictor="logistic", scheme=scheme, sizes=sizes, n_test=n_test, seed=seed,
    )  # fmt: skip
