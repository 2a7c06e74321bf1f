"""Mixed autocorrelated sources: the simulation of permutation-contrastive learning (Hyvärinen & Morioka, 2017)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave import rng
from unweave.config import check_fields, number
from unweave.data.files import Progress
from unweave.data.world import Card, Data, World
from unweave.shapes import Float, Tensor

WARM_UP = 512
"""Points before the first that is kept: the start is forgotten by then."""

N_CANDIDATES = 100
SLOPE = 0.2
INNOVATIONS = 0
"""Step of the counter; the mixing layers have the steps after it."""


@dataclass(frozen=True)
class PCLToy(World):
    """Sources s_t = ρ s_{t−1} + Laplace noise, of unit variance, through a random leaky network that can be inverted.

    The labels are the sources. Points that follow each other in time are pairs. Of every layer the best conditioned of
    a hundred random matrices with columns of unit length is taken; ``whiten`` gives the principal components of the
    mixtures at unit variance, as the authors feed them.
    """

    name: ClassVar[str] = "pcl_toy"
    n_points: int = number(2**18, least=2, most=10**8, help="points in time")
    n_sources: int = number(20, least=1, most=1000, help="sources, and dimensions of a point")
    layers: int = number(3, least=1, most=100, help="of the mixing network")
    autocorrelation: float = number(0.7, least=0, below=1, help="ρ, of each source from one point to the next")
    whiten: bool = True
    seed: int = number(0, least=0, most=2**63 - 1, help="which sources and which network")

    def card(self) -> Card:
        return Card(
            "PCL toy",
            (self.n_sources,),
            self.n_points,
            None,
            on_disk=True,
            how_to_get="Nothing to get: generated on load.",
            note=f"{self.n_sources} sources with autocorrelation {self.autocorrelation:g}, mixed by a network",
            labels=self._names(),
            pairs="points that follow each other in time",
        )

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        sources = self._sources()
        mixed = sources
        for layer in range(self.layers):
            mixed = (_leaky(mixed) if layer else mixed) @ self._matrix(layer)
        mixed = _whitened(mixed) if self.whiten else mixed
        time = torch.arange(self.n_points - 1)
        return Data(
            mixed.float(),
            shape=(self.n_sources,),
            packing="floats",
            labels=sources.float(),
            label_names=self._names(),
            pairs=torch.stack([time, time + 1], dim=-1),
        )

    def _names(self) -> tuple[str, ...]:
        return tuple(f"s{number + 1}" for number in range(self.n_sources))

    def _sources(self) -> Float[Tensor, "sample source"]:
        n, rho = self.n_points + WARM_UP, self.autocorrelation
        words = rng.words(self.seed, rng.Purpose.WORLD, INNOVATIONS, n, self.n_sources)
        centred = (words.double() + 0.5) * 2.0**-32 - 0.5
        # Laplace by its distribution function; its variance is 2, and that of the sources 2 / (1 − ρ²)
        series = -centred.sign() * torch.log1p(-2.0 * centred.abs()) * math.sqrt((1.0 - rho**2) / 2.0)
        # s_t = Σ_k ρᵏ e_{t−k}, summed over twice as many k in every turn
        shift = 1
        while shift < n and rho**shift > 1e-17:
            series[shift:] = series[shift:] + rho**shift * series[:-shift]
            shift *= 2
        return series[WARM_UP:]

    def _matrix(self, layer: int) -> Float[Tensor, "source mixture"]:
        n = self.n_sources
        drawn = rng.uniform(self.seed, rng.Purpose.WORLD, INNOVATIONS + 1 + layer, N_CANDIDATES, n * n).double()
        matrices = 2.0 * drawn.view(N_CANDIDATES, n, n) - 1.0
        matrices = matrices / matrices.norm(dim=1, keepdim=True)
        return matrices[torch.linalg.cond(matrices).argmin()]


def _leaky(x: Float[Tensor, "sample source"]) -> Float[Tensor, "sample source"]:
    return torch.where(x > 0, x, SLOPE * x)


def _whitened(x: Float[Tensor, "sample mixture"]) -> Float[Tensor, "sample component"]:
    centred = x - x.mean(0)
    variances, directions = torch.linalg.eigh(centred.T @ centred / len(x))
    # eigenvectors come with either sign: the largest entry is positive here
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return centred @ (directions * largest.sign() / variances.clamp(min=1e-12).sqrt())
