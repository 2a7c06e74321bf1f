"""Defaults and bounds are promises: whoever leaves a setting out, or gives the largest, gets the same as last year.

python tests/contracts/test_defaults.py writes them down anew, new ones included: read the difference.
"""

import dataclasses
import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from unweave.config import hints, to_plain
from unweave.metrics import METRICS
from unweave.training.experiment import TABLES, Experiment, Plan

PROMISED = Path(__file__).parents[1] / "reference" / "defaults.json"


def promises() -> dict[str, list[Any]]:
    """Every field of every component and every option of every metric: its default and its bounds."""
    found = {}
    tables = [(place, kind) for place, kind in hints(Experiment).items() if kind in TABLES]
    named = [(f"{place}.{name}", cls) for place, kind in tables for name, cls in TABLES[kind].items()]
    for place, cls in [*named, ("experiment", Experiment), ("plan", Plan)]:
        for field in dataclasses.fields(cls):
            bounds = [_bounds(field.metadata[kind]) for kind in ("range", "entries") if kind in field.metadata]
            found[f"{place}.{field.name}"] = [_plain(field.default), *bounds]
    for name, row in METRICS.items():
        for option, parameter in inspect.signature(row.function).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                found[f"{name}({option})"] = [_plain(parameter.default)]
    return found


def _bounds(allowed: Any) -> list[Any]:
    return [allowed.least, allowed.most, allowed.above, allowed.below]


def _plain(value: Any) -> Any:
    if value in (dataclasses.MISSING, inspect.Parameter.empty):
        return "must be given"
    return to_plain(value) if dataclasses.is_dataclass(value) else list(value) if isinstance(value, tuple) else value


def test_defaults_and_bounds_are_those_that_were_promised() -> None:
    found, promised = json.loads(json.dumps(promises())), json.loads(PROMISED.read_text())
    assert {name: found.get(name, "gone") for name in promised} == promised


@pytest.mark.parametrize("part", ["metrics", "models", "evaluation", "studies", "data", "algorithms"])
def test_what_is_passed_around_cannot_be_changed(part: str) -> None:
    package = importlib.import_module(f"unweave.{part}")
    found = []
    for module in pkgutil.walk_packages(package.__path__, f"unweave.{part}."):
        if not any(word in module.name for word in ("kernels", "on_ray", "on_slurm")):
            held = vars(importlib.import_module(module.name)).values()
            found += [one for one in held if isinstance(one, type) and one.__module__ == module.name]
    classes = [one for one in found if dataclasses.is_dataclass(one)]
    assert len(classes) > 3
    assert [one for one in classes if not one.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(promises().items()))
    PROMISED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
