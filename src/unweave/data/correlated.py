"""Correlated factors (Träuble et al., 2021): training draws some pairs of factors along a Gaussian ridge.

Only what is drawn in training is weighted. Scores are taken on the whole world, in which the factors are independent.
"""

import re
from dataclasses import dataclass, replace

import torch

from unweave.config import later
from unweave.data.factors import FactorSpace
from unweave.data.world import Data, World
from unweave.shapes import Float, Int, Tensor

RIDGE = re.compile(r"\s*(\w+)\s*=\s*(-?)\s*(\w+)\s*:\s*([0-9.eE+-]+)\s*")
BITS = 62
"""Thresholds count in 2⁻⁶²; two random words of 32 bits find a row."""


@dataclass(frozen=True, kw_only=True)
class FactorWorld(World):
    """A world with factors, which may be correlated in what is trained on.

    Each entry is ``x=y:0.2``: x and y, both on [0, 1], differ by about 0.2; ``x=-y:0.2`` for x and 1 − y.
    """

    correlated: tuple[str, ...] = later(
        (), help="pairs of factors that go together in training, and how closely, as in x=y:0.2"
    )

    def weighted(self, data: Data) -> Data:
        """The data with the weights that its rows have in training, where factors are correlated."""
        if not self.correlated:
            return data
        if data.space is None:
            raise ValueError(f"{self.name} has no factors that could be correlated: leave correlated out")
        return replace(data, weights=row_weights(data.space, self.correlated))


def row_weights(space: FactorSpace, correlated: tuple[str, ...]) -> Float[Tensor, " sample"]:
    """How often each row comes, relative to the others, float64; several ridges are multiplied."""
    values = space.values(torch.arange(space.n_cells))
    weights = torch.ones(space.n_cells, dtype=torch.float64)
    for entry in correlated:
        first, second, turned, width = _ridge(space, entry)
        one, other = (values[:, place].double() / (space.sizes[place] - 1) for place in (first, second))
        # p(c₁, c₂) ∝ exp(−(c₁ − c₂)² / 2σ²)
        weights *= torch.exp(-(((one - (1 - other if turned else other)) / width) ** 2) / 2)
    return weights


def row_thresholds(weights: Float[Tensor, "*model sample"]) -> Int[Tensor, "*model sample"]:
    """The distribution function over rows in steps of 2⁻⁶², on the weights' device and the same on every one."""
    # summed in one order, so that a GPU draws the same rows
    summed = weights.cpu().double().cumsum(-1)
    reached = (summed / summed[..., -1:] * 2.0**BITS).long()
    # nothing lies beyond the last row that has a weight, should rounding keep the sum a hair below one
    last = summed.shape[-1] - 1 - (weights.cpu() > 0).flip(-1).long().argmax(-1, keepdim=True)
    places = torch.arange(summed.shape[-1])
    return torch.where(places < last, reached, 2**BITS).to(weights.device)


def draw_places(
    thresholds: Int[Tensor, "*model sample"], words: Int[Tensor, "step model batch 2"]
) -> Int[Tensor, "step model batch"]:
    """Places that come as often as their weights say, two random words each; thresholds of all models or of each."""
    wanted = (words[..., 0] << (BITS - 32)) | (words[..., 1] >> (64 - BITS))
    if thresholds.ndim == 1:
        return torch.searchsorted(thresholds, wanted.contiguous(), right=True)
    by_model = wanted.movedim(0, 1).flatten(1).contiguous()
    found = torch.searchsorted(thresholds, by_model, right=True)
    return found.unflatten(1, (words.shape[0], words.shape[2])).movedim(1, 0)


def _ridge(space: FactorSpace, entry: str) -> tuple[int, int, bool, float]:
    read = RIDGE.fullmatch(entry)
    try:
        width = float(read[4]) if read else 0.0
    except ValueError:
        width = 0.0
    if read is None or not 0 < width < float("inf"):
        raise ValueError(
            f"correlated takes two factors and a width above 0, as in {space.names[0]}={space.names[-1]}:0.2,"
            f" not {entry[:80]!r}"
        )
    first, second = space.position(read[1]), space.position(read[3])
    if first == second:
        raise ValueError(f"correlated takes two different factors, not {entry[:80]!r}")
    for place in (first, second):
        if space.sizes[place] < 2:
            raise ValueError(f"{space.names[place]} has one value only and cannot be correlated with anything")
    return first, second, bool(read[2]), width
