"""Compare two representations: the difference of every score, with an interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.evaluation.scores import Scores, around, plain
from unweave.shapes import Float


@dataclass(frozen=True)
class Difference:
    """The second score less the first. It is clear when the interval at 95 % leaves out 0."""

    first: float
    second: float
    draws: Float[np.ndarray, " seed"]
    higher_is_better: bool | None

    @property
    def value(self) -> float:
        return 0.0 if self.first == self.second else self.second - self.first

    @property
    def interval(self) -> tuple[float, float] | None:
        return around(self.value, self.draws, (-np.inf, np.inf))

    @property
    def clear(self) -> bool:
        ends = self.interval
        return ends is not None and not ends[0] <= 0.0 <= ends[1]

    @property
    def better(self) -> str | None:
        """``first`` or ``second`` where the difference is clear and one direction is better."""
        if self.higher_is_better is None or not self.clear:
            return None
        return "second" if (self.value > 0) == self.higher_is_better else "first"


def score_differences(first: Scores, second: Scores, *, paired: bool = True) -> dict[str, Difference]:
    """The difference of every number that both have.

    Paired when both describe the same samples: each random half gives one difference, and what the rows have in
    common cancels. Otherwise the two spreads add up.
    """
    if first.n_models is not None or second.n_models is not None:
        raise ValueError("two single representations can be compared, not fleets; take one model of each")
    if first.settings["seeds"] != second.settings["seeds"]:
        raise ValueError("both must be measured with the same number of seeds")
    found = {}
    for name, one in first.numbers.items():
        if name in second.numbers:
            other = second.numbers[name]
            draws = other.draws - one.draws if paired else _unpaired(one.draws, other.draws)
            found[name] = Difference(float(one.value), float(other.value), draws, one.higher_is_better)
    return found


def differences_to_plain(differences: dict[str, Difference]) -> dict[str, Any]:
    """As dictionaries and numbers, ready for JSON."""
    return {name: _plain(one) for name, one in differences.items()}


def _plain(one: Difference) -> dict[str, Any]:
    ends = one.interval
    # two infinite scores have no difference
    value = None if np.isnan(one.value) else plain(one.value)
    low, high = ends if ends else (None, None)
    found = {"first": plain(one.first), "second": plain(one.second), "difference": value, "low": low, "high": high}
    return found | {"clear": one.clear, "better": one.better}


def _unpaired(first: Float[np.ndarray, " seed"], second: Float[np.ndarray, " seed"]) -> Float[np.ndarray, " seed"]:
    """Draws whose variance is the sum of both, whatever the chance correlation of the two orders."""
    both = np.isfinite(first) & np.isfinite(second)
    if both.sum() < 2:
        return np.full(len(first), np.nan)
    one, other = first - first[both].mean(), second - second[both].mean()
    wanted = np.var(first[both], ddof=1) + np.var(second[both], ddof=1)
    apart = other - one
    actual = np.var(apart[both], ddof=1)
    if actual == 0.0:
        return np.where(both, np.sqrt(wanted) * np.where(np.arange(len(both)) % 2, 1.0, -1.0), np.nan)
    return np.where(both, apart * np.sqrt(wanted / actual), np.nan)
