"""Published beside ours: each comparison has a stated statistical rule, and says when it cannot tell."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unweave.studies.statistics.intervals import (
    correlation_interval,
    mean_interval,
    welch_interval,
    welch_reach,
    wilson_interval,
)
from unweave.studies.statistics.permutation import Tested, paired_test, trend_test, unpaired_test

Verdict = Literal["agrees", "differs", "cannot tell"]

LEVEL = 0.05

Real = float | int

Values = Mapping[Any, Any] | Sequence[Any] | np.ndarray
"""Numbers of several runs; as a mapping from seeds, so that equal seeds can be paired."""


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


def compare_mean(
    what: str,
    values: Values,
    published: Real,
    *,
    tolerance: Real = 0.0,
    unit: str = "",
    spread: tuple[Real, int] | None = None,
) -> Comparison:
    """A published mean beside the mean over seeds.

    ``tolerance`` is what the two protocols may differ by; ``spread`` is the published standard deviation and number of
    seeds, where they are printed: the published mean is then uncertain too.
    """
    found, note = _finite(values)
    rule = (
        f"Agrees when the published value lies within the 95 % t-interval of our mean{_widened(tolerance, unit)};"
        " cannot tell with fewer than three seeds, or when it lies within an interval whose half is longer than half"
        " the published value and than the tolerance."
    )
    if spread is not None:
        rule = rule.replace("t-interval of our mean", "Welch interval around our mean (both means are uncertain)")
    if len(found) < 3:
        ours = float(found.mean()) if len(found) else None
        return Comparison(what, published, ours, None, len(found), rule, "cannot tell", _few(len(found), note))
    low, high = mean_interval(found)
    middle, reach = float(found.mean()), (high - low) / 2
    if spread is not None:
        square = float(found.var(ddof=1)) / len(found)
        reach = welch_reach(square, len(found), spread[0] ** 2 / spread[1], spread[1])
    verdict: Verdict = "agrees" if abs(middle - published) <= reach + tolerance + _rounding(published) else "differs"
    if verdict == "agrees" and reach > max(tolerance, abs(published) / 2) + _rounding(published):
        verdict, note = "cannot tell", _joined(note, f"the interval reaches ±{reach:.3g}, too far to tell anything")
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
        return Comparison(what, _word(expected_sign), middle, None, n, rule, "cannot tell", _few(n, note))
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

    ``seeds`` names the seed of each value where one seed gave several: values are then exchanged within seeds only.
    With ``expected_sign=0`` the claim is that there is no trend: its interval lies within ±``tolerance``.
    """
    _check_sign(expected_sign)
    pairs = np.array([x, y], dtype=np.float64)
    kept = np.isfinite(pairs).all(0)
    note = "" if kept.all() else f"{int((~kept).sum())} values that are not finite were left out"
    first, second = pairs[:, kept]
    blocks = None if seeds is None else np.asarray(seeds)[kept]
    how = "Spearman's correlation, values exchanged" + ("" if seeds is None else " within seeds")
    n = len(first)
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        reason = _few(n, note) if n < 3 else _joined(note, "all values are equal")
        rule = _sign_rule(expected_sign, how, tolerance)
        return Comparison(what, _word(expected_sign, "trend"), None, None, n, rule, "cannot tell", reason)
    tested = trend_test(first, second, blocks)
    interval = correlation_interval(tested.statistic, n)
    return _signed(what, expected_sign, tested, interval, n, how, tolerance, note, kind="trend")


