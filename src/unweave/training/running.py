"""How to run, without any influence on the result: who watches, how often to save, when to stop."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class NotFinite(ArithmeticError):
    """Training stopped because a term of the loss was no longer a number."""


class GpuFailed(RuntimeError):
    """A GPU, or its driver, gave up in the middle; the process that used it cannot use it again."""


class Interrupted(RuntimeError):
    """Training was asked to stop, and saved everything first."""


@runtime_checkable
class Telling(Protocol):
    """Whoever knows the terms of the models that train."""

    def terms(self) -> list[dict[str, float]]: ...


@dataclass(frozen=True)
class StepReport:
    """What watchers are told after a step. Asking for terms makes a GPU finish first, so ask now and then.

    ``members``: of how many models ``done`` is the mean, where some of them have not begun; else 0.
    """

    done: int
    total: int
    recorded: bool
    engine: Telling
    members: int = 0

    def terms(self) -> list[dict[str, float]]:
        """The terms of every model that is well."""
        return self.engine.terms()

    def mean_loss(self) -> tuple[float, int]:
        """The mean loss, and of how many models."""
        losses = [terms["loss"] for terms in self.terms() if "loss" in terms]
        return (sum(losses) / len(losses) if losses else math.nan), len(losses)


Watcher = Callable[[StepReport], None]
"""Called after every step."""


@dataclass(frozen=True)
class RunOptions:
    """Who watches, how many seconds lie between checkpoints, when to stop, and which trackers are told."""

    watchers: tuple[Watcher, ...] = ()
    save_every: float = 30.0
    stop: Callable[[], bool] = lambda: False
    trackers: tuple[str, ...] = ()
