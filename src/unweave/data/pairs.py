"""Pairs of factor values for weak supervision: transitions, changes, and share, change and rank pairs.

Every function is pure in (space, n, seed, step), and a pair does not depend on how many are drawn with it. In training
the same pairs come from :mod:`unweave.data.pairings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from unweave import rng
from unweave.data import pairings
from unweave.data.factors import FactorSpace
from unweave.data.pairings import Pairing
from unweave.data.pairings import step_probabilities as step_probabilities
from unweave.shapes import Bool, Int, Tensor

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
    cyclic: bool = True,
    categorical_change: bool = False,
    always_change: bool = True,
) -> Pairs:
    """Small natural steps of every factor at once: :class:`unweave.data.pairings.Transitions`."""
    if not rate > 0:
        raise ValueError(f"rate must be positive, not {rate}")
    return drawn_pairs(pairings.Transitions(rate, cyclic, categorical_change, always_change), space, n, seed, step)


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
    """k random factors drawn anew, uniformly: :class:`unweave.data.pairings.Changes`."""
    return drawn_pairs(pairings.Changes(k, often_one, must_differ), space, n, seed, step)


def share_pairs(space: FactorSpace, n: int, seed: int, step: int = 0, *, groups: Groups | None = None) -> Pairs:
    """Pairs that agree in one group of factors, by default in one factor: :class:`unweave.data.pairings.SharePairs`."""
    return drawn_pairs(pairings.SharePairs(_named(groups)), space, n, seed, step)


def change_pairs(space: FactorSpace, n: int, seed: int, step: int = 0, *, groups: Groups | None = None) -> Pairs:
    """Pairs that may differ only in one group of factors: :class:`unweave.data.pairings.ChangePairs`."""
    return drawn_pairs(pairings.ChangePairs(_named(groups)), space, n, seed, step)


def rank_pairs(
    space: FactorSpace, n: int, seed: int, step: int = 0, *, names: Sequence[str] | None = None
) -> RankPairs:
    """Independent pairs with the order of the named factors, all by default: the pairing ``RankPairs``."""
    pairing = pairings.RankPairs(tuple(space.names if names is None else names))
    pairs = drawn_pairs(pairing, space, n, seed, step)
    return RankPairs(pairs.first, pairs.second, pairing.greater(space, pairs.first, pairs.second))


def drawn_pairs(pairing: Pairing, space: FactorSpace, n: int, seed: int, step: int = 0) -> Pairs:
    """Pairs of a pairing whose first values are uniform."""
    n_factors = len(space.factors)
    words = rng.words(seed, rng.Purpose.PAIR, step, n, n_factors + pairing.n_words(space))
    first = pairings.scaled(space, words[:, :n_factors])
    partners = pairing.partners(space, first, words[:, n_factors:])
    return Pairs(first, partners.factors, partners.redrawn, partners.group)


def _named(groups: Groups | None) -> pairings.NameGroups:
    if groups is None:
        return ()
    if not groups or any(isinstance(group, str) for group in groups):
        raise ValueError(f"groups must be non-empty lists of factor names, such as [['x']], not {groups}")
    return tuple(tuple(group) for group in groups)
