"""Every table is complete: what stands in a family's folder stands in its table, under its own name, and no more."""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from unweave.cli import COMMANDS
from unweave.data import WORLDS
from unweave.data.world import World
from unweave.metrics import METRICS, Metric
from unweave.models import LIKELIHOODS, NETWORKS, OBJECTIVES, OPTIMISERS, POSTERIORS
from unweave.models.likelihoods import Likelihood
from unweave.models.networks import Network
from unweave.models.objectives import Method
from unweave.models.optimisers import Optimiser
from unweave.models.posteriors import Posterior
from unweave.studies.measures import MEASURES
from unweave.studies.measures.measure import Measure

FAMILIES: dict[str, tuple[str, type, Mapping[str, type]]] = {
    "WORLDS": ("unweave.data", World, WORLDS),
    "OBJECTIVES": ("unweave.models.objectives", Method, OBJECTIVES),
    "NETWORKS": ("unweave.models.networks", Network, NETWORKS),
    "LIKELIHOODS": ("unweave.models.likelihoods", Likelihood, LIKELIHOODS),
    "POSTERIORS": ("unweave.models.posteriors", Posterior, POSTERIORS),
    "OPTIMISERS": ("unweave.models.optimisers", Optimiser, OPTIMISERS),
    "MEASURES": ("unweave.studies.measures", Measure, MEASURES),
}
"""Where a family lives, what its members derive from, and its table."""


def modules(place: str) -> Iterator[ModuleType]:
    """A module, or every module of a package and of those inside it."""
    package = importlib.import_module(place)
    yield package
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), f"{place}."):
        yield importlib.import_module(found.name)


def members(place: str, base: type) -> set[type]:
    """The public classes that are defined there, derive from the base, and can be made."""
    return {
        cls
        for module in modules(place)
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, base) and cls.__module__ == module.__name__
        if not name.startswith("_") and not inspect.isabstract(cls)
    }


def is_metric(module: ModuleType) -> bool:
    """Whether the function named like its file turns codes into something with a score."""
    function = vars(module).get(module.__name__.rpartition(".")[2])
    if not inspect.isfunction(function):
        return False
    result = typing.get_type_hints(function).get("return")
    fields = {*dir(result), *getattr(result, "__dataclass_fields__", ())}
    return "score" in fields and next(iter(inspect.signature(function).parameters)) in ("codes", "mean", "models")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_is_the_folder(family: str) -> None:
    place, base, table = FAMILIES[family]
    assert members(place, base) == set(table.values()), f"{place} and {family} differ"
    assert {name: cls.name for name, cls in table.items()} == {name: name for name in table}  # type: ignore[attr-defined]
    assert len({*table.values()}) == len(table)


def test_every_metric_is_in_the_table() -> None:
    for module in modules("unweave.metrics"):
        row = vars(module).get("ROW")
        assert is_metric(module) == isinstance(row, Metric), f"{module.__name__}: a metric has a ROW, nothing else has"
        assert row is None or METRICS.get(row.name) is row, f"{module.__name__} has no line in METRICS"
    assert {name: row.name for name, row in METRICS.items()} == {name: name for name in METRICS}


def test_every_command_is_in_the_table() -> None:
    found = {module.__name__.rpartition(".")[2] for module in modules("unweave.cli") if takes_words(module)}
    assert found == set(COMMANDS)


def takes_words(module: ModuleType) -> bool:
    run: Any = vars(module).get("run")
    return inspect.isfunction(run) and list(inspect.signature(run).parameters) == ["argv"]


def test_a_forgotten_member_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    place, base, table = FAMILIES["LIKELIHOODS"]
    known = table["gaussian"]
    forgotten = type("Forgotten", (known,), {"__module__": place})
    monkeypatch.setattr(importlib.import_module(place), "Forgotten", forgotten, raising=False)
    assert members(place, base) - set(table.values()) == {forgotten}
