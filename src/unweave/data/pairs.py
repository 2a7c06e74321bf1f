"""Pairs of factor values for weak supervision: transitions, changes, and share, change and rank pairs.

Every function is pure in (space, n, seed, step), and a pair does not depend on how many are drawn with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unweave import rng
from unweave.data.factors import Factor, FactorSpace
from unweave.shapes import Bool, Float, Int, Tensor

Groups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Pairs:
    """Two rows of factor values each, and which factors were drawn anew for the second.

    A new value may equal the old one, unless the function says otherwise; ``changed`` tells which really differ.
    ``group`` is the number of the factor group that a pair shares or changes, where there are groups.
    """

    first: Int[Tensor, "sample factor"]
    second: Int[Tensor, "sample factor"]
    redrawn: Bool[Tensor, "sample factor"]
    group: Int[Tensor, " sample"] | None = None

    @property
    def changed(self) -> Bool[Tensor, "sample factor"]:
        return self.first != self.second


@dataclass(frozen=True)
class RankPairs:
    """Two independent rows of factor values each, and whether the first's is the greater (a tie is no)."""

    first: Int[Tensor, "sample factor"]
    second: Int[Tensor, "sample factor"]
    greater: Bool[Tensor, "sample ranked"]


def transitions(
    space: FactorSpace,
    n: int,
    seed: int,
    step: int = 0,
    *,
    rate: float = 1.0,
    categorical_change: bool = False,
    always_change: bool = True,
) -> Pairs:
    """Small natural steps of every factor at once (Klindt et al., 2021): sparse, Laplace, truncated to the range.

    p(second | first) ∝ exp(−rate · distance / log size), over the values of a factor; the distance is taken round the
    ring for a cyclic factor. Categorical factors have no distance: they stay, or with ``categorical_change`` every
    other value is at distance 1. ``always_change`` steps one random factor when none has moved, as their code does.
    """
    if not rate > 0:
        raise ValueError(f"rate must be positive, not {rate}")
    n_factors = len(space.factors)
    drawn = _words(n, seed, step, 2 * n_factors + 2)
    first = _scaled(drawn[:, :n_factors], space)
    moves = [categorical_change or factor.kind != "categorical" for factor in space.factors]
    tables = [step_probabilities(factor, rate) for factor in space.factors]
    columns = [
        _pick(table[first[:, place]], drawn[:, n_factors + place]) if moves[place] else first[:, place]
        for place, table in enumerate(tables)
    ]
    second = torch.stack(columns, dim=-1)
    if always_change:
        second = _nudge(first, second, tables, moves, drawn[:, -2:])
    return Pairs(first, second, first != second)


def changes(
    space: FactorSpace,
    n: int,
    seed: int,
    step: int = 0,
    *,
    k: int | None = None,
    often_one: bool = False,
    must_differ: bool = False,
) -> Pairs:
    """k random factors drawn anew, uniformly.

    ``k=None`` draws k per pair from 1 … factors − 1; ``often_one`` replaces it by 1 for half of the pairs. Both
    together are the sparse changes of Locatello et al. (2020); ``must_differ`` with ``k=None`` are those of the
    uniform transitions in Klindt et al. (2021).
    """
    n_factors = len(space.factors)
    if k is not None and not 0 <= k <= n_factors:
        raise ValueError(f"k must lie in 0…{n_factors} for the factors {', '.join(space.names)}, given {k}")
    drawn = _words(n, seed, step, 3 * n_factors + 2)
    first = _scaled(drawn[:, :n_factors], space)
    counts = 1 + _below(max(1, n_factors - 1), drawn[:, -2]) if k is None else torch.full((n,), k)
    if often_one:
        counts = torch.where(_below(2, drawn[:, -1]) == 0, counts.clamp(max=1), counts)
    # the rank of a random word among a row's words: k ranks below k are a uniform choice of k factors
    redrawn = drawn[:, 2 * n_factors : 3 * n_factors].argsort(dim=-1).argsort(dim=-1) < counts[:, None]
    fresh = drawn[:, n_factors : 2 * n_factors]
    second = _other(first, fresh, space) if must_differ else _scaled(fresh, space)
    return Pairs(first, torch.where(redrawn, second, first), redrawn)


def share_pairs(space: FactorSpace, n: int, seed: int, step: int = 0, *, groups: Groups | None = None) -> Pairs:
    """Pairs that agree in one group of factors, chosen at random per pair, and are independent in the rest.

    Share labels of Shu et al. (2020). Without ``groups`` every single factor is one: "full sharing".
    """
    return _grouped(space, n, seed, step, ~_members(space, groups))


def change_pairs(space: FactorSpace, n: int, seed: int, step: int = 0, *, groups: Groups | None = None) -> Pairs:
    """Pairs that may differ only in one group of factors, chosen at random per pair (Shu et al., 2020)."""
    return _grouped(space, n, seed, step, _members(space, groups))


