"""How much of a published experiment each size covers; one definition for all papers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unweave.config import unknown
from unweave.studies.study import SIZES

Value = TypeVar("Value")


@dataclass(frozen=True)
class Extent:
    """What a size has of a published experiment; fields that an experiment has no use for are left out."""

    n_seeds: int
    worlds: tuple[str, ...] = ()
    steps: int = 0
    n_samples: int = 0
    """Examples that a model is measured on."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By world: what of its experiments is not as published."""
    beta: Mapping[str, float] = field(default_factory=dict)
    """By world: β, where it is not the published one."""


def at_size(size: str, values: Mapping[str, Value]) -> Value:
    """What a table has for a size, or one sentence that names the sizes."""
    check_size(size)
    return values[size]


def check_size(size: str) -> None:
    """One sentence for a size that does not exist."""
    if size not in SIZES:
        raise unknown("size", size, SIZES)
