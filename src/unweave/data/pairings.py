"""Pairings: how the partner of an example is drawn in a world with factors, for methods that see pairs.

A pairing is a pure function of the first's factors and of random words. It takes any leading axes (step, model, batch),
runs on the words' device, and gives the same partners on every device.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch

from unweave.config import check_fields, number
from unweave.data.factors import Factor, FactorSpace
from unweave.shapes import Bool, Float, Int, Tensor

NameGroups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Partners:
    """Factor values of partners, and which factors were drawn anew; a new value may equal the old one.

    ``group`` is the number of the group of factors that a pair shares or changes, where there are groups.
    """

    factors: Int[Tensor, "*any factor"]
    redrawn: Bool[Tensor, "*any factor"]
    group: Int[Tensor, "*any"] | None = None


@dataclass(frozen=True)
class Pairing(ABC):
    """A way to draw a partner for every example."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self)

    def n_words(self, space: FactorSpace) -> int:
        """Random 32-bit words that one pair needs."""
        return len(space.factors)

    @abstractmethod
    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        """A partner for each of ``first``; ``words`` has :meth:`n_words` columns."""


@dataclass(frozen=True)
class Transitions(Pairing):
    """Small natural steps of every factor at once (Klindt et al., 2021): sparse, Laplace, truncated to the range.

    p(second | first) ∝ exp(−rate · distance / log size), over the values of a factor. Categorical factors have no
    distance: they stay, or with ``categorical_change`` every other value is at distance 1. ``always_change`` steps one
    random factor where none has moved, as their code does. ``cyclic`` takes the distance of a cyclic factor round its
    ring; their code does not, so SlowVAE's ``protocol="study"`` is ``Transitions(cyclic=False)``.
    """

    name: ClassVar[str] = "transitions"
    rate: float = number(1.0, above=0, help="steps are log(size)/rate values long")
    cyclic: bool = True
    categorical_change: bool = False
    always_change: bool = True

    def n_words(self, space: FactorSpace) -> int:
        return len(space.factors) + 2

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        n_factors = len(space.factors)
        second = _steps(space, self, False).draw(first, words[..., :n_factors])
        if self.always_change:
            second = self._nudged(space, first, second, words[..., n_factors:])
        return Partners(second, first != second)

    def _nudged(
        self,
        space: FactorSpace,
        first: Int[Tensor, "*any factor"],
        second: Int[Tensor, "*any factor"],
        words: Int[Tensor, "*any 2"],
    ) -> Int[Tensor, "*any factor"]:
        """One random factor stepped in the rows where nothing has moved."""
        movable = torch.tensor(
            [place for place, factor in enumerate(space.factors) if self.moves(factor)], device=first.device
        )
        if not len(movable):
            raise ValueError("no factor can change: all are categorical or single. Set always_change=False.")
        chosen = movable[below(len(movable), words[..., 0])]
        stepped = _steps(space, self, True).draw(first, words[..., 1:].expand_as(first))
        still = (first == second).all(dim=-1, keepdim=True)
        here = chosen[..., None] == torch.arange(len(space.factors), device=first.device)
        return torch.where(still & here, stepped, second)

    def moves(self, factor: Factor) -> bool:
        """Whether this factor can change at all."""
        return factor.size > 1 and (self.categorical_change or factor.kind != "categorical")


