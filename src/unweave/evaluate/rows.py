"""Every row that can be measured: the metrics of arrays, and what a representation is worth to a learner."""

from typing import Any

from unweave.config import unknown
from unweave.evaluate.downstream import Downstream, downstream
from unweave.metrics import METRICS, Metric


def downstream_logistic(
    codes: Any, factors: Any, test_codes: Any = None, test_factors: Any = None, **options: Any
) -> Downstream:
    """Downstream accuracy of cross-validated logistic regression; options as in :func:`downstream`."""
    return downstream(codes, factors, test_codes, test_factors, predictor="logistic", **options)


def downstream_trees(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    predictor: str = "trees",
    **options: Any,
) -> Downstream:
    """Downstream accuracy of boosted trees; ``predictor="sklearn_trees"`` are the original's."""
    return downstream(codes, factors, test_codes, test_factors, predictor=predictor, **options)


_DOWNSTREAM: tuple[Metric, ...] = tuple(
    Metric(
        function,
        name=name,
        needs="codes factors split seed",
        range=(0.0, 1.0),
        higher_is_better=True,
        invariant_to=("latent order", "factor order"),
        at_chance="the share of the commonest value; the efficiency of a code without information is about 1",
        paper="locatello2019challenging",
        kind="downstream",
        scores=("score", "efficiency"),
    )
    for function, name in (
        (downstream_logistic, "downstream_task_logistic_regression"),
        (downstream_trees, "downstream_task_boosted_trees"),
    )
)

ROWS: dict[str, Metric] = METRICS | {row.name: row for row in _DOWNSTREAM}
"""Every row by name. The learners come last: with 10,000 labels they take longer than all metrics together."""


def is_named(names: Any) -> bool:
    """Whether single rows were asked for, which then must apply."""
    return names is not None and names != "all" and list(names) != ["all"]


def find_rows(names: Any = None) -> list[Metric]:
    """Rows by name or by the name of their function (``sap`` for ``sap_score``).

    Without names all metrics; ``"all"`` is these and the downstream learners.
    """
    if not is_named(names):
        return list(METRICS.values() if names is None else ROWS.values())
    known = {row.function.__name__: row for row in ROWS.values()} | ROWS
    chosen: dict[str, Metric] = {}
    for name in [names] if isinstance(names, str) else names:
        short = str(name).strip().lower().replace("-", "_")
        if short not in known:
            raise unknown("metric", name, sorted({*known}))
        chosen[known[short].name] = known[short]
    if not chosen:
        raise ValueError("metrics names none; leave it out to measure all that apply")
    return list(chosen.values())
