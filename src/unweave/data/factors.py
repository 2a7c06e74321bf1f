"""Factor spaces: the named grid from which a world's images are generated."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch

from unweave import rng
from unweave.config import unknown
from unweave.shapes import Int, Tensor

Kind = Literal["ordinal", "categorical", "cyclic"]


@dataclass(frozen=True)
class Factor:
    """One generating factor: ``size`` values whose order is a line (ordinal), a ring (cyclic) or nothing (categorical).

    A hidden factor varies in the data but is not scored: the instance of a SmallNORB toy, for example.
    """

    name: str
    size: int
    kind: Kind = "ordinal"
    hidden: bool = False


@dataclass(frozen=True)
class FactorSpace:
    """A full grid of factors. Row ``i`` of a world is the i-th cell, the last axis running fastest."""

    axes: tuple[Factor, ...]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The axes that are scored."""
        return tuple(axis for axis in self.axes if not axis.hidden)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.factors)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in self.factors)

    @cached_property
    def n_cells(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        sizes = [axis.size for axis in self.axes]
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    def position(self, name: str) -> int:
        """The column of a factor."""
        if name not in self.names:
            raise unknown("factor", name, self.names)
        return self.names.index(name)

    def coordinates(self, rows: Int[Tensor, "*any"]) -> Int[Tensor, "*any axis"]:
        """Cell number to the value of every axis, hidden ones too."""
        self._inside(rows, self.n_cells, "row")
        return torch.stack([rows // s % axis.size for s, axis in zip(self.strides, self.axes)], dim=-1)

    def rows(self, coordinates: Int[Tensor, "*any axis"]) -> Int[Tensor, "*any"]:
        """The inverse of :meth:`coordinates`."""
        for place, axis in enumerate(self.axes):
            self._inside(coordinates[..., place], axis.size, axis.name)
        return (coordinates * torch.tensor(self.strides, device=coordinates.device)).sum(-1)

    def values(self, rows: Int[Tensor, "*any"]) -> Int[Tensor, "*any factor"]:
        """The scored factors of rows."""
        return self.coordinates(rows)[..., [not axis.hidden for axis in self.axes]]

    def sample(self, n: int, seed: int, step: int = 0) -> Int[Tensor, "sample factor"]:
        """Factor values drawn independently and uniformly."""
        drawn = rng.words(seed, rng.Purpose.WORLD, step, n, len(self.factors))
        return (drawn * torch.tensor(self.sizes)) >> 32

    def find(self, factors: Int[Tensor, "sample factor"], seed: int, step: int = 0) -> Int[Tensor, " sample"]:
        """Rows that show these factors; hidden axes are drawn at random."""
        drawn = rng.words(seed, rng.Purpose.NUISANCE, step, len(factors), max(1, self.n_hidden))
        return self.rows_of(factors, drawn)

    @cached_property
    def n_hidden(self) -> int:
        """How many axes are not scored."""
        return len(self.axes) - len(self.factors)

    def rows_of(self, factors: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]) -> Int[Tensor, "*any"]:
        """Rows that show these factors; each hidden axis takes one of the random 32-bit words."""
        columns, seen = iter(factors.unbind(-1)), iter(words.unbind(-1))
        parts = [(next(seen) * axis.size) >> 32 if axis.hidden else next(columns) for axis in self.axes]
        return self.rows(torch.stack(parts, dim=-1))

    def _inside(self, values: Tensor, size: int, name: str) -> None:
        if values.numel() and (int(values.min()) < 0 or int(values.max()) >= size):
            raise ValueError(f"{name} must lie in 0…{size - 1}, given {int(values.min())}…{int(values.max())}")
