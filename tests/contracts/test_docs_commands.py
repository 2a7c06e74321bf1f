"""Every command that the documentation shows is one that the command line understands, and its Python is Python."""

import ast
import importlib
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave.cli import COMMANDS, main
from unweave.cli.options import parser_of, with_dashes

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN = {"shrink": "method", "wide": "network", "laplace": "likelihood", "bars": "world"}
"""What pages begin by `unweave new`."""
ACTIONS = ("study", "bench", "zoo")
"""Commands whose first word says what they do."""


def commands(page: Path) -> list[str]:
    """Those of blocks, lines that go on joined; and those between backticks, unless a part is left to the reader."""
    text = page.read_text(encoding="utf-8")
    lines = [
        line.removeprefix("$ ")
        for language, block in BLOCK.findall(text)
        if language in ("sh", "console")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    inline = re.findall(r"`(unweave [^`]+)`", BLOCK.sub("", text).replace("\n", " "))
    found = [line for line in (*lines, *inline) if line.startswith("unweave ")]
    left_open = re.compile(r"…|\bNAME\b|\bMODULE\b|\[|mylib|^unweave study run$|^unweave train bars$")
    return [line.replace("WORLD", "micro") for line in dict.fromkeys(found) if not left_open.search(line)]


TYPED = [pytest.param(line, id=f"{page.stem}: {line[8:60]}") for page in PAGES for line in commands(page)]


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with pictures, a table and code of one's own, which is forgotten after."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module, kind in OWN.items():
        main(["new", kind, module, "--folder", str(tmp_path)])
    for folder in ("photos", "frames", "films"):
        (tmp_path / folder).mkdir()
        for number in range(2):
            Image.fromarray(np.full((4, 4), number, np.uint8)).save(tmp_path / folder / f"{number}.png")
    (tmp_path / "people.csv").write_text("a,species\n1,x\n2,y\n")
    monkeypatch.chdir(tmp_path)
    yield
    for module in OWN:
        sys.modules.pop(module, None)


def test_there_is_something_to_type() -> None:
    assert len(TYPED) > 100


@pytest.mark.parametrize("line", TYPED)
def test_a_command_is_understood(line: str) -> None:
    _, command, *rest = shlex.split(re.split(r"\s[>|]", line)[0], comments=True)
    assert command in COMMANDS or command in ("--help", "--version")
    if not rest or "--help" in rest or "--list" in rest:
        return
    parser = parser_of(importlib.import_module(f"unweave.cli.{command}").run, rest)
    given = rest[1:] if command in ACTIONS and command != "zoo" else rest
    _, left = parser.parse_known_args(with_dashes(given))
    assert left in ([], given[:1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_python_can_be_read(page: Path) -> None:
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            ast.parse(block)


def test_what_is_not_understood_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        test_a_command_is_understood("unweave show runs/demo --colour")


def test_the_reference_has_all_that_a_run_can_be_asked() -> None:
    """``run.sample`` and ``run.history`` too, which stand in a class that nobody imports."""
    pytest.importorskip("mkdocs", reason="the site is not installed: pip install 'unweave[docs]'")
    pages = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))["python_names"]()
    (options,) = re.findall(r"^::: unweave\.recipes\.opened\.Run\n    options: (.*)$", pages["api/functions.md"], re.M)
    assert "inherited_members: true" in options


def anchors(page: Path) -> set[str]:
    """What headings are linked by: their words in small letters, joined by hyphens."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_find_them(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", BLOCK.sub("", page.read_text(encoding="utf-8")))
    places = [((page.parent / file).resolve() if file else page, anchor) for file, anchor in links]
    lost = [anchor for place, anchor in places if place.suffix == ".md" and anchor not in anchors(place)]
    assert lost == []
