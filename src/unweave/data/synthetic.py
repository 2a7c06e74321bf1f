"""Synth-Lin and Synth-NonLin: a unit square in three and in six dimensions (Zietlow, 2022, section 3.3.1).

The labels are the two coordinates of the square, uniform on [0, 1] and continuous. Nothing is centred: the source maps
the square as it is, and a decoder with a bias does not care.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave import rng
from unweave.config import check_fields, number
from unweave.data.files import Progress
from unweave.data.world import Card, Data, World
from unweave.shapes import Float, Tensor

LABELS = ("w1", "w2")
POINTS, HIDDEN_WEIGHTS, HIDDEN_BIASES, OUTPUT_WEIGHTS, OUTPUT_BIASES = range(5)
"""Steps of the counter: each part has its own numbers."""

N_HIDDEN = 10


@dataclass(frozen=True)
class SynthLin(World):
    """The square stretched along its first axis by ``ratio``, laid into R³, turned by 45° about (1, −1, 1).

    The source does not say which axis is stretched; it is w1. A ratio of 1 is its degenerate case (Table 3.4).
    """

    name: ClassVar[str] = "synth_lin"
    mixes: ClassVar[bool] = True
    ratio: float = number(2.0, above=0, help="how far the first axis is stretched")
    n_points: int = number(50_000, least=1, most=10**8, help="points drawn")
    seed: int = number(0, least=0, most=2**63 - 1, help="which points")

    def card(self) -> Card:
        return _card("Synth-Lin", (3,), self.n_points, f"two continuous factors, w1 stretched by {self.ratio:g}")

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        square = _square(self.n_points, self.seed)
        # x = R (ratio w1, w2, 0)
        stretched = torch.stack([self.ratio * square[:, 0], square[:, 1], torch.zeros(self.n_points)], dim=-1)
        turned = stretched.double() @ rotation((1.0, -1.0, 1.0), math.pi / 4).T
        return Data(turned.float(), shape=(3,), packing="floats", labels=square, label_names=LABELS)


@dataclass(frozen=True)
class SynthNonLin(World):
    """The square through a random network, 2 → 10 tanh → 6.

    The source does not give the distribution of the weights. Here weights and biases are standard normal, the weights
    of the second layer divided by √10 so that an output has the size of a hidden unit; the output is not squashed.
    """

    name: ClassVar[str] = "synth_nonlin"
    mixes: ClassVar[bool] = True
    n_points: int = number(50_000, least=1, most=10**8, help="points drawn")
    seed: int = number(0, least=0, most=2**63 - 1, help="which points")

    def card(self) -> Card:
        return _card("Synth-NonLin", (6,), self.n_points, "two continuous factors through a random tanh network")

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        square = _square(self.n_points, self.seed)
        hidden = torch.tanh(square @ _normal(self.seed, HIDDEN_WEIGHTS, 2, N_HIDDEN) + self._biases(HIDDEN_BIASES, 10))
        weights = _normal(self.seed, OUTPUT_WEIGHTS, N_HIDDEN, 6) / math.sqrt(N_HIDDEN)
        points = hidden @ weights + self._biases(OUTPUT_BIASES, 6)
        return Data(points, shape=(6,), packing="floats", labels=square, label_names=LABELS)

    def _biases(self, part: int, size: int) -> Float[Tensor, " feature"]:
        return _normal(self.seed, part, 1, size)[0]


def rotation(axis: tuple[float, float, float], angle: float) -> Float[Tensor, "3 3"]:
    """The matrix that turns R³ about an axis, right-handed, by Rodrigues' formula."""
    x, y, z = (torch.tensor(axis, dtype=torch.float64) / math.hypot(*axis)).tolist()
    cross = torch.tensor([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=torch.float64)
    # R = I + sin(a) K + (1 - cos(a)) K²
    return torch.eye(3, dtype=torch.float64) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross


def _square(n_points: int, seed: int) -> Float[Tensor, "sample 2"]:
    return rng.uniform(seed, rng.Purpose.WORLD, POINTS, n_points, 2)


def _normal(seed: int, part: int, rows: int, columns: int) -> Float[Tensor, "rows columns"]:
    return rng.normal(seed, rng.Purpose.WORLD, part, rows, columns)


def _card(title: str, shape: tuple[int, ...], n_points: int, note: str) -> Card:
    return Card(title, shape, n_points, None, True, "Nothing to get: generated on load.", note, LABELS)
