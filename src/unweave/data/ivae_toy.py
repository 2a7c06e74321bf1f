"""The toy of iVAE (Khemakhem et al., 2020): Gaussian sources whose spread changes from segment to segment, mixed.

Methods with labels are told the segment of a point; codes are scored against its sources.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave import rng
from unweave.config import check_fields, number
from unweave.data.files import Progress
from unweave.data.world import Card, Data, World
from unweave.shapes import Float, Tensor

SPREADS, SOURCES, FIRST, LATER = range(4)
"""Steps of the counter: each part has its own numbers."""

N_TRIES = 1000
"""Matrices that are drawn; the first in the better conditioned quarter of them is taken."""


@dataclass(frozen=True)
class IVAEToy(World):
    """Points [segment × point, observed] = mixing(sources), sources of a segment normal with spreads of its own.

    The mixing is that of the original: three layers with columns of unit length, tanh(a) + a/10 after the first two;
    the last two layers share one matrix. Matrices are uniform on [−1, 1], and none that is badly conditioned is taken.
    """

    name: ClassVar[str] = "ivae_toy"
    segments: int = number(40, least=1, most=10_000, help="segments")
    points: int = number(1000, least=1, most=10**6, help="points of each segment")
    sources: int = number(2, least=1, most=100, help="independent sources, the factors")
    observed: int = number(4, least=1, most=1000, help="numbers in a point; at least as many as sources")
    seed: int = number(0, least=0, most=2**63 - 1, help="which spreads, sources and mixing")

    def card(self) -> Card:
        return Card(
            title="iVAE toy",
            shape=(self.observed,),
            n_examples=self.segments * self.points,
            space=None,
            on_disk=True,
            how_to_get="Nothing to get: generated on load.",
            note=f"{self.sources} sources in {self.segments} segments with other spreads, mixed; labels: the segment",
            labels=self._names(),
            segments=f"{self.segments}, each with spreads of its own",
        )

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        if self.observed < self.sources:
            raise ValueError(f"{self.sources} sources need at least as many observed numbers, not {self.observed}")
        n_points = self.segments * self.points
        # λ ~ U(0.5, 3) for every source of every segment
        spreads = 0.5 + 2.5 * rng.uniform(self.seed, rng.Purpose.WORLD, SPREADS, self.segments, self.sources)
        segments = torch.arange(n_points) // self.points
        sources = rng.normal(self.seed, rng.Purpose.WORLD, SOURCES, n_points, self.sources) * spreads[segments]
        return Data(
            self.mixed(sources.double()).float(),
            shape=(self.observed,),
            packing="floats",
            labels=sources,
            label_names=self._names(),
            segments=segments,
        )

    def _names(self) -> tuple[str, ...]:
        return tuple(f"s{place + 1}" for place in range(self.sources))

    def mixed(self, sources: Float[Tensor, "sample source"]) -> Float[Tensor, "sample feature"]:
        """What is observed of sources."""
        first, later = self._drawn(FIRST, self.sources, self.observed), self._drawn(LATER, self.observed, self.observed)
        return _squashed(_squashed(sources @ first) @ later) @ later

    def _drawn(self, part: int, rows: int, columns: int) -> Float[Tensor, "row column"]:
        """A matrix with columns of unit length."""
        tries = rng.uniform(self.seed, rng.Purpose.WORLD, part, N_TRIES, rows * columns).double()
        matrices = (2.0 * tries - 1.0).view(N_TRIES, rows, columns)
        matrices = matrices / matrices.norm(dim=1, keepdim=True)
        values = torch.linalg.svdvals(matrices)
        conditions = values[:, 0] / values[:, -1]
        return matrices[int((conditions <= conditions.quantile(0.25)).long().argmax())]


def _squashed(x: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample feature"]:
    return torch.tanh(x) + 0.1 * x
