"""A study by the name of a recipe, or from the user's own file."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from unweave.config import unknown
from unweave.files import require_file
from unweave.recipes.reproductions import REPRODUCTIONS, find_reproduction
from unweave.studies.study import SIZES, Study
from unweave.trusted import trust


class RecipeFailed(ValueError):
    """A recipe that raised, or did not return a study."""


def find_study(recipe: str, size: str) -> Study:
    """The study of a recipe at a size: a name of ``REPRODUCTIONS``, or a path to a file with ``study(size)``."""
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    if recipe in REPRODUCTIONS:
        return _called(find_reproduction(recipe).study, size, recipe)
    path = Path(recipe)
    if path.suffix != ".py":
        names = [*REPRODUCTIONS, "path/to/study.py"]
        raise unknown("recipe", recipe, names)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {recipe}; a recipe is a name, or a Python file with study(size)")
    require_file(path, "a Python file with study(size)")
    module = _imported(path.resolve())
    if not callable(getattr(module, "study", None)):
        raise RecipeFailed(f"{recipe} has no function study(size) that returns a Study")
    return _called(module.study, size, recipe)


def _imported(path: Path) -> ModuleType:
    """The file as a module that workers can import too: its folder comes first on the path."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", None) or ".").resolve() != path:
        raise RecipeFailed(f"a module named {path.stem} is loaded already; give {path.name} another name")
    trust(path.stem)  # whoever runs a file trusts it
    try:
        return importlib.import_module(path.stem)
    except Exception as error:
        raise RecipeFailed(_sentence(error, path)) from error


def _called(study: Any, size: str, recipe: str) -> Study:
    try:
        made = study(size)
    except Exception as error:
        raise RecipeFailed(_sentence(error, Path(recipe))) from error
    if not isinstance(made, Study):
        raise RecipeFailed(f"{recipe}: study({size!r}) returned {type(made).__name__}, not a Study")
    return made


def _sentence(error: Exception, path: Path) -> str:
    """What went wrong, and in which line of the recipe."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    if isinstance(error, UnicodeDecodeError) and not frames:
        return f"the recipe failed ({path}): it is no UTF-8 text"
    where = f"{path.name}, line {line}" if line else str(path)
    return f"the recipe failed ({where}): {type(error).__name__}: {error}"
