"""Downstream accuracy of boosted trees (Locatello et al., 2019).

```
score = mean test accuracy with the most labels;  efficiency = accuracy(100 labels) / accuracy(10,000 labels)
```

**Protocol.** 10, 100, 1,000 and 10,000 labels, 5,000 test rows; the trees of DCI. `predictor="sklearn_trees"` are the
original's.

**Rewards.** Codes whose axes are the factors: trees cut along axes, so rotations cost labels.

**Misses.** What a linear learner needs.

## Known defects, and what is done about them

- The original grows 100 trees per class and size, single-threaded and unseeded, which takes minutes; here the trees
  of DCI's fast back end are grown, seeded.
"""

from collections.abc import Sequence
from typing import Any

from unweave.metrics.downstream.learning import Downstream, downstream
from unweave.metrics.row import Metric


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


ROW = Metric(
    downstream_trees,
    name="downstream_task_boosted_trees",
    title="Downstream: boosted trees",
    tells="The same for a learner that does not mind curves and interactions.",
    kind="downstream",
    needs="codes factors split seed",
    range=(0.0, 1.0),
    better="more",
    invariant_to=("latent order", "factor order"),
    at_chance="the share of the commonest value; the efficiency of a code without information is about 1",
    paper="locatello2019challenging",
    example="downstream_trees(codes, factors, sizes=[20, 100]).mean",
    scores=("score", "efficiency"),
    on_cpu="the learners",
)
