"""Downstream accuracy of boosted trees (Locatello et al., 2019)."""

from collections.abc import Sequence
from typing import Any

from unweave.metrics.downstream.learning import Downstream, downstream


def downstream_trees(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    predictor: str = "trees",
    sizes: Sequence[int] | None = None,
    n_test: int | None = None,
    seed: int | None = None,
) -> Downstream:
    """The same for a learner that does not mind curves and interactions; see :func:`downstream`.

    ``predictor="sklearn_trees"`` are the original's.
    """
    if predictor not in ("trees", "sklearn_trees"):
        raise ValueError(f"predictor must be trees or sklearn_trees, not {predictor!r}")
    return downstream(
        codes, factors, test_codes, test_factors, predictor=predictor, sizes=sizes, n_test=n_test, seed=seed
    )
