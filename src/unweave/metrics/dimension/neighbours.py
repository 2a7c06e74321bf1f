"""Distances to nearest neighbours by blocked brute force, in bounded memory."""

import torch

from unweave.shapes import Float, Int, Tensor

BLOCK_BYTES = 64 * 2**20
"""Memory for one block of distances, and for one of differences."""

SPARE = 4
"""Further candidates kept from the rounded distances, so that the exact ones can change their order."""


def neighbour_distances(
    points: Float[Tensor, "sample feature"], n_neighbours: int, *, block_bytes: int = BLOCK_BYTES
) -> Float[Tensor, "sample neighbour"]:
    """Euclidean distances of every point to its nearest others, ascending, in float64.

    Candidates come from ‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y in the precision of the points, one matrix product a block;
    the distances returned are taken from differences, so near neighbours do not drown in rounding.
    """
    n_points = len(points)
    if n_points <= n_neighbours:
        raise ValueError(f"{n_neighbours} neighbours need at least {n_neighbours + 1} points, given {n_points}")
    centred = points - points.mean(0)
    squares = centred.square().sum(1)
    n_candidates = min(n_points - 1, n_neighbours + SPARE)
    rows = max(1, block_bytes // (8 * n_points))
    found = []
    for begin in range(0, n_points, rows):
        block = centred[begin : begin + rows]
        # ‖x‖² is the same for the whole row and does not change the order
        rounded = torch.addmm(squares, block, centred.T, alpha=-2.0)
        places = torch.arange(len(block), device=points.device)
        rounded[places, begin + places] = torch.inf
        candidates = rounded.topk(n_candidates, dim=1, largest=False, sorted=False).indices
        found.append(_exact(block, centred, candidates, block_bytes).sort(1).values[:, :n_neighbours])
    return torch.cat(found)


def distinct(points: Float[Tensor, "sample feature"]) -> Float[Tensor, "distinct feature"]:
    """The points without repetitions, in the order of their first occurrence."""
    _, inverse = torch.unique(points, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(points), device=points.device)
    first = first.scatter_reduce(0, inverse, torch.arange(len(points), device=points.device), "amin")
    return points[first.sort().values]


def _exact(
    block: Float[Tensor, "row feature"],
    points: Float[Tensor, "sample feature"],
    candidates: Int[Tensor, "row candidate"],
    block_bytes: int,
) -> Float[Tensor, "row candidate"]:
    rows = max(1, block_bytes // (points.element_size() * points.shape[1] * candidates.shape[1]))
    parts = []
    for part, near in zip(block.split(rows), candidates.split(rows)):
        difference = points[near.flatten()].view(*near.shape, -1).sub_(part[:, None])
        parts.append(torch.linalg.vector_norm(difference, dim=-1, dtype=torch.float64))
    return torch.cat(parts)
