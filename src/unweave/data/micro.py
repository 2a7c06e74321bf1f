"""The micro-world: a soft disc of 16 × 16 places and 8 sizes, 32 × 32 pixels, rendered in a blink.

Small enough for a demonstration on a laptop and clear enough for a verdict: a model that has learned it uses three
latents.
"""

from dataclasses import dataclass
from typing import ClassVar

from unweave.config import later
from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Progress
from unweave.data.procedural.disc import render_discs
from unweave.data.world import Card, Data

N_X, N_Y, N_SIZES = 16, 16, 8
SPACE = FactorSpace((Factor("x", N_X), Factor("y", N_Y), Factor("size", N_SIZES)))


@dataclass(frozen=True)
class Micro(FactorWorld):
    """A white disc on black; its factors are x, y and size.

    As it is, nothing tells x and y from turned axes: which a VAE finds is chance. With a smaller ``width`` x matters
    less than y, and VAEs find the two. With a smaller ``reach`` all discs overlap, and images change almost linearly
    with their factors.
    """

    name: ClassVar[str] = "micro"
    width: float = later(1.0, above=0, most=1, help="how far discs go to the sides, as a share of up and down")
    reach: float = later(
        1.0, above=0, most=1, help="how far discs go from the middle, as a share of the way to the edge"
    )

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
        return self.weighted(
            Data(
                render_discs(N_X, N_Y, N_SIZES, self.width, self.reach), shape=(1, 32, 32), packing="bytes", space=SPACE
            )
        )
