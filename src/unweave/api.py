"""The short way in, for notebooks: load a world, and open a run (to train one: `unweave.training.notebook`)."""

from pathlib import Path
from typing import Any

from unweave.config import from_plain
from unweave.data import WORLDS, Data, World
from unweave.training.experiment import TABLES
from unweave.training.run import Run


def world(name: str, **options: Any) -> Data:
    """The data of a world, by name: ``uw.world("dsprites")``, ``uw.world("images", path="faces/")``."""
    described: World = from_plain(World, {"name": name} | options, TABLES, "world")
    return described.load()


def worlds() -> list[str]:
    """The names of all worlds."""
    return list(WORLDS)


def load(folder: str | Path) -> Run:
    """Open a run by its folder."""
    return Run(folder)
