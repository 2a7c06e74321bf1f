"""Runs the notebooks of docs/notebooks, which are kept as plain Python, and writes them with their results.

    python docs/make_notebooks.py            # those that changed since they were run
    python docs/make_notebooks.py first_model

Each runs in an empty folder of its own, in a fresh interpreter. The results (``*.ipynb``) are not kept in the
repository: the site is built from them.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent / "notebooks"
SOURCE = Path(__file__).parents[1] / "src"
PATIENCE = 600
"""Seconds for one cell."""


def main(names: list[str]) -> None:
    for place in sorted(HERE.glob("*.py")):
        if not names or place.stem in names:
            print(place.stem, "run" if run(place, again=bool(names)) else "is up to date", flush=True)


def run(place: Path, again: bool = False) -> bool:
    """Run one, unless its text and the package are as they were when it was run."""
    target, digest = place.with_suffix(".ipynb"), _digest(place)
    if not again and target.exists() and nbformat.read(target, 4).metadata.get("made_from") == digest:
        return False
    notebook = jupytext.read(place)
    os.environ |= {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata["made_from"] = digest
    nbformat.write(notebook, target)
    return True


def _digest(place: Path) -> str:
    files = [place, *sorted(SOURCE.rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
