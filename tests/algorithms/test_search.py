"""The search alone, on predicates whose answer is known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unweave.algorithms.search import bisection, doubling

SIZES = st.integers(1, 3000)


def asked(answers):
    """A predicate that remembers what it was asked."""
    log = []

    def passes(n):
        log.append(n)
        return answers(n)

    return passes, log


@given(SIZES, st.integers(0, 4000), SIZES)
def test_doubling_finds_the_largest_for_any_start(most, largest, start):
    passes, log = asked(lambda n: n <= largest)
    found = doubling(passes, start, most)
    assert found.n == min(largest, most)
    assert found.limited == (largest >= most)
    assert log == [visit.n for visit in found.visits]
    assert len(log) == len(set(log)) <= 2 * math.ceil(math.log2(most + 1)) + 2
    assert max(log) <= most
    assert min(log) >= 1


@given(SIZES, st.randoms(use_true_random=False), SIZES)
def test_doubling_keeps_its_invariant_for_any_answers(most, random, start):
    known = {}
    found = doubling(lambda n: known.setdefault(n, random.random() < 0.5), start, most)
    for visit in found.visits:
        assert visit.lower <= visit.n <= visit.upper
        assert visit.lower < visit.upper
        assert visit.lower == 0 or known[visit.lower]
        assert visit.upper == most + 1 or not known[visit.upper]
    # what is returned passed, and the next one failed or is out of bounds
    assert found.n == 0 or known[found.n]
    assert found.n == most or not known[found.n + 1]


@given(SIZES, st.integers(0, 4000), SIZES)
def test_doubling_trains_what_the_published_loop_trains(most, largest, start):
    start, passes = min(start, most), lambda n: n <= min(largest, most)
    lower, upper, n, memory = 0, math.inf, start, []
    while n != lower:
        if n not in memory and n <= most:
            memory.append(n)
        if passes(n):
            lower, n = n, min(2 * n, upper)
        else:
            upper, n = n, (lower + n) // 2
    found = doubling(passes, start, most)
    assert found.n == n
    # below the bound the two ask the same numbers in the same order; the published loop has no bound
    if min(largest, most) * 2 <= most:
        assert [visit.n for visit in found.visits] == memory


@given(SIZES, SIZES, st.integers(0, 4000))
def test_bisection_finds_the_largest(first, second, largest):
    least, most = min(first, second), max(first, second)
    passes, log = asked(lambda n: n <= largest)
    found = bisection(passes, least, most)
    assert found.n == min(max(largest, least - 1), most)
    assert found.limited == (largest >= most)
    assert all(least <= n <= most for n in log)
    assert len(log) == len(set(log)) <= math.ceil(math.log2(most - least + 1)) + 1
    assert all(visit.lower <= visit.n <= visit.upper for visit in found.visits)


def test_bisection_is_the_published_one():
    # Algorithm 8 with l = 1 and u = 200 and a world of 32 latents
    lower, upper, memory = 1, 200, []
    while lower < upper:
        n = (lower + upper) // 2
        memory.append(n)
        lower, upper = (n + 1, upper) if n <= 32 else (lower, n)
    found = bisection(lambda n: n <= 32, 1, 200)
    assert ([visit.n for visit in found.visits], found.n) == (memory, lower - 1)
    assert len(memory) == 8


def test_a_path_by_hand():
    found = doubling(lambda n: n <= 3, 20, 1024)
    assert [(visit.n, visit.passes) for visit in found.visits] == [
        (20, False), (10, False), (5, False), (2, True), (4, False), (3, True),
    ]  # fmt: skip
    assert found.n == 3


@pytest.mark.parametrize(("start", "most"), [(0, 5), (-1, 5), (1, 0)])
def test_bad_bounds(start, most):
    with pytest.raises(ValueError, match="at least 1"):
        doubling(lambda n: True, start, most)


@pytest.mark.parametrize(("least", "most"), [(0, 5), (6, 5)])
def test_bad_ranges(least, most):
    with pytest.raises(ValueError, match="range"):
        bisection(lambda n: True, least, most)
