"""Discs whose place and size change more in some stretches of time than in others: images for iVAE.

Nothing but these spreads tells x and y from turned axes. Methods with labels are told the segment of an image, and
codes are scored against its sources.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave import rng
from unweave.config import check_fields, number
from unweave.data.files import Progress
from unweave.data.procedural.disc import CENTRES, RADII, discs_at
from unweave.data.world import Card, Data, World
from unweave.shapes import Float, Tensor

SPREADS, SOURCES = range(2)
"""Steps of the counter: each part has its own numbers."""

NAMES = ("x", "y", "size")
LEAST, MOST = 0.05, 1.2


@dataclass(frozen=True)
class MicroSegments(World):
    """The disc of the micro-world in ``segments``; x, y and size are independent and normal, with spreads of their own.

    s ~ N(0, λ²), log λ ~ U(log 0.05, log 1.2) for each source in each segment; the disc is tanh(s) of its reach away
    from the middle.
    """

    name: ClassVar[str] = "micro_segments"
    segments: int = number(40, least=1, most=10_000, help="segments")
    points: int = number(500, least=1, most=10**5, help="images of each segment")
    seed: int = number(0, least=0, most=2**63 - 1, help="which spreads and sources")

    def card(self) -> Card:
        return Card(
            title="Micro in segments",
            shape=(1, 32, 32),
            n_examples=self.segments * self.points,
            space=None,
            on_disk=True,
            how_to_get="Nothing to get: rendered when it is loaded.",
            note="a soft disc that moves and grows more in some segments than in others; labels: the segment",
            labels=NAMES,
            segments=f"{self.segments}, each with spreads of its own",
        )

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        n_images = self.segments * self.points
        drawn = rng.uniform(self.seed, rng.Purpose.WORLD, SPREADS, self.segments, len(NAMES))
        spreads = LEAST * (MOST / LEAST) ** drawn
        segments = torch.arange(n_images) // self.points
        sources = rng.normal(self.seed, rng.Purpose.WORLD, SOURCES, n_images, len(NAMES)) * spreads[segments]
        return Data(
            torch.cat([discs_at(*_placed(part)) for part in sources.split(4096)]),
            shape=(1, 32, 32),
            packing="bytes",
            labels=sources,
            label_names=NAMES,
            segments=segments,
        )


def _placed(sources: Float[Tensor, "sample source"]) -> tuple[Float[Tensor, " sample"], ...]:
    """Centres and radii in pixels."""
    x, y, size = torch.tanh(sources.double()).unbind(1)
    return _within(CENTRES, x), _within(CENTRES, y), _within(RADII, size)


def _within(ends: tuple[float, float], share: Float[Tensor, " sample"]) -> Float[Tensor, " sample"]:
    return (ends[0] + ends[1]) / 2 + share * (ends[1] - ends[0]) / 2
