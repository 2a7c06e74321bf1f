"""A figure is its function, its line in ``FIGURES`` and its test: nothing is missing on either side."""

import ast
import re
from pathlib import Path

import pytest

from unweave import plots
from unweave.plots import FIGURES

FOLDER = Path(plots.__path__[0])
TESTS = Path(__file__).parents[1]
FRAMES = {"style"}
"""Modules whose functions make empty figures for others to draw on."""


def functions(path: Path) -> list[ast.FunctionDef]:
    return [one for one in ast.parse(path.read_text()).body if isinstance(one, ast.FunctionDef) and one.name[0] != "_"]


def figures(folder: Path) -> dict[str, str]:
    """Every public function of a folder that returns a figure, as a line of the table."""
    return {
        one.name: f"{path.stem}:{one.name}"
        for path in folder.glob("*.py")
        if path.stem not in FRAMES
        for one in functions(path)
        if one.returns is not None and ast.unparse(one.returns) == "'matplotlib.figure.Figure'"
    }


def test_every_figure_has_its_line(tmp_path: Path) -> None:
    assert figures(FOLDER) == FIGURES
    assert list(FIGURES) == sorted(FIGURES)
    (tmp_path / "pies.py").write_text('def pie(values) -> "matplotlib.figure.Figure":\n    return None\n')
    assert figures(tmp_path) == {"pie": "pies:pie"}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_words_and_its_test(name: str) -> None:
    module = FIGURES[name].partition(":")[0]
    (drawn,) = (one for one in functions(FOLDER / f"{module}.py") if one.name == name)
    assert ast.get_docstring(drawn)
    called = re.compile(rf"\b{name}\(")
    assert any(called.search(path.read_text()) for path in TESTS.rglob("test_*.py"))


def test_figures_know_arrays_and_tables_alone() -> None:
    """A figure is asked by pages and notebooks alike: it never opens a run or a model."""
    forbidden = re.compile(r"unweave\.(training|runs|studies|pages|evaluation|models)")
    assert [path.name for path in FOLDER.glob("*.py") if forbidden.search(path.read_text())] == []