@dataclass(frozen=True)
class Changes(Pairing):
    """k random factors drawn anew, uniformly.

    ``k=None`` draws k per pair from 1 … factors − 1; ``often_one`` replaces it by 1 for half of the pairs. Both
    together are the sparse changes of Locatello et al. (2020); ``must_differ`` with ``k=None`` are those of the uniform
    transitions in Klindt et al. (2021). ``group`` is the number of the factor that was redrawn last.
    """

    name: ClassVar[str] = "changes"
    k: int | None = number(None, least=0, most=1000, help="factors drawn anew; else 1 to all but one, at random")
    often_one: bool = False
    must_differ: bool = False

    def n_words(self, space: FactorSpace) -> int:
        return 2 * len(space.factors) + 2

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        n_factors = len(space.factors)
        if self.k is not None and self.k > n_factors:
            raise ValueError(f"k must lie in 0…{n_factors} for the factors {', '.join(space.names)}, given {self.k}")
        counts = self._counts(n_factors, words[..., -2:])
        # the rank of a random word among a row's words: k ranks below k are a uniform choice of k factors
        order = words[..., n_factors : 2 * n_factors].argsort(dim=-1, stable=True)
        redrawn = order.argsort(dim=-1, stable=True) < counts
        fresh = words[..., :n_factors]
        second = _other(space, first, fresh) if self.must_differ else scaled(space, fresh)
        last = order.gather(-1, (counts - 1).clamp(min=0))[..., 0]
        return Partners(torch.where(redrawn, second, first), redrawn, last)

    def _counts(self, n_factors: int, words: Int[Tensor, "*any 2"]) -> Int[Tensor, "*any 1"]:
        drawn = words[..., :1]
        counts = 1 + below(max(1, n_factors - 1), drawn) if self.k is None else torch.full_like(drawn, self.k)
        if self.often_one:
            counts = torch.where(below(2, words[..., 1:]) == 0, counts.clamp(max=1), counts)
        return counts


@dataclass(frozen=True)
class SharePairs(Pairing):
    """Pairs that agree in one group of factors, chosen at random per pair, and are independent in the rest.

    Share labels of Shu et al. (2020). Without ``groups`` every single factor is one: "full sharing".
    """

    name: ClassVar[str] = "share"
    groups: NameGroups = ()

    def n_words(self, space: FactorSpace) -> int:
        return len(space.factors) + 1

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        return _grouped(space, first, words, ~_members(space, self.groups))


@dataclass(frozen=True)
class ChangePairs(Pairing):
    """Pairs that may differ only in one group of factors, chosen at random per pair (Shu et al., 2020)."""

    name: ClassVar[str] = "change"
    groups: NameGroups = ()

    def n_words(self, space: FactorSpace) -> int:
        return len(space.factors) + 1

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        return _grouped(space, first, words, _members(space, self.groups))


@dataclass(frozen=True)
class RankPairs(Pairing):
    """Independent pairs; :meth:`greater` tells the order of the named factors, or of all (Shu et al., 2020)."""

    name: ClassVar[str] = "rank"
    names: tuple[str, ...] = ()

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        return Partners(scaled(space, words), torch.ones_like(first, dtype=torch.bool))

    def greater(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], second: Int[Tensor, "*any factor"]
    ) -> Bool[Tensor, "*any ranked"]:
        """Whether the first's value is the greater; a tie is no."""
        return (first > second)[..., [space.position(name) for name in self.names or space.names]]


@dataclass(frozen=True)
class RandomPairs(Pairing):
    """The control: partners, and a group of one factor, that have nothing to do with the first."""

    name: ClassVar[str] = "random"

    def n_words(self, space: FactorSpace) -> int:
        return len(space.factors) + 1

    def partners(
        self, space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any word"]
    ) -> Partners:
        group = below(len(space.factors), words[..., -1])
        return Partners(scaled(space, words[..., :-1]), torch.ones_like(first, dtype=torch.bool), group)


PAIRINGS: dict[str, type[Pairing]] = {
    "transitions": Transitions,
    "changes": Changes,
    "share": SharePairs,
    "change": ChangePairs,
    "rank": RankPairs,
    "random": RandomPairs,
}


def step_probabilities(factor: Factor, rate: float, *, cyclic: bool = True) -> Float[Tensor, "first second"]:
    """p(second | first) of :class:`Transitions` for one factor, as a table in float64."""
    place = torch.arange(factor.size, dtype=torch.float64)
    distance = (place[:, None] - place).abs()
    if factor.kind == "cyclic" and cyclic:
        distance = torch.minimum(distance, factor.size - distance)
    if factor.kind == "categorical":
        distance = distance.clamp(max=1.0)
    # the scale log(size)/rate is the one of the authors' code: larger factors take larger steps
    return torch.softmax(-rate * distance / math.log(max(factor.size, 2)), dim=-1)


