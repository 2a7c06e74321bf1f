"""The table of reproductions and the folders say the same, and listing them imports nothing heavy."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import unweave.recipes
from unweave.papers import PAPERS, SHORT
from unweave.recipes.reproductions import FOLDERS, REPRODUCTIONS, find_reproduction

RECIPES = Path(unweave.recipes.__file__).parent
HEAVY = ("torch", "numpy", "polars", "matplotlib", "scipy", "sklearn", "rich")


def test_every_file_with_a_reproduction_stands_in_the_table_and_every_line_leads_to_one() -> None:
    files = [path for folder in RECIPES.iterdir() if folder.is_dir() for path in folder.glob("*.py")]
    there = {f"{path.parent.name}.{path.stem}" for path in files if "\nREPRODUCTION = " in path.read_text()}
    assert there == {one.module for one in REPRODUCTIONS.values()}
    assert {module.partition(".")[0] for module in there} == set(FOLDERS)


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_a_file_says_what_its_line_says(name: str) -> None:
    one, line = find_reproduction(name), REPRODUCTIONS[name]
    assert (one.id, one.title, one.source) == (name, line.title, line.source)
    folder, _, file = line.module.partition(".")
    assert file in (name.partition("-")[2].lower().replace("-", "_").replace(".", "_"), name.replace("-", "_"))
    # the same outline everywhere: what is claimed, the study, the judge, and the row at the end
    module = importlib.import_module(f"unweave.recipes.{line.module}")
    assert (module.__doc__ or "").startswith(f"{name}")
    assert callable(module.study)
    assert callable(module.judge)
    last = (RECIPES / folder / f"{file}.py").read_text().rstrip().rpartition("\n\n")[2]
    assert last.strip().startswith("REPRODUCTION = ")


def test_papers_in_short_are_in_the_bibliography() -> None:
    assert set(SHORT) <= set(PAPERS)
    assert set(FOLDERS.values()) <= set(SHORT)


@pytest.mark.parametrize("words", [["--help"], ["reproduce", "--list"], ["reproduce", "--list", "--json"]])
def test_help_and_the_list_import_almost_nothing(words: list[str]) -> None:
    code = (
        "import sys; from unweave.cli import main; code = main(sys.argv[1:]);"
        f" heavy = [name for name in {HEAVY} if name in sys.modules];"
        " sys.exit(f'imported {heavy}, {len(sys.modules)} modules' if heavy or len(sys.modules) > 150 else code)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
