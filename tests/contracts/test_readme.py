"""What the README says is so: commands are understood, code runs, links lead somewhere, numbers count."""

import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import unweave as uw
from unweave.cli import COMMANDS
from unweave.cli.options import parser_of, with_dashes
from unweave.recipes.zoo import OWN

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
TYPED = [line for line in LINES if line.startswith("unweave ")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NUMBERS = {"seven": 7, "ten": 10, "forty": 40, "fifty": 50}


def test_there_is_something_to_read() -> None:
    assert len(TYPED) >= 20
    assert [language for language, _ in BLOCKS].count("python") == 1


@pytest.mark.parametrize("line", TYPED)
def test_a_command_is_understood(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "people.csv").write_text("a,species\n1,x\n2,y\n")
    monkeypatch.chdir(tmp_path)
    _, command, *rest = shlex.split(line, comments=True)
    assert command in COMMANDS
    if "--list" in rest:  # answered before anything is imported
        return
    parser = parser_of(importlib.import_module(f"unweave.cli.{command}").run, rest)
    given = rest[1:] if command in ("study", "bench") else rest
    _, left = parser.parse_known_args(with_dashes(given))
    assert left in ([], given[:1])


def test_its_python_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With fewer steps and examples: the numbers are those of a model that has learned nothing."""
    (code,) = (text for language, text in BLOCKS if language == "python")
    assert {"steps=1800", "(500)"} <= set(re.findall(r"steps=1800|\(500\)", code))
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("steps=1800", "steps=4").replace("(500)", "(60)"), "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert re.search(r"\['(active|mixed|passive)'", told)
    assert "mig" in told


def test_its_links_lead_somewhere() -> None:
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", PAGE) if "://" not in link]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_numbers_count() -> None:
    (models,) = re.findall(r"one of \[(\w+) trained models\]", PAGE)
    assert NUMBERS[models] == len(uw.zoo(OWN))
    (notebooks,) = re.findall(r"(\w+) small\n\[notebooks\]", PAGE)
    assert NUMBERS[notebooks.lower()] == len(list((ROOT / "docs" / "notebooks").glob("*.py")))
    count, names = re.findall(r"recent versions of (\w+) other\s+packages \(([^)]+)\)", PAGE)[0]
    needed = {re.split(r"[<>=]", one)[0] for one in PROJECT["dependencies"]} - {"torch"}
    assert set(re.split(r",\s+", names)) == needed
    assert NUMBERS[count] == len(needed)


def test_every_extra_is_one() -> None:
    (told,) = re.findall(r"^Extras: (.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"\[(\w+)\]", told)) == set(PROJECT["optional-dependencies"])


def test_make_knows_what_is_asked_of_it() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"make (\w+)", PAGE)) - {"sure"} <= set(targets)


BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import numpy as np
import unweave as uw
from unweave.cli import main

small = {"network": uw.MLP((4,), (4,)), "latents": 2, "steps": 3}
run = uw.train(np.random.default_rng(0).random((20, 8, 8)), "runs/own", **small)
assert run.encode(np.zeros((8, 8))).mean.shape == (1, 2)
words = "train micro --network mlp --network.encoder-widths 4 --network.decoder-widths 4 --latents 2 --steps 3"
assert main([*words.split(), "--folder", "runs/one"]) == main([*words.split(), "--seeds", "0:2"]) == 0
"""


def test_a_machine_that_only_trains_and_encodes_needs_four_packages(tmp_path: Path) -> None:
    needed = {"torch", "numpy", "safetensors", "jaxtyping"}
    asked = {requirement.partition(">")[0] for requirement in PROJECT["dependencies"]} - needed
    imported = {"pillow": "PIL", "scikit-learn": "sklearn"}
    hidden = ",".join(imported.get(name, name) for name in asked)
    told = {**os.environ, "UNWEAVE_DATA": str(tmp_path / "data")}
    done = subprocess.run([sys.executable, "-c", BARE, hidden], cwd=tmp_path, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
