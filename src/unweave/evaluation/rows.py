"""Rows of ``METRICS`` by name."""

from typing import Any

from unweave.config import unknown
from unweave.metrics import METRICS, Metric


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
        if short not in known:
            raise unknown("metric", name, sorted({*known}))
        chosen[known[short].name] = known[short]
    if not chosen:
        raise ValueError("metrics names none; leave it out to measure all that apply")
    return list(chosen.values())
