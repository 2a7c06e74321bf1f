"""Defaults and bounds are promises: whoever leaves a setting out, or gives the largest, gets the same as last year.

python tests/contracts/test_defaults.py writes them down anew, new ones included: read the difference.
"""

import dataclasses
import importlib
import inspect
import json
import math
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unweave.config import hints, to_plain
from unweave.data.files import Published
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
    found |= dict(constants())
    for name, row in METRICS.items():
        said = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
        found[f"{name}, its row"] = [{key: _plain(value) for key, value in said.items() if _counts(value)}]
        for option, parameter in inspect.signature(row.function).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                found[f"{name}({option})"] = [_plain(parameter.default)]
    return found


def constants() -> Iterator[tuple[str, list[Any]]]:
    """Every number that a module holds, that a class holds, and that a function takes where it is not given."""
    for module in _modules("metrics", "models", "evaluation", "studies", "data", "training"):
        short = module.__name__.removeprefix("unweave.")
        for name, value in vars(module).items():
            yield from _of_files(f"{short}.{name}", value)
            if getattr(value, "__module__", module.__name__) != module.__name__ or name.startswith("__"):
                continue
            if isinstance(value, type):
                yield from _of_class(f"{short}.{name}", value)
            elif inspect.isfunction(value):
                yield from _of_function(f"{short}.{name}", value)
            elif name.isupper() and _counts(value):
                yield f"{short}.{name}", [_plain(value)]


def _of_files(place: str, value: Any) -> Iterator[tuple[str, list[Any]]]:
    """The sizes of published files, and which of them people fetch."""
    for file in value if isinstance(value, tuple) else (value,):
        if isinstance(file, Published):
            yield f"{place} {file.file}", [file.n_bytes, file.by_hand]


def _of_class(place: str, cls: type) -> Iterator[tuple[str, list[Any]]]:
    written = {"__call__"} if dataclasses.is_dataclass(cls) else {"__call__", "__init__"}
    for name, value in vars(cls).items():
        function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
        if inspect.isfunction(function) and (not name.startswith("__") or name in written):
            yield from _of_function(f"{place}.{name}", function)
        elif not name.startswith("__") and _counts(value):
            yield f"{place}.{name}", [_plain(value)]
        yield from _of_files(f"{place}.{name}", value)
    if dataclasses.is_dataclass(cls):
        made = cls.__dataclass_params__  # type: ignore[attr-defined]
        yield f"{place} as a dataclass", [made.frozen, made.eq, made.order]
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        bounds = [_bounds(field.metadata[kind]) for kind in ("range", "entries") if kind in field.metadata]
        if bounds or _counts(field.default):
            yield f"{place}.{field.name}", [_plain(field.default) if _counts(field.default) else "…", *bounds]


def _of_function(place: str, function: Any) -> Iterator[tuple[str, list[Any]]]:
    for name, parameter in inspect.signature(inspect.unwrap(function)).parameters.items():
        if _counts(parameter.default):
            yield f"{place}({name})", [_plain(parameter.default)]


def _counts(value: Any) -> bool:
    """Whether a value is a number, a yes or no, or made of such."""
    if isinstance(value, dict):
        return bool(value) and all(isinstance(key, str | int) for key in value) and all(map(_counts, value.values()))
    return isinstance(value, bool | int | float) or (
        isinstance(value, tuple | list) and 0 < len(value) < 100 and all(map(_counts, value))
    )


def _modules(*parts: str) -> Iterator[ModuleType]:
    for part in parts:
        package = importlib.import_module(f"unweave.{part}")
        for module in pkgutil.walk_packages(package.__path__, f"unweave.{part}."):
            if "kernels" not in module.name:
                yield importlib.import_module(module.name)


def _bounds(allowed: Any) -> list[Any]:
    return [allowed.least, allowed.most, allowed.above, allowed.below]


def _plain(value: Any) -> Any:
    if value in (dataclasses.MISSING, inspect.Parameter.empty):
        return "must be given"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return to_plain(value) if dataclasses.is_dataclass(value) else list(value) if isinstance(value, tuple) else value


def test_defaults_and_bounds_are_those_that_were_promised() -> None:
    found, promised = json.loads(json.dumps(promises())), json.loads(PROMISED.read_text())
    assert {name: found.get(name, "gone") for name in promised} == promised


@pytest.mark.parametrize("part", ["metrics", "models", "evaluation", "studies", "data", "algorithms"])
def test_what_is_passed_around_cannot_be_changed(part: str) -> None:
    held = [(one, module.__name__) for module in _modules(part) for one in vars(module).values()]
    found = [one for one, module in held if isinstance(one, type) and one.__module__ == module]
    classes = [one for one in found if dataclasses.is_dataclass(one)]
    assert len(classes) > 3
    assert [one for one in classes if not one.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(promises().items()))
    PROMISED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
