"""Rows of ``METRICS`` by name."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unweave.config import unknown
from unweave.evaluation.own_metric import own_metric
from unweave.metrics import METRICS, Metric
from unweave.trusted import find_code, plug_in, plug_in_names

Metrics = str | Metric | Callable[..., Any] | Sequence[str | Metric | Callable[..., Any]] | None
"""What may be asked for: names, rows, or functions of one's own."""


def is_named(names: Any) -> bool:
    """Whether single rows were asked for, which then must apply."""
    return names is not None and names != "all" and (_is_one(names) or list(names) != ["all"])


def find_rows(names: Any = None) -> list[Metric]:
    """Rows by name or by the name of their function (``sap`` for ``sap_score``), as ``module:function``, or themselves.

    Without names all but the downstream learners, which with 10,000 labels take longer than all others together;
    ``"all"`` is every row.
    """
    if not is_named(names):
        return [row for row in METRICS.values() if names is not None or row.kind != "downstream"]
    chosen: dict[str, Metric] = {}
    for name in [names] if _is_one(names) else names:
        row = _row(name)
        if chosen.setdefault(row.name, row) != row:
            raise ValueError(f"two of the metrics are called {row.name}; give one of them another name")
    if not chosen:
        raise ValueError("metrics names none; leave it out to measure all that apply")
    return list(chosen.values())


def row_among(name: Any, rows: Sequence[Metric]) -> Metric:
    """The row that a name stands for among those that are asked for, or else among all."""
    return next((row for row in rows if name in (row.name, row, row.function)), None) or find_rows([name])[0]


def _is_one(names: Any) -> bool:
    return isinstance(names, str | Metric) or callable(names)


def _row(name: Any) -> Metric:
    if isinstance(name, Metric):
        return name
    if callable(name):
        return _row_of(name)
    known = {row.function.__name__: row for row in METRICS.values()} | METRICS
    short = str(name).strip().lower().replace("-", "_")
    return known[short] if short in known else _elsewhere(str(name).strip(), known)


def _elsewhere(name: str, known: Mapping[str, Metric]) -> Metric:
    """A metric of an installed plug-in, or ``module:function`` or ``module:ROW`` of a module that is trusted."""
    path = name if ":" in name else plug_in("metric", name)
    if path is None:
        raise unknown("metric", name, {*known, *plug_in_names("metric")})
    found = find_code("metric", path)
    if isinstance(found, Metric):
        return found
    if isinstance(found, type) or not callable(found):
        raise ValueError(f"{path} is not a row of METRICS, nor a function of codes that gives a number")
    return _row_of(found)


def _row_of(function: Any) -> Metric:
    """The row that stands in a function's file, or else what its arguments tell."""
    row = getattr(sys.modules.get(getattr(function, "__module__", "")), "ROW", None)
    if isinstance(row, Metric) and function in (row.function, getattr(row.function, "__wrapped__", None)):
        return row
    return own_metric(function)
