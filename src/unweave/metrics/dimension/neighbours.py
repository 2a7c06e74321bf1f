"""Distances to nearest neighbours: by a k-d tree where codes fill few directions, by blocked products elsewhere."""

import importlib.util
from collections.abc import Iterator

import torch

from unweave.shapes import Float, Int, Tensor

BLOCK_BYTES, WIDE_BLOCK_BYTES = 8 * 2**20, 64 * 2**20
"""Memory for one block of distances, and for one of differences: about what a core's cache holds, where products do not
take longer than what follows them."""

NARROW = 64
"""Features up to which points are narrow."""

SPARE = 4
"""Further candidates kept from the rounded distances, so that the exact ones can change their order."""

FEW_DIRECTIONS = 8.0
"""Up to so many, counted by their variances, a tree looks at a small part of the points."""


def neighbour_distances(
    points: Float[Tensor, "sample feature"],
    n_neighbours: int,
    *,
    asked: Int[Tensor, " row"] | None = None,
    block_bytes: int | None = None,
) -> Float[Tensor, "row neighbour"]:
    """Euclidean distances of every point, or of those in the rows ``asked``, to its nearest others, ascending.

    Candidates come from a search in the precision of the points; the distances returned are taken from differences in
    float64, so near neighbours do not drown in rounding.
    """
    n_points = len(points)
    if n_points <= n_neighbours:
        raise ValueError(f"{n_neighbours} neighbours need at least {n_neighbours + 1} points, given {n_points}")
    centred = points - points.mean(0)
    narrow = points.shape[1] <= NARROW and points.device.type == "cpu"
    block_bytes = block_bytes or (BLOCK_BYTES if narrow else WIDE_BLOCK_BYTES)
    n_candidates = min(n_points, n_neighbours + SPARE + 1)
    # a machine that only trains may have no SciPy; the candidates are the same either way
    has_tree = importlib.util.find_spec("scipy") is not None
    search = _by_tree if has_tree and narrow and _is_for_a_tree(centred) else _by_products
    places = torch.arange(n_points, device=points.device) if asked is None else asked
    found = []
    for own, candidates in search(centred, places, n_candidates, block_bytes):
        distances = _exact(centred[own], centred, candidates, block_bytes)
        distances[candidates == own[:, None]] = torch.inf  # no point is its own neighbour
        found.append(distances.sort(1).values[:, :n_neighbours])
    return torch.cat(found)


def _is_for_a_tree(centred: Float[Tensor, "sample feature"]) -> bool:
    if len(centred) < 1000:
        return False
    variances = torch.linalg.eigvalsh(centred.T.to(torch.float64) @ centred.to(torch.float64)).clamp(min=0)
    # (Σ λ)² / Σ λ²: as many directions as would have equal variances
    return bool(variances.sum() ** 2 <= FEW_DIRECTIONS * variances.square().sum())


def _by_tree(
    centred: Float[Tensor, "sample feature"], places: Int[Tensor, " row"], n: int, block_bytes: int
) -> Iterator[tuple[Tensor, Tensor]]:
    from scipy.spatial import cKDTree

    table = centred.numpy()
    # larger leaves and boxes halved in the middle: less to look at than in a tree of medians, the same neighbours
    tree = cKDTree(table, leafsize=32, balanced_tree=False)
    for own in places.split(max(1, block_bytes // (16 * n))):
        yield own, torch.from_numpy(tree.query(table[own], k=n)[1]).view(-1, n)


def _by_products(
    centred: Float[Tensor, "sample feature"], places: Int[Tensor, " row"], n: int, block_bytes: int
) -> Iterator[tuple[Tensor, Tensor]]:
    squares = centred.square().sum(1)
    for own in places.split(max(1, block_bytes // (8 * len(centred)))):
        # ‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y; ‖x‖² is the same for the whole row and does not change the order
        rounded = torch.addmm(squares, centred[own], centred.T, alpha=-2.0)
        rounded[torch.arange(len(own), device=own.device), own] = -torch.inf
        yield own, rounded.topk(n, dim=1, largest=False, sorted=False).indices


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
