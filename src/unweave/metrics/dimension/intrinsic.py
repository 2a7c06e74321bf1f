"""Intrinsic dimension by all estimators at once, over several random subsets (Bonheme, 2023, §8.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unweave import rng
from unweave.metrics.dimension.mle import NEIGHBOURS, Mle, checked, mle, mle_of
from unweave.metrics.dimension.nearest import distinct_distances
from unweave.metrics.dimension.two_nn import TwoNN, two_nn, two_nn_of
from unweave.metrics.estimators.arrays import as_codes, check_count
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Intrinsic:
    """``score`` is the mean of the MLE over the subsets, ``spread`` its standard deviation, and so for TwoNN."""

    score: float
    spread: float
    two_nn: float
    two_nn_spread: float
    mle_runs: tuple[Mle, ...]
    two_nn_runs: tuple[TwoNN, ...]

    def __repr__(self) -> str:
        if len(self.mle_runs) == 1:  # of one draw no spread is known
            return f"{self.score:.2f} by MLE, {self.two_nn:.2f} by TwoNN"
        return f"{self.score:.2f} ± {self.spread:.2f} by MLE, {self.two_nn:.2f} ± {self.two_nn_spread:.2f} by TwoNN"


def intrinsic(
    points: Any,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    anchor: float = 0.9,
    n_samples: int = 10_000,
    seeds: Sequence[int] = (0,),
) -> Intrinsic:
    """MLE and TwoNN from one neighbour search for each seed, on up to ``n_samples`` points drawn without repetition.

    With no more points than that, every seed sees all of them and the spread is 0. Equal points have dimension 0.
    """
    check_count(n_samples, "n_samples", least=3)
    if len(seeds) == 0:
        raise ValueError("seeds must name at least one seed, given none")
    chosen = checked(neighbours, averaging)
    if not 0.0 < anchor < 1.0:
        raise ValueError(f"anchor must lie between 0 and 1, not {anchor}")
    table = as_codes(points, "points")
    runs = [
        _one(_subset(table, n_samples, seed), chosen, averaging, anchor) for seed in _needed(table, n_samples, seeds)
    ]
    dimensions = torch.tensor([[likely.score, two.score] for likely, two in runs], dtype=torch.float64)
    mean, spread = dimensions.mean(0).tolist(), dimensions.std(0, correction=0).tolist()
    return Intrinsic(mean[0], spread[0], mean[1], spread[1], tuple(m for m, _ in runs), tuple(t for _, t in runs))


def _one(
    points: Float[Tensor, "sample feature"], neighbours: tuple[int, ...], averaging: str, anchor: float
) -> tuple[Mle, TwoNN]:
    distances = distinct_distances(points, max(2, neighbours[-1]), max(3, len(points)))
    if distances is None:
        return mle(points, neighbours=neighbours, averaging=averaging), two_nn(points, anchor=anchor)
    return mle_of(distances, neighbours, averaging), two_nn_of(distances, anchor)


def _needed(points: Tensor, n_samples: int, seeds: Sequence[int]) -> Sequence[int]:
    return seeds if len(points) > n_samples else seeds[:1]


def _subset(points: Float[Tensor, "sample feature"], n_samples: int, seed: int) -> Float[Tensor, "subset feature"]:
    if len(points) <= n_samples:
        return points
    order = rng.words(seed, rng.Purpose.EVALUATE, 0, len(points), 1)[:, 0].argsort(stable=True)
    return points[order[:n_samples].to(points.device)]