def compare_interval(
    what: str,
    ours: Real,
    interval: tuple[Real, Real] | None,
    published: Real,
    n: int,
    how: str,
    *,
    tolerance: Real = 0.0,
    widest: Real = 0.5,
) -> Comparison:
    """A published number beside ours with an interval of its own; ``how`` says where that interval comes from.

    An interval longer than ``widest`` tells nothing.
    """
    rule = (
        f"Agrees when the published value lies within our 95 % interval ({how}){_widened(tolerance, '')};"
        f" cannot tell when it does but the interval is longer than {widest:g}."
    )
    if interval is None or not math.isfinite(ours):
        shown = float(ours) if math.isfinite(ours) else None
        return Comparison(what, published, shown, None, n, rule, "cannot tell", "no interval from so few values")
    low, high = float(interval[0]), float(interval[1])
    verdict: Verdict = "agrees" if low - tolerance <= published <= high + tolerance else "differs"
    note = ""
    if verdict == "agrees" and high - low > widest:
        verdict, note = "cannot tell", f"the interval has the length {high - low:.2f}"
    return Comparison(what, published, float(ours), (low, high), n, rule, verdict, note)


def compare_sign(
    what: str, ours: Real, interval: tuple[Real, Real] | None, n: int, expected_sign: int, how: str
) -> Comparison:
    """Whether a number with an interval of its own is above or below zero, as published."""
    if expected_sign not in (-1, 1):
        raise ValueError(f"expected_sign must be 1 or −1, not {expected_sign}")
    word = "above 0" if expected_sign > 0 else "below 0"
    rule = f"Agrees when our whole 95 % interval ({how}) lies {word}, differs when it lies on the other side."
    if interval is None or not all(map(math.isfinite, (ours, *interval))):
        return Comparison(what, word, None, None, n, rule, "cannot tell", "no interval from so few values")
    low, high = float(interval[0]), float(interval[1])
    verdict: Verdict = "cannot tell"
    if low > 0 or high < 0:
        verdict = "agrees" if (low > 0) == (expected_sign > 0) else "differs"
    return Comparison(what, word, float(ours), (low, high), n, rule, verdict)


def compare_exact(what: str, ours: Real, published: Real, tolerance: Real, *, note: str = "") -> Comparison:
    """A number that theory gives, beside ours: no seeds, only rounding."""
    rule = f"Agrees when the two differ by at most {tolerance:g}."
    near = math.isfinite(ours) and abs(ours - published) <= tolerance
    shown = float(ours) if math.isfinite(ours) else None
    return Comparison(what, published, shown, None, 1, rule, "agrees" if near else "differs", note)


def compare_share(what: str, successes: int, n: int, published: Real, *, tolerance: Real = 0.0) -> Comparison:
    """A published share between 0 and 1, beside how often we found it."""
    rule = (
        f"Agrees when the published share lies within Wilson's 95 % interval of ours{_widened(tolerance, '')};"
        " cannot tell when it does but that interval is longer than 0.5."
    )
    if n < 1:
        return Comparison(what, published, None, None, 0, rule, "cannot tell", _few(0, ""))
    low, high = wilson_interval(successes, n)
    verdict: Verdict = "agrees" if low - tolerance - 1e-12 <= published <= high + tolerance + 1e-12 else "differs"
    note = ""
    if verdict == "agrees" and high - low > 0.5:
        verdict, note = "cannot tell", f"{n} trials leave an interval of length {high - low:.2f}"
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
    return Comparison(what, _word(sign, kind), tested.statistic, interval, n, rule, verdict, _joined(told, note))


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


def _word(sign: int, kind: str = "difference") -> str:
    words = {
        "difference": {1: "larger", -1: "smaller", 0: "equal"},
        "trend": {1: "rises", -1: "falls", 0: "no trend"},
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
    return found[kept], "" if kept.all() else f"{int((~kept).sum())} values that are not finite were left out"


def _few(n: int, note: str) -> str:
    return _joined(note, "no value" if n == 0 else f"only {n} value{'s' if n > 1 else ''}")


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _widened(tolerance: Real, unit: str) -> str:
    return f" widened by {tolerance:g}{' ' + unit if unit else ''}" if tolerance else ""


def _rounding(published: Real) -> float:
    return 1e-12 * max(1.0, abs(published))