def rank_pairs(
    space: FactorSpace, n: int, seed: int, step: int = 0, *, names: Sequence[str] | None = None
) -> RankPairs:
    """Independent pairs with the order of the named factors, all by default (rank labels, Shu et al., 2020)."""
    drawn = _words(n, seed, step, 2 * len(space.factors))
    first, second = (_scaled(half, space) for half in drawn.chunk(2, dim=-1))
    ranked = [space.position(name) for name in (space.names if names is None else names)]
    return RankPairs(first, second, (first > second)[:, ranked])


def step_probabilities(factor: Factor, rate: float) -> Float[Tensor, "first second"]:
    """p(second | first) of :func:`transitions` for one factor, as a table in float64."""
    place = torch.arange(factor.size, dtype=torch.float64)
    distance = (place[:, None] - place).abs()
    if factor.kind == "cyclic":
        distance = torch.minimum(distance, factor.size - distance)
    if factor.kind == "categorical":
        distance = distance.clamp(max=1.0)
    # the scale log(size)/rate is the one of the authors' code: larger factors take larger steps
    return torch.softmax(-rate * distance / math.log(max(factor.size, 2)), dim=-1)


def _nudge(
    first: Int[Tensor, "sample factor"],
    second: Int[Tensor, "sample factor"],
    tables: list[Tensor],
    moves: list[bool],
    drawn: Int[Tensor, "sample 2"],
) -> Int[Tensor, "sample factor"]:
    """One random factor stepped in the rows where nothing has moved."""
    movable = torch.tensor([place for place, table in enumerate(tables) if moves[place] and len(table) > 1])
    if not len(movable):
        raise ValueError("no factor can change: all are categorical or single. Set always_change=False.")
    chosen = movable[_below(len(movable), drawn[:, 0])]
    still = (first == second).all(dim=-1)
    for place in movable.tolist():
        rows = torch.nonzero(still & (chosen == place))[:, 0]
        away = tables[place][first[rows, place]].scatter(1, first[rows, place, None], 0.0)
        second[rows, place] = _pick(away / away.sum(-1, keepdim=True), drawn[rows, 1])
    return second


def _grouped(space: FactorSpace, n: int, seed: int, step: int, redrawn: Bool[Tensor, "group factor"]) -> Pairs:
    n_factors = len(space.factors)
    drawn = _words(n, seed, step, 2 * n_factors + 1)
    first, second = (_scaled(half, space) for half in drawn[:, :-1].chunk(2, dim=-1))
    group = _below(len(redrawn), drawn[:, -1])
    return Pairs(first, torch.where(redrawn[group], second, first), redrawn[group], group)


def _members(space: FactorSpace, groups: Groups | None) -> Bool[Tensor, "group factor"]:
    chosen = [(name,) for name in space.names] if groups is None else groups
    if not chosen or any(isinstance(group, str) or not group for group in chosen):
        raise ValueError(
            f"groups must be non-empty lists of factor names, such as [['{space.names[0]}']], not {groups}"
        )
    members = torch.zeros(len(chosen), len(space.factors), dtype=torch.bool)
    for number, group in enumerate(chosen):
        members[number, [space.position(name) for name in group]] = True
    return members


def _words(n: int, seed: int, step: int, columns: int) -> Int[Tensor, "sample column"]:
    return rng.words(seed, rng.Purpose.PAIR, step, n, columns)


def _below(high: int, words: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    return (words * high) >> 32


def _scaled(words: Int[Tensor, "sample factor"], space: FactorSpace) -> Int[Tensor, "sample factor"]:
    return (words * torch.tensor(space.sizes)) >> 32


def _other(
    first: Int[Tensor, "sample factor"], words: Int[Tensor, "sample factor"], space: FactorSpace
) -> Int[Tensor, "sample factor"]:
    """Uniform over the values that are not the first."""
    single = [factor.name for factor in space.factors if factor.size < 2]
    if single:
        raise ValueError(f"{', '.join(single)} has one value only and cannot differ: set must_differ=False")
    sizes = torch.tensor(space.sizes)
    return (first + 1 + ((words * (sizes - 1)) >> 32)) % sizes


def _pick(probabilities: Float[Tensor, "sample value"], words: Int[Tensor, " sample"]) -> Int[Tensor, " sample"]:
    """One value a row, by inverting its distribution function at word / 2³²."""
    reached = probabilities.cumsum(-1) <= (words.double() / 2.0**32)[:, None]
    # the last possible value, should rounding keep the sum a hair below one
    last = (probabilities > 0).long().mul(torch.arange(probabilities.shape[-1])).amax(-1)
    return torch.minimum(reached.sum(-1), last)
