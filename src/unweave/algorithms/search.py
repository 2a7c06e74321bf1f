"""The largest number that passes: by doubling and halving (Bonheme, 2023, Algorithm 1) or by bisection (Algorithm 8).

Both end for any answers at all: what they return passed, and the number above it failed or is out of bounds. For
answers that are monotone (what fails, fails above it too) that is the largest number that passes, for any start.
No number is asked twice.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Visit:
    """A number that was tried, and the bracket in which it was chosen: ``lower ≤ n ≤ upper``.

    ``lower`` is the largest number that had passed, ``upper`` the smallest that had failed; before there is one,
    the bounds of the search.
    """

    n: int
    passes: bool
    lower: int
    upper: int


@dataclass(frozen=True)
class Found:
    """The largest number that passes, one below the bounds where none does, and the way to it.

    ``limited`` is true when that is the upper bound itself: a larger number might have passed.
    """

    n: int
    visits: tuple[Visit, ...]
    limited: bool


def doubling(passes: Callable[[int], bool], start: int, most: int) -> Found:
    """Double while it passes, else halve the bracket. Numbers are 1 … ``most``; nothing beyond it is asked.

    At most 2 ⌈log₂(most + 1)⌉ + 2 numbers are asked: every doubling doubles the lower bound, one may fail, and all
    else halves the bracket.
    """
    if start < 1 or most < 1:
        raise ValueError(f"a search goes from 1 up: start and most must be at least 1, not {start} and {most}")
    lower, upper, n = 0, most + 1, min(start, most)
    visits = []
    # invariant: lower ≤ n ≤ upper, lower passed, upper failed
    while n != lower:
        visits.append(Visit(n, passes(n), lower, upper))
        if visits[-1].passes:
            lower = n
            # min(2n, u) would ask u again, which is known to fail and leads to the middle
            n = 2 * n if 2 * n < upper else (lower + upper) // 2
        else:
            upper = n
            n = (lower + upper) // 2
    return Found(lower, tuple(visits), lower == most)


def bisection(passes: Callable[[int], bool], least: int, most: int) -> Found:
    """Halve the range ``least`` … ``most``, both ends included.

    The published loop never asks ``most``; here it is asked when everything below it has passed.
    """
    if least < 1 or most < least:
        raise ValueError(f"a range goes from 1 up and not downwards: given {least} to {most}")
    lower, upper = least, most
    visits: list[Visit] = []

    def ask(n: int) -> bool:
        visits.append(Visit(n, passes(n), lower - 1, upper))
        return visits[-1].passes

    while lower < upper:
        n = (lower + upper) // 2
        if ask(n):
            lower = n + 1
        else:
            upper = n
    if lower == most and all(visit.passes for visit in visits) and ask(most):
        lower += 1
    return Found(lower - 1, tuple(visits), lower > most)
