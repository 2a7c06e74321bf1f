"""Selection and transfer: does what was best once beat a random choice elsewhere? (Locatello et al., 2019, §5.5.)

A setting (objective and strength) is selected as the best by one metric on one data set under one seed. Under another
seed it is set against a setting drawn at random, by the same or another metric, on the same or other data.
"""

import math
from dataclasses import dataclass

import numpy as np

from unweave.shapes import Float
from unweave.studies.statistics.intervals import Interval, jackknife_interval

KINDS = ("same metric and data", "same metric, other data", "other metric, same data", "other metric and data")


@dataclass(frozen=True)
class Transfer:
    """Probabilities to beat a random choice, by :data:`KINDS`, with 95 % intervals over seeds and worlds.

    None where there is nothing to transfer to: a single data set, a single metric, a single seed.
    """

    share: dict[str, float | None]
    interval: dict[str, Interval | None]
    by_seeds: dict[str, Float[np.ndarray, "seed seed"] | None]
    """[selected under, tried under], NaN on the diagonal."""


def transfer(scores: Float[np.ndarray, "world setting seed metric"], *, some_worlds: bool = False) -> Transfer:
    """Probability that the selected setting beats a random other one, all selections and trials counted, not drawn.

    With ``some_worlds`` these stand for others: intervals are over worlds too, and there is none of fewer than three.
    More is better for every metric. Ties count half. A missing run (NaN) neither wins nor is beaten.
    """
    if scores.ndim != 4 or scores.shape[1] < 2:
        raise ValueError(
            f"scores must be [world setting seed metric] with two settings or more, given shape {scores.shape}"
        )
    by_seeds = {kind: _by_seeds(scores, kind) for kind in KINDS}
    share = {kind: None if found is None else float(np.nanmean(found)) for kind, found in by_seeds.items()}
    interval = {
        kind: None if found is None else _interval(found, scores if some_worlds else None, kind)
        for kind, found in by_seeds.items()
    }
    return Transfer(share, interval, by_seeds)


def _by_seeds(scores: Float[np.ndarray, "world setting seed metric"], kind: str) -> np.ndarray | None:
    return _trials(share_beaten(scores), _best(scores), kind)


def share_beaten(
    scores: Float[np.ndarray, "world setting seed metric"],
) -> Float[np.ndarray, "world setting seed metric"]:
    """Of each model the share of the other settings, under its own seed, that it beats by each metric."""
    first, second = scores[:, :, None], scores[:, None]
    with np.errstate(invalid="ignore"):
        won = (first > second) + 0.5 * (first == second)
    valid = np.isfinite(first) & np.isfinite(second)
    own = np.eye(scores.shape[1], dtype=bool)[None, :, :, None, None]
    valid = valid & ~own
    count = valid.sum(2)
    total = np.where(valid, won, 0.0).sum(2)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _best(scores: np.ndarray) -> np.ndarray:
    """The best setting by world, seed and metric; −1 where none was run, or none is better than another."""
    filled = np.where(np.isfinite(scores), scores, -np.inf)
    least = np.where(np.isfinite(scores), scores, np.inf).min(1)
    return np.where(filled.max(1) > least, filled.argmax(1), -1)


def _trials(wins: np.ndarray, chosen: np.ndarray, kind: str) -> np.ndarray | None:
    """[selected under, tried under]: mean share beaten over all allowed (world, metric) and (world', metric')."""
    n_worlds, _, n_seeds, n_metrics = wins.shape
    places = [(w, m) for w in range(n_worlds) for m in range(n_metrics)]
    allowed = [
        (w, m, other, metric)
        for w, m in places
        for other, metric in places
        if (metric == m) == kind.startswith("same metric")
        and (other == w) == (kind in ("same metric and data", "other metric, same data"))
    ]
    if not allowed or n_seeds < 2:
        return None
    found = np.full((len(allowed), n_seeds, n_seeds), np.nan)
    for place, (w, m, other, metric) in enumerate(allowed):
        best = chosen[w, :, m]
        tried = wins[other][:, :, metric][np.maximum(best, 0)]  # [selected under, tried under]
        found[place] = np.where(best[:, None] >= 0, tried, np.nan)
    known = np.isfinite(found)
    mean = np.where(known, found, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    mean[~known.any(0) | np.eye(n_seeds, dtype=bool)] = np.nan
    return mean if np.isfinite(mean).any() else None


def _interval(by_seeds: np.ndarray, scores: np.ndarray | None, kind: str) -> Interval | None:
    """Delete one seed at a time, as selection and as trial; of ``scores`` one world at a time too.

    None with fewer than three: what two give says nothing of others.
    """
    value = float(np.nanmean(by_seeds))
    without = [[np.delete(np.delete(by_seeds, one, 0), one, 1) for one in range(len(by_seeds))]]
    if scores is not None:
        parts = (_by_seeds(np.delete(scores, one, 0), kind) for one in range(len(scores)))
        without.append([part for part in parts if part is not None])
    reach = 0.0
    for some in without:
        if len(some) < 3 or any(not np.isfinite(part).any() for part in some):
            return None
        _, high = jackknife_interval(value, np.array([np.nanmean(part) for part in some]))
        reach = math.hypot(reach, high - value)
    return max(0.0, value - reach), min(1.0, value + reach)
