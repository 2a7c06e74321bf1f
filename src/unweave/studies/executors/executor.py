"""Executors bring packs to workers: in this process, in others, on a cluster. Workers train and measure them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unweave.studies.pack import Pack
from unweave.training.running import RunOptions

Ended = Callable[[Pack], Sequence[Pack] | None]
"""Called when all runs of a pack have come to their end; packs that it returns are performed too."""


@dataclass(frozen=True)
class Executor(ABC):
    """Performs packs somewhere and returns when all have ended; when asked to stop, raises ``Interrupted``."""

    elsewhere: ClassVar[bool] = False
    """Whether the work is done on other machines, so that only they need the data."""

    workers: int = 1
    """How many packs are worked on at a time."""

    def n_gpus(self) -> int:
        """How many GPUs work at a time, so that fleets can be spread over them; 0 where nobody knows."""
        return 1

    @abstractmethod
    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None: ...
