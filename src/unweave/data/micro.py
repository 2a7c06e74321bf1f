"""The micro-world: a soft disc of 16 × 16 places and 8 sizes, 32 × 32 pixels, rendered in a blink.

Small enough for a demonstration on a laptop and clear enough for a verdict: a model that has learned it uses three
latents.
"""

from dataclasses import dataclass
from typing import ClassVar

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Progress
from unweave.data.procedural.disc import render_discs
from unweave.data.world import Card, Data

SPACE = FactorSpace((Factor("x", 16), Factor("y", 16), Factor("size", 8)))


@dataclass(frozen=True)
class Micro(FactorWorld):
    """A white disc on black; its factors are x, y and size."""

    name: ClassVar[str] = "micro"

    def card(self) -> Card:
        return Card(
            title="Micro",
            shape=(1, 32, 32),
            n_examples=SPACE.n_cells,
            space=SPACE,
            on_disk=True,
            how_to_get="Nothing to get: rendered when it is loaded.",
            note="a soft disc with three factors, for demonstrations and tests",
        )

    def load(self, progress: Progress | None = None) -> Data:
        return self.weighted(Data(render_discs(*SPACE.sizes), shape=(1, 32, 32), packing="bytes", space=SPACE))
