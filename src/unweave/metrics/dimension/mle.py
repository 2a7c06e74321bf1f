"""Maximum-likelihood intrinsic dimension (Levina and Bickel, 2004; averaging of MacKay and Ghahramani, 2005)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.dimension.neighbours import distinct, neighbour_distances
from unweave.metrics.dimension.stable import Stable, stable_range
from unweave.metrics.estimators.arrays import as_codes, check_count
from unweave.shapes import Float, Tensor

NEIGHBOURS = (3, 5, 10, 20)
AVERAGING = ("levina_bickel", "mackay_ghahramani")


@dataclass(frozen=True)
class Mle:
    """``score`` is the mean over the stable range of ``per_k``, by the averaging that was asked for.

    ``levina_bickel`` averages the points' estimates, ``mackay_ghahramani`` their inverses (the likelihood of all
    points together; lower, and less biased for small k). ``n_points`` counts distinct points.
    """

    score: float
    neighbours: tuple[int, ...]
    per_k: Float[Tensor, " k"]
    levina_bickel: Float[Tensor, " k"]
    mackay_ghahramani: Float[Tensor, " k"]
    stable: Stable
    n_points: int


def mle(codes: Any, *, neighbours: Sequence[int] = NEIGHBOURS, averaging: str = "levina_bickel") -> Mle:
    """The dimension in which codes, or points of any kind, lie, from how fast their neighbours recede.

    Points that occur several times count once: a repetition says nothing of the dimension, and its distance of 0
    would decide the estimate. A single distinct point has dimension 0.
    """
    chosen = checked(neighbours, averaging)
    table = as_codes(codes)
    distances = distinct_distances(table, chosen[-1])
    if distances is None:
        zeros = torch.zeros(len(chosen), dtype=torch.float64)
        return Mle(0.0, chosen, zeros, zeros, zeros, stable_range(chosen, zeros.tolist()), 1)
    return mle_of(distances, chosen, averaging)


def mle_of(
    distances: Float[Tensor, "sample neighbour"], neighbours: tuple[int, ...], averaging: str = "levina_bickel"
) -> Mle:
    """The same from the distances to the nearest neighbours of distinct points."""
    inverses = torch.stack([_inverse(distances[:, :k]) for k in neighbours])
    both = {"levina_bickel": _mean_of_estimates(inverses), "mackay_ghahramani": 1.0 / inverses.mean(1)}
    stable = stable_range(neighbours, both[averaging].tolist())
    return Mle(stable.value, neighbours, both[averaging], **both, stable=stable, n_points=len(distances))


def distinct_distances(
    points: Float[Tensor, "sample feature"], n_neighbours: int
) -> Float[Tensor, "distinct neighbour"] | None:
    """Neighbour distances without repeated points; None where all points are one."""
    enough = len(points) > n_neighbours
    distances = neighbour_distances(points, n_neighbours) if enough else None
    if distances is not None and bool((distances[:, 0] > 0).all()):
        return distances
    kept = distinct(points)
    if len(kept) == 1:
        return None
    if len(kept) <= n_neighbours:
        raise ValueError(
            f"{n_neighbours} neighbours need at least {n_neighbours + 1} distinct points, given {len(kept)} of"
            f" {len(points)}; ask for fewer neighbours"
        )
    return neighbour_distances(kept, n_neighbours)


def _inverse(distances: Float[Tensor, "sample k"]) -> Float[Tensor, " sample"]:
    # 1 / d_k(x) = 1/(k − 1) Σ_{j<k} log T_k(x) / T_j(x)
    return (distances[:, -1:] / distances[:, :-1]).log().mean(1)


def _mean_of_estimates(inverses: Float[Tensor, "k sample"]) -> Float[Tensor, " k"]:
    # a point whose neighbours are all equally far has no estimate of its own
    finite = inverses > 0
    estimates = torch.where(finite, 1.0 / inverses.clamp(min=1e-300), 0.0).sum(1) / finite.sum(1)
    return torch.where(finite.any(1), estimates, torch.inf)


def checked(neighbours: Sequence[int], averaging: str) -> tuple[int, ...]:
    """The numbers of neighbours in ascending order, once each; one sentence where a setting is wrong."""
    if averaging not in AVERAGING:
        raise ValueError(f"averaging must be {' or '.join(AVERAGING)}, not {averaging!r}")
    for k in neighbours:
        check_count(k, "neighbours", least=2)
    if len(neighbours) == 0:
        raise ValueError("neighbours must name at least one number of neighbours, given none")
    return tuple(sorted({int(k) for k in neighbours}))