def below(high: int, words: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    """Uniform in 0 … high − 1."""
    return (words * high) >> 32


def scaled(space: FactorSpace, words: Int[Tensor, "*any factor"]) -> Int[Tensor, "*any factor"]:
    """Factor values, uniform and independent."""
    return (words * torch.tensor(space.sizes, device=words.device)) >> 32


def _other(
    space: FactorSpace, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any factor"]
) -> Int[Tensor, "*any factor"]:
    """Uniform over the values that are not the first."""
    single = [factor.name for factor in space.factors if factor.size < 2]
    if single:
        raise ValueError(f"{', '.join(single)} has one value only and cannot differ: set must_differ=False")
    sizes = torch.tensor(space.sizes, device=first.device)
    return (first + 1 + ((words * (sizes - 1)) >> 32)) % sizes


def _grouped(
    space: FactorSpace,
    first: Int[Tensor, "*any factor"],
    words: Int[Tensor, "*any word"],
    redrawn: Bool[Tensor, "group factor"],
) -> Partners:
    group = below(len(redrawn), words[..., -1])
    chosen = redrawn.to(first.device)[group]
    return Partners(torch.where(chosen, scaled(space, words[..., :-1]), first), chosen, group)


def _members(space: FactorSpace, groups: NameGroups) -> Bool[Tensor, "group factor"]:
    chosen = groups or [(name,) for name in space.names]
    if any(isinstance(group, str) or not group for group in chosen):
        raise ValueError(
            f"groups must be non-empty lists of factor names, such as [['{space.names[0]}']], not {groups}"
        )
    members = torch.zeros(len(chosen), len(space.factors), dtype=torch.bool)
    for row, group in enumerate(chosen):
        members[row, [space.position(name) for name in group]] = True
    return members


@dataclass(frozen=True)
class _Steps:
    """The distribution functions of every value of every factor, one row after the other, as 32-bit words.

    Row r's thresholds lie in [r · 2³³, r · 2³³ + 2³²], so one search in the whole list finds a value in its row.
    """

    thresholds: Int[Tensor, " entry"]
    starts: Int[Tensor, " row"]
    first_rows: Int[Tensor, " factor"]

    def draw(self, first: Int[Tensor, "*any factor"], words: Int[Tensor, "*any factor"]) -> Int[Tensor, "*any factor"]:
        """The values at which the distribution functions of ``first`` exceed word / 2³²."""
        device = first.device
        row = self.first_rows.to(device) + first
        found = torch.searchsorted(self.thresholds.to(device), (words + (row << 33)).contiguous(), right=True)
        return found - self.starts.to(device)[row]


@lru_cache(maxsize=64)
def _steps(space: FactorSpace, pairing: Transitions, away: bool) -> _Steps:
    """The steps of a space; with ``away`` those that leave the first value, wherever that is possible."""
    tables = [_step_table(pairing, factor, away) for factor in space.factors]
    sizes = torch.tensor([factor.size for factor in space.factors for _ in range(factor.size)])
    rows = torch.cat([_as_words(table).flatten() for table in tables])
    return _Steps(
        rows + (torch.repeat_interleave(torch.arange(len(sizes)), sizes) << 33),
        sizes.cumsum(0) - sizes,
        torch.tensor([0, *space.sizes]).cumsum(0)[:-1],
    )


def _step_table(pairing: Transitions, factor: Factor, away: bool) -> Float[Tensor, "first second"]:
    if not pairing.moves(factor):
        return torch.eye(factor.size, dtype=torch.float64)
    table = step_probabilities(factor, pairing.rate, cyclic=pairing.cyclic)
    if away:
        table = table * (1 - torch.eye(factor.size, dtype=torch.float64))
        table = table / table.sum(-1, keepdim=True)
    return table


def _as_words(probabilities: Float[Tensor, "row value"]) -> Int[Tensor, "row value"]:
    """A word w stands for the first value whose threshold is above w."""
    reached = torch.ceil(probabilities.cumsum(-1) * 2.0**32).long()
    # the last possible value, should rounding keep the sum a hair below one
    places = torch.arange(probabilities.shape[-1])
    last = (probabilities > 0).long().mul(places).amax(-1, keepdim=True)
    return torch.where(places < last, reached, 2**32)
