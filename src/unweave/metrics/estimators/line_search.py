"""The line search of Moré & Thuente (1994): a step that decreases enough and leaves little slope."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

DECREASE = 1e-3
SLOPE = 0.9
WIDTH = 0.1
"""An interval narrower than this share of its end is not searched further."""
LONGEST = 1e10
N_TRIALS = 50


class Trial(NamedTuple):
    """A step along a direction, the value there, and the slope along the direction."""

    step: float
    value: float
    slope: float


@dataclass
class _Interval:
    """Where the minimiser is sought: the best trial, the other end, and whether they bracket it."""

    best: Trial
    other: Trial
    bracketed: bool = False


def line_search(at: Callable[[float], Trial], start: Trial, step: float) -> Trial | None:
    """A step with value ≤ start + DECREASE · slope · step and |slope| ≤ SLOPE · |slope at the start|, or None.

    The last trial made is the one returned, also where rounding ends the search before both hold.
    """
    interval, first_stage = _Interval(start, start), True
    low, high = 0.0, 5.0 * step
    width, before = LONGEST, 2 * LONGEST
    least = DECREASE * start.slope
    for _ in range(N_TRIALS):
        trial = at(step)
        enough = trial.value <= start.value + trial.step * least
        first_stage = first_stage and not (enough and trial.slope >= 0)
        if _is_done(interval, trial, (low, high), enough, start.slope):
            return trial
        # at first an auxiliary function is followed, whose minimisers decrease enough
        tilt = least if first_stage and trial.value <= interval.best.value and not enough else 0.0
        interval, step = _tilted_step(interval, trial, (low, high), tilt)
        gap = abs(interval.other.step - interval.best.step)
        if interval.bracketed:
            if gap >= 0.66 * before:
                step = interval.best.step + 0.5 * (interval.other.step - interval.best.step)
            before, width = width, gap
            low, high = sorted((interval.best.step, interval.other.step))
        else:
            low = step + 1.1 * (step - interval.best.step)
            high = step + 4.0 * (step - interval.best.step)
        step = min(max(step, 0.0), LONGEST)
        if interval.bracketed and (step <= low or step >= high or high - low <= WIDTH * high):
            step = interval.best.step
    return None


def _is_done(interval: _Interval, trial: Trial, bounds: tuple[float, float], enough: bool, slope: float) -> bool:
    low, high = bounds
    stuck = interval.bracketed and (trial.step <= low or trial.step >= high or high - low <= WIDTH * high)
    farthest = trial.step == LONGEST and enough and trial.slope <= DECREASE * slope
    nearest = trial.step == 0.0 and (not enough or trial.slope >= DECREASE * slope)
    return stuck or farthest or nearest or (enough and abs(trial.slope) <= -SLOPE * slope)


def _tilted_step(
    interval: _Interval, trial: Trial, bounds: tuple[float, float], tilt: float
) -> tuple[_Interval, float]:
    """The next step where a line of this slope is taken off all values."""
    if tilt == 0.0:
        return _next_step(interval, trial, bounds)
    lowered = _Interval(_tilt(interval.best, -tilt), _tilt(interval.other, -tilt), interval.bracketed)
    found, step = _next_step(lowered, _tilt(trial, -tilt), bounds)
    return _Interval(_tilt(found.best, tilt), _tilt(found.other, tilt), found.bracketed), step


def _tilt(trial: Trial, slope: float) -> Trial:
    return Trial(trial.step, trial.value + trial.step * slope, trial.slope + slope)


def _next_step(interval: _Interval, trial: Trial, bounds: tuple[float, float]) -> tuple[_Interval, float]:
    """A safeguarded step to the minimiser of a cubic or a parabola, and the interval that holds it."""
    best, other, bracketed = interval.best, interval.other, interval.bracketed
    turned = trial.slope * math.copysign(1.0, best.slope) < 0
    if trial.value > best.value:
        # higher: a minimiser lies between
        cubic, _ = _cubic(best, trial)
        slope = (best.value - trial.value) / (trial.step - best.step)
        parabola = best.step + best.slope / (slope + best.slope) / 2 * (trial.step - best.step)
        nearer = abs(cubic - best.step) <= abs(parabola - best.step)
        step, bracketed = (cubic if nearer else cubic + (parabola - cubic) / 2), True
    elif turned:
        # lower, and the slope has turned: a minimiser lies between
        cubic, _ = _cubic(trial, best)
        secant = _secant(trial, best)
        step, bracketed = (cubic if abs(cubic - trial.step) > abs(secant - trial.step) else secant), True
    elif abs(trial.slope) < abs(best.slope):
        step = _flatter(interval, trial, bounds)
    elif bracketed:
        step, _ = _cubic(trial, other)
    else:
        step = bounds[1] if trial.step > best.step else bounds[0]
    if trial.value > best.value:
        return _Interval(best, trial, bracketed), step
    return _Interval(trial, best if turned else other, bracketed), step


def _flatter(interval: _Interval, trial: Trial, bounds: tuple[float, float]) -> float:
    """Lower with the same sign of slope, but less of it: the minimiser may lie beyond."""
    best, other = interval.best, interval.other
    cubic, beyond = _cubic(trial, best)
    if not beyond:
        cubic = bounds[1] if trial.step > best.step else bounds[0]
    secant = _secant(trial, best)
    nearer, farther = sorted((cubic, secant), key=lambda step: abs(step - trial.step))
    if not interval.bracketed:
        return min(max(farther, bounds[0]), bounds[1])
    limit = trial.step + 0.66 * (other.step - trial.step)
    return min(limit, nearer) if trial.step > best.step else max(limit, nearer)


def _cubic(one: Trial, two: Trial) -> tuple[float, bool]:
    """The minimiser of the cubic with these values and slopes, and whether ``one`` lies between it and ``two``."""
    theta = 3.0 * (one.value - two.value) / (two.step - one.step) + one.slope + two.slope
    scale = max(abs(theta), abs(one.slope), abs(two.slope))
    root = scale * math.sqrt(max(0.0, (theta / scale) ** 2 - (one.slope / scale) * (two.slope / scale)))
    gamma = -root if two.step < one.step else root
    ratio = (gamma - one.slope + theta) / (gamma - one.slope + gamma + two.slope)
    return one.step + ratio * (two.step - one.step), ratio < 0 and gamma != 0


def _secant(one: Trial, two: Trial) -> float:
    """Where the slope would vanish if it changed evenly."""
    return one.step + one.slope / (one.slope - two.slope) * (two.step - one.step)
