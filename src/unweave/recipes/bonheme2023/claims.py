"""What the tables of Bonheme (2023), chapter 8, claim as a whole: trends, equalities, and which method finds more."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from unweave.algorithms.fondue import METHODS, Fondue
from unweave.recipes.bonheme2023.rows import Row, shown
from unweave.recipes.strength import strength_of
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

Answers = Mapping[Row, Mapping[int, Fondue]]
"""How the searches of every row ended, by seed."""

Ended = Mapping[int, Fondue]
"""How the searches of one row ended, by seed."""

Claims = Callable[[Answers, str], Iterator[Comparison]]


def by_strength(answers: Answers, size: str) -> Iterator[Comparison]:
    """Tables 8.2 and 8.3: the stronger the regulariser, the fewer latents."""
    for world in _worlds(answers):
        rows = [(row, one) for row, one in answers.items() if row.world == world]
        points = [(strength_of(row.objective), found.n, seed) for row, one in rows for seed, found in one.items()]
        if points:
            x, y, seeds = zip(*points)
            yield compare_trend(f"n against the strength on {shown(world, size)}", x, y, -1, seeds=seeds)


def same_from_everywhere(answers: Answers, size: str) -> Iterator[Comparison]:
    """Tables 8.4 to 8.6: the start does not matter."""
    usual = {seed: one for row in answers if row.start is None for seed, one in answers[row].items()}
    for row in answers:
        if row.start is not None:
            what = f"n from {row.start}, less n from the data's own dimension"
            yield _equal(what, answers[row], usual, 1.0)


def two_methods(first: str, second: str, signs: Mapping[str, int], *, tolerance: float = 0.0) -> Claims:
    """Which of two methods finds more latents, world by world; 0 claims that they find the same to a tolerance."""

    def claims(answers: Answers, size: str) -> Iterator[Comparison]:
        for world, sign in signs.items():
            ended = _ended(answers, first, world), _ended(answers, second, world)
            # which of two methods asks for more depends on the world, and a stand-in is another world
            asked = {row.method for row in answers if row.world == world}
            if {first, second} <= asked and (sign == 0 or size != "smoke"):
                title = f"{METHODS[first].title} less {METHODS[second].title} on {shown(world, size)}"
                if sign == 0 and METHODS[first].criterion == METHODS[second].criterion:
                    yield _equal(title, *ended, tolerance)
                    continue
                one, other = _both(*ended) if sign else _either(*ended)
                yield compare_difference(title, one, other, sign, tolerance=tolerance)

    return claims


def _equal(what: str, first: Ended, second: Ended, tolerance: float) -> Comparison:
    """Whether two searches with one criterion find the same, each beside the other's next seed.

    Searches of one seed ask the same models, and find the same for any readings that once fail fail on: also for noise.
    """
    seeds = sorted({*first} & {*second})
    following = dict(zip(seeds, seeds[1:] + seeds[:1]))
    one, other = _either(first, {seed: second[following[seed]] for seed in seeds})
    found = compare_difference(what, one, other, 0, tolerance=tolerance)
    return replace(found, rule=f"{found.rule} Searches of one seed share models: each is beside the next seed's.")


def both(*claims: Claims) -> Claims:
    """Several claims of one table."""

    def together(answers: Answers, size: str) -> Iterator[Comparison]:
        for one in claims:
            yield from one(answers, size)

    return together


def _ended(answers: Answers, method: str, world: str) -> dict[int, Fondue]:
    rows = [row for row in answers if row.method == method and row.world == world]
    return {seed: one for row in rows for seed, one in answers[row].items()}


def _both(first: Ended, second: Ended) -> tuple[dict[int, float], dict[int, float]]:
    """Answers by seed, of searches that found something."""
    one, other = ({seed: float(it.n) for seed, it in side.items() if _found(it)} for side in (first, second))
    return one, other


def _either(first: Ended, second: Ended) -> tuple[dict[int, float], dict[int, float]]:
    """Answers by seed where one of the two searches found something: two that found nothing are alike for nothing."""
    kept = [seed for seed in first if seed in second and (_found(first[seed]) or _found(second[seed]))]
    return {seed: float(first[seed].n) for seed in kept}, {seed: float(second[seed].n) for seed in kept}


def _found(one: Fondue) -> bool:
    """One latent is the least that can be asked, the bound the most: a search that ends there has found nothing."""
    return one.n > 1 and not one.found.limited


def _worlds(answers: Answers) -> list[str]:
    return list(dict.fromkeys(row.world for row in answers))
