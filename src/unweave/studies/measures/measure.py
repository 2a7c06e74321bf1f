"""A measure: what is found out about one finished run, kept in the run's folder and shown as columns of its study."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from unweave.config import fingerprint, to_plain
from unweave.training.run import Run


@dataclass(frozen=True)
class Measure(ABC):
    """A frozen dataclass with a ``name``; calling it with a run gives numbers, lists and dictionaries, ready for JSON.

    It is a pure function of the run and of its own fields. What it gives is written to :attr:`file` in the run's
    folder and never computed again; nested dictionaries become columns ``name.key.key`` of the study's table.
    """

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, run: Run) -> Mapping[str, Any]:
        """What this measure says of a run."""

    @property
    def others(self) -> tuple[str, ...]:
        """What the other runs are examples of (``identity``) whose models it opens: they lie in the same store."""
        return ()

    def check(self) -> None:  # noqa: B027
        """Refuse what could never be measured, before anything is trained. Who runs a study trusts what it names."""

    @cached_property
    def file(self) -> str:
        """Where it is kept in a run's folder; another setting of the same measure is another file."""
        return f"measures/{self.name}-{fingerprint(self, 8)}.json"


def protocol_of(measure: Measure) -> dict[str, Any]:
    """The settings of a measure in plain values: what its numbers were measured with."""
    plain = to_plain(measure)
    return {name: value for name, value in plain.items() if name != "name"} if isinstance(plain, dict) else {}
