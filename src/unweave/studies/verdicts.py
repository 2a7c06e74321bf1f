"""Published beside ours: each comparison has a stated statistical rule, and says when it cannot tell."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unweave.studies.statistics.intervals import (
    correlation_interval,
    crossed_interval,
    mean_interval,
    welch_interval,
    welch_reach,
    wilson_interval,
)
from unweave.studies.statistics.permutation import Tested, crossed_test, paired_test, trend_test, unpaired_test
from unweave.studies.statistics.rank_correlations import spearman
from unweave.words import number_of

Verdict = Literal["agrees", "differs", "cannot tell", "not evidence", "runs"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "cannot tell", "not evidence", "runs")

Kind = Literal["exact", "order", "number"]
"""What theory gives, which of two is larger, or how large: the smaller a size, the less of it can be judged."""

LEVEL = 0.05
ROUNDING = 1e-12
LEAST_SEEDS = 3
"""Of the models behind a verdict."""

OTHER_N = (5, 10, 30)
"""Numbers of seeds that may stand behind a published ± whose number is not printed."""

TOO_WIDE = "no number of our seeds can agree"
"""Said where what is published is less certain than two answers may differ that count as the same."""

Real = float | int

Values = Mapping[Any, Any] | Sequence[Any] | np.ndarray
"""Numbers of several runs; as a mapping from seeds, so that equal seeds can be paired."""


@dataclass(frozen=True)
class Checked:
    """What the same rule says of a control, which must not agree."""

    name: str
    ours: float | None
    """Of the first draw."""
    interval: tuple[float, float] | None
    agreed: int
    draws: int
    differed: int = 0

    @property
    def passes(self) -> bool:
        """Chance alone lets one draw in twenty agree: more than half of them is no chance."""
        return 2 * self.agreed > self.draws

    @property
    def contradicts(self) -> bool:
        """The same of draws that differ: an order that nothing has made is no finding either way."""
        return 2 * self.differed > self.draws


@dataclass(frozen=True)
class Comparison:
    """One published claim beside what we found."""

    what: str
    published: float | int | str
    ours: float | None
    interval: tuple[float, float] | None
    """95 % over seeds."""
    n: int
    """Seeds, or whatever the spread is over."""
    rule: str
    """The rule in one sentence, so that anyone can apply it again."""
    verdict: Verdict
    note: str = ""
    kind: Kind = "number"
    controls: tuple[Checked, ...] = ()


def with_controls(one: Comparison, controls: Sequence[Checked]) -> Comparison:
    """The comparison beside its controls: no evidence where one of them says the same, no verdict where there is none.

    That a number differs is said of controls too: they are other numbers. An order is turned round by something.
    """
    if not controls and one.verdict in ("agrees", "differs"):
        return replace(one, verdict="cannot tell", note=_joined(one.note, "no control stands beside it"))
    turned = [control.name for control in controls if control.contradicts]
    if one.verdict == "differs" and one.kind == "order" and turned:
        note = _joined(one.note, f"the control differs too: {', '.join(turned)}")
        return replace(one, controls=tuple(controls), verdict="not evidence", note=note)
    passed = [control.name for control in controls if control.passes]
    if one.verdict != "agrees" or not passed:
        return replace(one, controls=tuple(controls))
    note = _joined(one.note, f"the control agrees too: {', '.join(passed)}")
    return replace(one, controls=tuple(controls), verdict="not evidence", note=note)


def with_seeds(one: Comparison, n_seeds: int) -> Comparison:
    """What so many seeds may say: one or two may be luck, whatever is counted within them."""
    if n_seeds >= LEAST_SEEDS or one.kind == "exact" or one.verdict not in ("agrees", "differs", "not evidence"):
        return one
    few = f"models of only {n_seeds} seed{'s' if n_seeds > 1 else ''}"
    return replace(one, verdict="cannot tell", note=_joined(one.note, few))


def at_size(one: Comparison, size: str) -> Comparison:
    """What a size may say: smoke that it runs, small exact things and orders, paper numbers too."""
    if size == "smoke":
        return replace(one, verdict="runs")
    if size != "paper" and one.kind == "number" and one.verdict in ("agrees", "differs"):
        return replace(one, verdict="cannot tell", note=_joined(one.note, "numbers are judged at paper size only"))
    return one


def compare_mean(
    what: str,
    values: Values,
    published: Real,
    *,
    tolerance: Real = 0.0,
    unit: str = "",
    spread: tuple[Real, int] | None = None,
    assumed: bool = False,
) -> Comparison:
    """A published mean beside the mean over seeds.

    ``tolerance`` is how far apart two answers may be that count as the same. ``spread`` is the published standard
    deviation and number of seeds, where they are printed: the published mean is then uncertain too; ``assumed`` says
    that the number is not printed, and shows what other numbers would give.
    """
    found, note = _finite(values)
    how = "t-interval of our mean less the published one" if spread is None else "Welch interval of the difference"
    rule = _equal_rule(how, tolerance, unit) + " Fewer than three seeds cannot tell."
    if len(found) < 3:
        ours = float(found.mean()) if len(found) else None
        return Comparison(what, published, ours, None, len(found), rule, "cannot tell", _few(len(found), note))
    low, high = mean_interval(found)
    middle = float(found.mean())

    def verdict_with(seeds: Real) -> Verdict:
        reach = (high - low) / 2
        if spread is not None and math.isfinite(seeds):
            square = float(found.var(ddof=1)) / len(found)
            reach = welch_reach(square, len(found), spread[0] ** 2 / seeds, int(seeds))
        return _equal(middle - published - reach, middle - published + reach, tolerance)

    if spread is not None and assumed:
        others = {n: verdict_with(n) for n in OTHER_N} | {math.inf: verdict_with(math.inf)}
        told = ", ".join(f"{verdict} with {'none to add' if n == math.inf else n}" for n, verdict in others.items())
        seeds = number_of(spread[1], "seed is", "seeds are")
        note = _joined(note, f"{seeds} assumed behind the published ±{spread[0]:g} ({told})")
    # with as many seeds as one likes
    if spread is not None and (reach := welch_reach(0.0, 2, spread[0] ** 2 / spread[1], spread[1])) > tolerance:
        note = _joined(note, f"the published mean itself is known to ±{reach:.2g}: {TOO_WIDE}, only contradict it")
    verdict = verdict_with(math.inf if spread is None else spread[1])
    return Comparison(what, published, middle, (low, high), len(found), rule, verdict, note)


def compare_difference(
    what: str, first: Values, second: Values, expected_sign: int, *, tolerance: Real = 0.0
) -> Comparison:
    """Which of two settings is larger, beside the published answer: first − second is +, − or 0.

    Mappings from seeds that share three seeds or more are paired by them; anything else is compared as two groups.
    With ``expected_sign=0`` the claim is that they are equal, to ``tolerance``.
    """
    _check_sign(expected_sign)
    if isinstance(first, Mapping) and isinstance(second, Mapping) and len(_shared(first, second)) >= 3:
        seeds = _shared(first, second)
        differences = np.array([first[seed] - second[seed] for seed in seeds], dtype=np.float64)
        tested, interval = paired_test(differences), mean_interval(differences)
        return _signed(what, expected_sign, tested, interval, len(seeds), "paired by seed, signs exchanged", tolerance)
    one, note = _finite(first)
    other, more = _finite(second)
    n, note, how = min(len(one), len(other)), _joined(note, more), "two groups, members exchanged"
    if n < 2:
        middle = float(one.mean() - other.mean()) if n else None
        rule = _sign_rule(expected_sign, how, tolerance)
        kind = _kind(expected_sign)
        return Comparison(what, _word(expected_sign), middle, None, n, rule, "cannot tell", _few(n, note), kind)
    interval = welch_interval(one, other)
    return _signed(what, expected_sign, unpaired_test(one, other), interval, n, how, tolerance, note)


def compare_trend(
    what: str,
    x: Sequence[Real] | np.ndarray,
    y: Sequence[Real] | np.ndarray,
    expected_sign: int,
    *,
    seeds: Sequence[Any] | np.ndarray | None = None,
    tolerance: Real = 0.0,
) -> Comparison:
    """Whether y rises (+), falls (−) or stays (0) with x, by Spearman's rank correlation.

    ``seeds`` names the seed of each value where one seed gave several: values are then exchanged within seeds only,
    and one or two seeds decide nothing.
    With ``expected_sign=0`` the claim is that there is no trend: its interval lies within ±``tolerance``.
    """
    _check_sign(expected_sign)
    pairs = np.array([x, y], dtype=np.float64)
    kept = np.asarray(np.isfinite(pairs).all(axis=0))
    note = _left_out(kept)
    first, second = pairs[:, kept]
    blocks = None if seeds is None else np.asarray(seeds)[kept]
    how = "Spearman's correlation, values exchanged" + ("" if seeds is None else " within seeds")
    n = len(first)
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        reason = _few(n, note) if n < 3 else _joined(note, "all values are equal")
        rule = _sign_rule(expected_sign, how, tolerance)
        word, kind = _word(expected_sign, "trend"), _kind(expected_sign)
        return Comparison(what, word, None, None, n, rule, "cannot tell", reason, kind)
    tested = trend_test(first, second, blocks)
    interval = correlation_interval(tested.statistic, n)
    found = _signed(what, expected_sign, tested, interval, n, how, tolerance, note, kind="trend")
    return found if blocks is None else with_seeds(found, len(np.unique(blocks)))


def compare_scores(
    what: str, first: np.ndarray, second: np.ndarray, expected_sign: int, *, tolerance: Real = 0.0
) -> Comparison:
    """Whether two scores of the same runs rise together (+), fall (−) or have no relation (0).

    Both lie on a grid, as [objective, strength, seed]: runs along each axis may be alike for that alone. A test and an
    interval must both say so: one asks what chance would give, the other whether a few runs are behind it.
    """
    _check_sign(expected_sign)
    known = np.isfinite(first) & np.isfinite(second)
    n, word, kind = int(known.sum()), _word(expected_sign, "relation"), _kind(expected_sign)
    rule = _relation_rule(expected_sign, tolerance)
    if n < 4 or not (_varies(first[known]) and _varies(second[known])):
        reason = _few(n, "") if n < 4 else "all values are equal"
        return Comparison(what, word, None, None, n, rule, "cannot tell", reason, kind)

    def correlation(both: np.ndarray) -> float:
        return spearman(both[..., 0], both[..., 1])

    both = np.stack([first, second], axis=-1)
    tested, (low, high) = crossed_test(first, second), crossed_interval(correlation, both, first.ndim)
    interval = (max(-1.0, low), min(1.0, high))
    found = _signed(what, expected_sign, tested, interval, n, "", tolerance, kind="relation")
    open_yet = low <= 0 <= high and (expected_sign != 0 or found.verdict == "differs")
    verdict: Verdict = "cannot tell" if open_yet else found.verdict
    return replace(found, ours=correlation(both), rule=rule, verdict=verdict)


def compare_interval(
    what: str,
    ours: Real,
    interval: tuple[Real, Real] | None,
    published: Real,
    n: int,
    how: str,
    *,
    tolerance: Real = 0.0,
) -> Comparison:
    """A published number beside ours with an interval of its own; ``how`` says where that interval comes from."""
    rule = _equal_rule(f"interval of ours less the published one, {how}", tolerance, "")
    if interval is None or not math.isfinite(ours):
        shown = float(ours) if math.isfinite(ours) else None
        return Comparison(what, published, shown, None, n, rule, "cannot tell", "no interval from so few values")
    low, high = float(interval[0]), float(interval[1])
    verdict = _equal(low - published, high - published, tolerance)
    return Comparison(what, published, float(ours), (low, high), n, rule, verdict)


def compare_between(
    what: str, ours: Real, interval: tuple[Real, Real] | None, ends: tuple[Real, Real], n: int, how: str
) -> Comparison:
    """Whether a number lies between two others, as published: some, but not much. That says how large it is."""
    words = f"between {ends[0]:g} and {ends[1]:g}"
    rule = f"Agrees when our whole 95 % interval ({how}) lies {words}, differs when all of it lies elsewhere."
    if interval is None or not all(map(math.isfinite, (ours, *interval))):
        return Comparison(what, words, None, None, n, rule, "cannot tell", "no interval from so few values")
    low, high = float(interval[0]), float(interval[1])
    verdict: Verdict = "agrees" if ends[0] < low and high < ends[1] else "cannot tell"
    if high <= ends[0] or low >= ends[1]:
        verdict = "differs"
    return Comparison(what, words, float(ours), (low, high), n, rule, verdict)


def compare_sign(
    what: str, ours: Real, interval: tuple[Real, Real] | None, n: int, expected_sign: int, how: str
) -> Comparison:
    """Whether a number with an interval of its own is above or below zero, as published."""
    if expected_sign not in (-1, 1):
        raise ValueError(f"expected_sign must be 1 or −1, not {expected_sign}")
    word = "above 0" if expected_sign > 0 else "below 0"
    rule = f"Agrees when our whole 95 % interval ({how}) lies {word}, differs when it lies on the other side."
    if interval is None or not all(map(math.isfinite, (ours, *interval))):
        return Comparison(what, word, None, None, n, rule, "cannot tell", "no interval from so few values", "order")
    low, high = float(interval[0]), float(interval[1])
    verdict: Verdict = "cannot tell"
    if low > 0 or high < 0:
        verdict = "agrees" if (low > 0) == (expected_sign > 0) else "differs"
    return Comparison(what, word, float(ours), (low, high), n, rule, verdict, kind="order")


def compare_exact(what: str, ours: Real, published: Real, tolerance: Real, *, note: str = "") -> Comparison:
    """A number that theory gives, beside ours: no seeds, only rounding."""
    rule = f"Agrees when the two differ by at most {tolerance:g}."
    if not math.isfinite(ours):
        told = _joined(note, "what we found is not a number")
        return Comparison(what, published, None, None, 1, rule, "cannot tell", told, "exact")
    near = abs(ours - published) <= tolerance
    return Comparison(what, published, float(ours), None, 1, rule, "agrees" if near else "differs", note, "exact")


def compare_share(what: str, successes: int, n: int, published: Real, *, tolerance: Real = 0.1) -> Comparison:
    """A published share between 0 and 1, beside how often we found it."""
    rule = _equal_rule("Wilson interval of our share less the published one", tolerance, "")
    if n < 1:
        return Comparison(what, published, None, None, 0, rule, "cannot tell", _few(0, ""))
    low, high = wilson_interval(successes, n)
    verdict = _equal(low - published, high - published, tolerance)
    note = f"{n} trials leave an interval of length {high - low:.2f}" if verdict == "cannot tell" else ""
    return Comparison(what, published, successes / n, (low, high), n, rule, verdict, note)


def _signed(
    what: str,
    sign: int,
    tested: Tested,
    interval: tuple[float, float],
    n: int,
    how: str,
    tolerance: Real,
    note: str = "",
    kind: str = "difference",
) -> Comparison:
    """The verdict on a sign, or on its absence."""
    verdict: Verdict = "cannot tell"
    if sign == 0:
        if -tolerance <= interval[0] and interval[1] <= tolerance:
            verdict = "agrees"
        elif min(tested.larger, tested.smaller) <= LEVEL / 2:
            verdict = "differs"
        p = min(1.0, 2 * min(tested.larger, tested.smaller))
    else:
        as_said, other = (tested.larger, tested.smaller) if sign > 0 else (tested.smaller, tested.larger)
        verdict = "agrees" if as_said <= LEVEL else "differs" if other <= LEVEL else verdict
        p = as_said
    told = f"p = {p:.2g}" + (f", and {n} values cannot give p ≤ {LEVEL:g}" if tested.least > LEVEL else "")
    rule = _sign_rule(sign, how, tolerance)
    note = _joined(told, note)
    return Comparison(what, _word(sign, kind), tested.statistic, interval, n, rule, verdict, note, _kind(sign))


def _equal(low: float, high: float, tolerance: Real) -> Verdict:
    """Two one-sided tests: agrees when the interval of a difference lies within ±tolerance, differs when it lacks 0."""
    if -tolerance - ROUNDING <= low and high <= tolerance + ROUNDING:
        return "agrees"
    return "differs" if low > ROUNDING or high < -ROUNDING else "cannot tell"


def _equal_rule(how: str, tolerance: Real, unit: str) -> str:
    return (
        f"Agrees when the 95 % {how} lies within ±{tolerance:g}{' ' + unit if unit else ''}, differs when it reaches"
        " farther and leaves out 0, otherwise cannot tell."
    )


def _kind(sign: int) -> Kind:
    """That two are equal is a statement about a number: how large a difference would be."""
    return "order" if sign else "number"


def _sign_rule(sign: int, how: str, tolerance: Real) -> str:
    if sign == 0:
        return (
            f"Agrees when the 95 % interval lies within ±{tolerance:g}; differs when a two-sided permutation test"
            f" ({how}) gives p ≤ {LEVEL:g}; otherwise cannot tell."
        )
    return (
        f"Agrees when a one-sided permutation test ({how}) gives p ≤ {LEVEL:g} for the published sign, differs when it"
        " does for the other sign, otherwise cannot tell."
    )


def _relation_rule(sign: int, tolerance: Real) -> str:
    test = "permutation test of Spearman's correlation (objectives, strengths and seeds exchanged)"
    interval = "95 % interval (each of them left out once)"
    if sign == 0:
        return (
            f"Agrees when the {interval} lies within ±{tolerance:g}; differs when it leaves out 0 and a two-sided"
            f" {test} gives p ≤ {LEVEL:g}; otherwise cannot tell."
        )
    return (
        f"Agrees when a one-sided {test} gives p ≤ {LEVEL:g} for the published sign and the {interval} leaves out 0,"
        " differs when both hold for the other sign, otherwise cannot tell."
    )


def _varies(values: np.ndarray) -> bool:
    """Whether values differ by more than rounding."""
    return float(np.ptp(values)) > 1e-9 * float(np.abs(values).max())


def _word(sign: int, kind: str = "difference") -> str:
    words = {
        "difference": {1: "larger", -1: "smaller", 0: "equal"},
        "trend": {1: "rises", -1: "falls", 0: "no trend"},
        "relation": {1: "above 0", -1: "below 0", 0: "no relation"},
    }
    return words[kind][sign]


def _check_sign(sign: int) -> None:
    if sign not in (-1, 0, 1):
        raise ValueError(f"expected_sign must be 1, −1 or 0 for no difference, not {sign}")


def _shared(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> list[Any]:
    """Seeds that both have, with finite values, in the order of the first."""
    return [seed for seed in first if seed in second and math.isfinite(first[seed]) and math.isfinite(second[seed])]


def _finite(values: Values) -> tuple[np.ndarray, str]:
    found = np.array(list(values.values()) if isinstance(values, Mapping) else values, dtype=np.float64).reshape(-1)
    kept = np.isfinite(found)
    return found[kept], _left_out(kept)


def _left_out(kept: np.ndarray) -> str:
    n = int((~kept).sum())
    return (
        f"{number_of(n, 'value that is', 'values that are')} not finite {'was' if n == 1 else 'were'} left out"
        if n
        else ""
    )


def _few(n: int, note: str) -> str:
    return _joined(note, "no value" if n == 0 else f"only {n} value{'s' if n > 1 else ''}")


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
