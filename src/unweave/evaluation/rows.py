"""Rows of ``METRICS`` by name."""

from collections.abc import Mapping
from typing import Any

from unweave.config import unknown
from unweave.metrics import METRICS, Metric
from unweave.trusted import find_code, plug_in


def is_named(names: Any) -> bool:
    """Whether single rows were asked for, which then must apply."""
    return names is not None and names != "all" and list(names) != ["all"]


def find_rows(names: Any = None) -> list[Metric]:
    """Rows by name or by the name of their function (``sap`` for ``sap_score``).

    Without names all but the downstream learners, which with 10,000 labels take longer than all others together;
    ``"all"`` is every row.
    """
    if not is_named(names):
        return [row for row in METRICS.values() if names is not None or row.kind != "downstream"]
    known = {row.function.__name__: row for row in METRICS.values()} | METRICS
    chosen: dict[str, Metric] = {}
    for name in [names] if isinstance(names, str) else names:
        short = str(name).strip().lower().replace("-", "_")
        row = known[short] if short in known else _elsewhere(str(name).strip(), known)
        chosen[row.name] = row
    if not chosen:
        raise ValueError("metrics names none; leave it out to measure all that apply")
    return list(chosen.values())


def _elsewhere(name: str, known: Mapping[str, Metric]) -> Metric:
    """A row of an installed plug-in, or ``module:ROW`` of a module that is trusted."""
    path = name if ":" in name else plug_in("metric", name)
    if path is None:
        raise unknown("metric", name, known)
    row = find_code("metric", path)
    if not isinstance(row, Metric):
        raise ValueError(f"{path} is not a row of METRICS")
    return row
