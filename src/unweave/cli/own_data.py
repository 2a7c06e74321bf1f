"""Data of one's own on a command line: ``unweave train people.csv``, ``unweave train photos/``."""

from collections.abc import Sequence
from typing import Any

from unweave.config import to_plain
from unweave.data import WORLDS
from unweave.data.own import is_own_path, named_world
from unweave.models.objectives import OBJECTIVES
from unweave.training.experiment import FOR_TABLES


def with_world(argv: Sequence[str]) -> list[str]:
    """The same words with the world that a path at their beginning stands for."""
    if not argv or argv[0].startswith("-") or not is_own_path(argv[0]):
        return list(argv)
    found = named_world(argv[0])
    return [found["name"], "--world.path", found["path"], *argv[1:]]


def usual_components(world: str | None) -> dict[str, Any]:
    """The components that a world has where none are given, but for those of pictures."""
    return dict(FOR_TABLES) if world in WORLDS and WORLDS[world].tabular else {}


def usual_settings(world: str | None) -> dict[str, Any]:
    """The same as in a config.json."""
    return {name: to_plain(one) for name, one in usual_components(world).items()}


def fitting(settings: dict[str, Any], objective: str | None) -> dict[str, Any]:
    """Settings that nobody has asked for, less those of which the chosen method has no use."""
    kind = OBJECTIVES.get(objective or "")
    if kind is None:
        return settings
    own = all(phase.optimiser is not None for phase in kind().phases())
    idle = {"optimiser"} if own else set()
    return {name: one for name, one in settings.items() if name not in (idle if kind.warms_up else idle | {"warmup"})}
