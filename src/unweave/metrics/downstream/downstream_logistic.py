"""Downstream accuracy of logistic regression (Locatello et al., 2019).

```
score = mean test accuracy with the most labels;  efficiency = accuracy(100 labels) / accuracy(10,000 labels)
```

**Protocol.** 10, 100, 1,000 and 10,000 labels as far as the table has them, 5,000 test rows; the penalty is chosen
among ten by five unshuffled folds.

**Rewards.** Codes that are easy to use.

**Misses.** Disentanglement as such.

## Known defects, and what is done about them

- Under the one-vs-rest default of 2018–19 a near-ideal code scored 0.70 that scores 1.00 under softmax;
  `scheme="ovr"` is the period's.
- Folds with a single class are left out instead of failing. The efficiency of a code that tells nothing is about 1:
  read it beside the accuracy.
"""

from collections.abc import Sequence
from typing import Any

from unweave.metrics.downstream.learning import Downstream, downstream
from unweave.metrics.row import Metric


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


ROW = Metric(
    downstream_logistic,
    name="downstream_task_logistic_regression",
    title="Downstream: logistic regression",
    tells="How well, and from how few labels, does a linear learner predict the factors?",
    kind="downstream",
    needs="codes factors split seed",
    range=(0.0, 1.0),
    better="more",
    invariant_to=("latent order", "factor order"),
    at_chance="the share of the commonest value; the efficiency of a code without information is about 1",
    paper="locatello2019challenging",
    example="downstream_logistic(codes, factors, sizes=[20, 100]).mean",
    scores=("score", "efficiency"),
    on_cpu="the learners",
)
