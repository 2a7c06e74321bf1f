"""A process that trusts nobody yet, in a folder of its own, as the installed command finds it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import unweave as uw
from unweave import trusted


@pytest.fixture
def fresh(tmp_path: Path, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder that is not on the path; what is imported from it is forgotten afterwards."""
    forget()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As another process would begin: nothing is trusted."""

    def begin() -> None:
        for name in ("_NAMED", "_PASSED", "_CARRIED", "_FILES"):
            monkeypatch.setattr(trusted, name, type(getattr(trusted, name))())

    return begin


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained for a moment."""
    folder = tmp_path_factory.mktemp("small") / "demo"
    network = uw.MLP((16,), (16,))
    return uw.train("micro", folder, network=network, latents=3, steps=20, snapshots=(0, 10), quiet=True).path
