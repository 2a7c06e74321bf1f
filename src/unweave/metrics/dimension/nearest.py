"""Distances to nearest neighbours that several estimators of dimension start from, searched for once."""

from unweave import rng
from unweave.metrics.dimension.neighbours import distinct, neighbour_distances
from unweave.metrics.estimators.arrays import check_count
from unweave.shapes import Float, Int, Tensor

Distances = Float[Tensor, "asked neighbour"]


class Nearest:
    """Points, and the distances that were asked for: whoever asks for fewer neighbours finds them."""

    def __init__(self, points: Float[Tensor, "sample feature"]) -> None:
        self.points = points
        self.known: dict[int, tuple[int, Distances | None]] = {}

    def distances(self, n_neighbours: int, n_asked: int) -> Distances | None:
        """As :func:`distinct_distances` finds them."""
        n_known, found = self.known.get(n_asked, (0, None))
        if n_known < n_neighbours:
            found = distinct_distances(self.points, n_neighbours, n_asked)
            self.known[n_asked] = n_neighbours, found
        return None if found is None else found[:, :n_neighbours]


def distinct_distances(points: Float[Tensor, "sample feature"], n_neighbours: int, n_asked: int) -> Distances | None:
    """Neighbour distances of at most so many points, without repeated ones; None where all points are one."""
    check_count(n_asked, "n_asked", least=3)
    enough = n_neighbours < len(points) <= n_asked
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
    return neighbour_distances(kept, n_neighbours, asked=_asked(kept, n_asked))


def _asked(points: Float[Tensor, "sample feature"], n_asked: int) -> Int[Tensor, " row"] | None:
    """Of many points some at random, in the order of the table; all of few."""
    if len(points) <= n_asked:
        return None
    order = rng.words(0, rng.Purpose.EVALUATE, 0, len(points), 1)[:, 0].argsort(stable=True)
    return order[:n_asked].sort().values.to(points.device)
