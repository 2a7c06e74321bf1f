"""Pages that are made when the site is built: the README and its neighbours, every command's help, Python's names.

mkdocs calls what begins with ``on_`` (mkdocs.yml names this file). Nothing of it is kept: it cannot grow old.
"""

import ast
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
NEIGHBOURS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/NOTES.md")
"""Markdown that stands beside docs/ in the repository, and in it on the site."""
RESULTS = "results/about.md"
"""docs/results/README.md: beside index.html it cannot keep its name."""
FIRST_NOTEBOOK = "notebooks/first_model.ipynb"
LINK = re.compile(r"(!?\[[^]]*\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def on_pre_build(config: MkDocsConfig) -> None:
    """Notebooks are run, and fail the build where they fail."""
    sys.path.insert(0, str(Path(__file__).parent))
    from make_notebooks import main as run_notebooks

    run_notebooks([])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    texts = {"index.md": moved(_read("README.md"), "README.md", "index.md")}
    texts |= {name: moved(_read(name), name, name) for name in NEIGHBOURS}
    texts[RESULTS] = moved(_read("docs/results/README.md"), "docs/results/README.md", RESULTS)
    texts |= commands() | python_names()
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Links out of docs/ go to the pages that stand in for what is there."""
    name = page.file.src_uri  # type: ignore[attr-defined]
    stands = name in ("index.md", RESULTS, *NEIGHBOURS) or name.startswith(("commands/", "api/"))
    return markdown if stands else moved(markdown, f"docs/{name}", name)


def moved(text: str, source: str, page: str) -> str:
    """The text of a file of the repository, with links as its page on the site needs them."""

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        there = _on_site(target)
        if there is None:
            return f"{found[1][1:] if found[1].startswith('!') else found[1]}#)".replace("[", "").replace("](#)", "")
        return f"{found[1]}{posixpath.relpath(there, posixpath.dirname(page) or '.')}{found[3] or ''})"

    return LINK.sub(link, text)


def _on_site(target: str) -> str | None:
    """Where a file of the repository is on the site, if it is there."""
    renamed = {"README.md": "index.md", "docs/results/README.md": RESULTS, "docs/notebooks": FIRST_NOTEBOOK}
    if target in renamed:
        return renamed[target]
    if target in NEIGHBOURS:
        return target
    return target.removeprefix("docs/") if target.startswith("docs/") else None


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def commands() -> dict[str, str]:
    """A page for every command: its help, as the terminal prints it."""
    sys.path.insert(0, str(ROOT / "src"))
    from unweave.cli import COMMANDS

    pages = {
        "commands/index.md": f"# Commands\n\n{_help()}\n\n" + "\n".join(f"- [{name}]({name}.md)" for name in COMMANDS)
    }
    return pages | {f"commands/{name}.md": f"# unweave {name}\n\n{_help(name)}\n" for name in COMMANDS}


def _help(*command: str) -> str:
    told = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT / "src")}
    asked = [sys.executable, "-m", "unweave", *command, "--help"]
    said = subprocess.run(asked, env=told, capture_output=True, text=True, check=True).stdout
    return f"```text\n{said.rstrip()}\n```"


def python_names() -> dict[str, str]:
    """A page for every kind of public name, its text from docstrings."""
    groups: dict[str, list[str]] = {}
    for node in ast.parse(_read("src/unweave/__init__.pyi")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            groups.setdefault(_kind(node.module), []).extend(f"{node.module}.{alias.name}" for alias in node.names)
    pages = {f"api/{kind}.md": _reference(kind, names) for kind, names in groups.items()}
    lines = [
        f"- [{kind}]({kind}.md): " + ", ".join(f"`{name.rpartition('.')[2]}`" for name in names)
        for kind, names in groups.items()
    ]
    return pages | {
        "api/index.md": "# Python\n\n`import unweave as uw`; every name below is `uw.NAME`.\n\n" + "\n".join(lines)
    }


def _kind(module: str) -> str:
    part = module.split(".")
    return {"api": "functions", "models": part[-1], "recipes": "functions", "trusted": "functions"}.get(
        part[1], part[1]
    )


def _reference(kind: str, names: list[str]) -> str:
    # a run has most of its methods from the class that trains it
    more = {name: ", inherited_members: true" if name.endswith(".Run") else "" for name in names}
    blocks = (f"::: {name}\n    options: {{heading_level: 2{options}}}" for name, options in more.items())
    return f"# {kind.capitalize()}\n\n" + "\n\n".join(blocks) + "\n"
