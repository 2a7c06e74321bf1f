"""Whose code may run: this package's, that of installed plug-ins, and that of modules which the user has named.

A run folder, an export or a study's record may come from a stranger, and may name any ``module:Class``. Such a name is
looked up here before anything is imported, and whatever nobody has allowed is refused in one sentence.
"""

import hashlib
import importlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

GROUPS = {
    "objective": ("unweave.methods", "unweave.objectives"),
    "world": ("unweave.worlds",),
    "network": ("unweave.networks",),
    "likelihood": ("unweave.likelihoods",),
    "optimiser": ("unweave.optimisers",),
    "measure": ("unweave.measures",),
    "metric": ("unweave.metrics",),
}
"""What is looked for, and the groups of entry points in which installed plug-ins offer it."""

_NAMED: set[str] = set()
_PASSED: dict[str, type] = {}
_CARRIED: dict[str, str] = {}
_FILES: dict[str, Path] = {}


class Untrusted(ValueError):
    """A name stands for code that nobody has allowed to run."""


def trust(*modules: str) -> None:
    """Let what is opened from now on, in this process, use the code of these modules and of those inside them.

    A run folder may name code that is not part of unweave. Opening it runs that code only where its module was named
    here, or by ``--trust`` on the command line. A file, ``path/to/mylib.py``, is run as the module ``mylib``.

    >>> import unweave as uw
    >>> uw.trust("mylib", "labs.objectives")
    """
    for module in modules:
        file = Path(module) if module.endswith(".py") and len(module) > 3 else None
        if not _is_dotted(file.stem if file else module):
            raise ValueError(
                "a module is named as in an import, such as mylib or mylib.objectives, or by its file,"
                f" path/to/mylib.py, not {module!r}"
            )
        if file:
            _trust_own_file(file)
        else:
            _NAMED.add(module)


def trusted_modules() -> tuple[str, ...]:
    """The modules that were named so far: what a worker of the same user is told."""
    return tuple(sorted(_NAMED))


def trust_class(cls: type) -> None:
    """Whoever passes an object from Python has run its class already: this class, in this process, is known by name."""
    if not _is_ours(cls.__module__):
        _PASSED[f"{cls.__module__}:{cls.__qualname__}"] = cls


def is_trusted(module: str) -> bool:
    """Whether a module, or a package around it, is this package's or was named."""
    parts = module.split(".")
    return _is_ours(module) or any(".".join(parts[:n]) in _NAMED for n in range(1, len(parts) + 1))


def plug_in(what: str, name: str) -> str | None:
    """The ``module:Class`` of an installed plug-in, by its name or by that path; nothing is imported."""
    from importlib.metadata import entry_points

    for group in GROUPS.get(what, ()):
        for entry in entry_points(group=group):
            path = f"{entry.module}:{entry.attr}"
            if name in (entry.name, path) and _is_installed(entry):
                return path
    return None


def plug_in_names(what: str) -> list[str]:
    """The names under which installed plug-ins offer something; nothing is imported."""
    from importlib.metadata import entry_points

    found = [entry for group in GROUPS.get(what, ()) for entry in entry_points(group=group)]
    return sorted({entry.name for entry in found if _is_installed(entry)})


def trust_words(modules: Iterable[str]) -> str:
    """`` --trust mylib`` for everything that a command has to be told; what is installed as a plug-in needs no word."""
    from importlib.metadata import entry_points

    groups = [group for names in GROUPS.values() for group in names]
    offered = {entry.module for group in groups for entry in entry_points(group=group) if _is_installed(entry)}
    return "".join(f" --trust {_as_named(module)}" for module in sorted({*modules} - offered))


def _as_named(module: str) -> str:
    """A module by its name, or by its file where that lies in another folder."""
    file = _FILES.get(module)
    return module if file is None or file.resolve().parent == Path.cwd() else shlex.quote(str(file))


def find_code(what: str, path: str) -> Any:
    """What ``module:Class`` stands for, where its code may run; only then is its module imported."""
    if path in _PASSED:
        return _PASSED[path]
    module, _, name = path.partition(":")
    if not (_is_dotted(module) and _is_dotted(name)) or len(path) > 500:
        raise ValueError(f"the {what} {path[:80]!r} is no import path module:Class")
    if not is_trusted(module) and plug_in(what, path) is None:
        raise Untrusted(
            f"this run uses the {what} {path}, which is not part of unweave;"
            f" if you trust that code, add --trust {module}, or uw.trust({module!r}) in Python"
        )
    try:
        found: Any = _imported(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import the {what} {path}: {error}{_where(error, module)}") from error
    return found


def _where(error: Exception, module: str) -> str:
    """What to do where the module itself is missing."""
    first = module.partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or error.name != first:
        return ""
    return (
        f"; it is neither installed nor in {os.getcwd()}: go where {first}.py lies, or name the file with --trust"
        f" FOLDER/{first}.py (a store keeps the file of its study in .unweave/modules)"
    )


def carry(path: Path, content: bytes) -> None:
    """Remember a file that the user runs, so that workers elsewhere run the same one."""
    _CARRIED[path.stem] = hashlib.sha256(content).hexdigest()


def carried_files() -> dict[str, str]:
    """Module name to SHA-256, for every file that is carried to workers."""
    return dict(_CARRIED)


def trust_file(path: Path, expected: str) -> None:
    """Run a Python file as a module of its own name, if its SHA-256 is this; its folder does not come on the path."""
    if path.stem not in sys.modules:
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise Untrusted(f"{path} is not the file that was sent with the study; run the study again")
        _run_file(path)
    trust(path.stem)


def _trust_own_file(path: Path) -> None:
    """Run a file that the user has named; its folder does not come on the path."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} whose code could be trusted")
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", None) or ".").resolve() != path.resolve():
        raise ValueError(f"a module named {path.stem} is loaded already; give {path} another name")
    if known is None:
        _run_file(path)
    _NAMED.add(path.stem)
    _FILES[path.stem] = path


def _run_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "unweave" and "__main__" not in module


def _is_dotted(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _is_installed(entry: Any) -> bool:
    """Whether a plug-in was installed; what merely lies in the working folder was not."""
    return entry.dist is None or Path(entry.dist.locate_file("")).resolve() != Path.cwd()


def _imported(module: str) -> ModuleType:
    if module in sys.modules:
        return sys.modules[module]
    first = module.partition(".")[0]
    if first not in sys.modules and not _is_ours(module) and importlib.util.find_spec(first) is None:
        _find_in_working_folder(first)
    return importlib.import_module(module)


def _find_in_working_folder(first: str) -> None:
    """The installed command does not look there; a module that the user has named may lie there."""
    here, named = os.getcwd(), {name.partition(".")[0] for name in _NAMED}
    there = os.path.isfile(f"{here}/{first}.py") or os.path.isdir(f"{here}/{first}")
    if first in named and there and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
