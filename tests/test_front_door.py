"""`import unweave as uw`: what an editor, `dir` and `help` show is what there is, and every example runs."""

import ast
import doctest
import importlib
import inspect
import os
import subprocess
import sys
import types
import typing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import unweave as uw
from unweave.api import DimensionSettings, ModelSettings
from unweave.data.micro import Micro
from unweave.recipes.dimension_search import DimensionSearch

STUB = Path(uw.__file__).with_suffix(".pyi")
FUNCTIONS = [name for name in uw.__all__ if isinstance(getattr(uw, name), types.FunctionType)]


def test_the_product_and_nothing_else() -> None:
    assert set(dir(uw)) == {*uw.__all__, "__version__"}
    assert not [name for name in dir(uw) if isinstance(getattr(uw, name), types.ModuleType)]
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        uw.trian  # noqa: B018


def test_the_stub_names_everything_once() -> None:
    body = ast.parse(STUB.read_text()).body
    imported = [one for one in body if isinstance(one, ast.ImportFrom)]
    names = [(alias.name, alias.asname) for one in imported for alias in one.names]
    assert sorted(names) == [(name, name) for name in uw.__all__]
    for one in imported:
        assert one.module is not None
        assert hasattr(importlib.import_module(one.module), one.names[0].name)


def test_importing_takes_nothing_along() -> None:
    code = "import sys, unweave; print([m for m in sys.modules if m.startswith(('torch', 'numpy', 'unweave.'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_settings_of_train_are_the_fields_of_an_experiment() -> None:
    known = {field.name: field.default for field in fields(uw.Experiment)}
    taken = {name: one.default for name, one in inspect.signature(uw.train).parameters.items()}
    assert taken.pop("folder") is None
    assert taken.pop("quiet") is False
    assert taken.pop("own_data") is inspect.Parameter.empty
    assert taken.pop("world") is inspect.Parameter.empty
    assert known.pop("world") is MISSING
    assert taken == known
    assert list(taken) == list(known)


def test_an_experiment_is_trained_as_it_is(tmp_path: Path) -> None:
    asked = uw.Experiment(Micro(), uw.AE(), uw.MLP((8,), (8,)), latents=2, steps=3, plan=uw.Plan("cpu", 1))
    assert uw.train(asked, tmp_path / "one", quiet=True).experiment == asked.resolve()
    with pytest.raises(ValueError, match="brings its own settings, and latents, steps came beside it"):
        uw.train(asked, tmp_path / "two", steps=4, latents=3)
    assert not (tmp_path / "two").exists()


def test_the_settings_of_dimension_are_those_of_the_search_and_of_its_models() -> None:
    model = {field.name for field in fields(uw.Experiment)} - {"world"}
    assert set(ModelSettings.__annotations__) == model
    assert set(DimensionSettings.__annotations__) == model | {field.name for field in fields(DimensionSearch)}


@pytest.mark.parametrize("name", uw.__all__)
def test_everything_says_what_it_is(name: str) -> None:
    thing = getattr(uw, name)
    assert inspect.getdoc(thing)
    if name in FUNCTIONS:
        assert typing.get_type_hints(thing)["return"] not in (Any, None)
        assert ">>>" in inspect.getdoc(thing)


@pytest.mark.parametrize("name", ["unweave", *FUNCTIONS])
def test_examples_run(name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # one folder for all examples: the run that they train is trained once
    here = tmp_path_factory.getbasetemp() / "examples"
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    text = inspect.getdoc(uw if name == "unweave" else getattr(uw, name)) or ""
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert examples.examples
    told: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not failed, "".join(told)


def test_types_of_everything_are_checked() -> None:
    """`make check` runs mypy over the file that asserts them."""
    text = (Path(__file__).parent / "front_door_types.py").read_text()
    used = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute) and _is_uw(node.value)}
    assert set(uw.__all__) <= used


def _is_uw(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "uw"


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "20000 None"), ({"GOMP_SPINCOUNT": "7"}, "7 None"), ({"OMP_WAIT_POLICY": "active"}, "None active")],
)
def test_threads_that_wait_sleep_soon_unless_the_user_says_otherwise(given: dict[str, str], found: str) -> None:
    known = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    read = "import os, unweave; print(*map(os.environ.get, ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY')))"
    answer = subprocess.run([sys.executable, "-c", read], env=known | given, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == found
