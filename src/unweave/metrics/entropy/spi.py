"""Structure preservation index, SPI (Gupta, Banchs and Rosso, 2016)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import check_lengths
from unweave.shapes import Float, Tensor

BLOCK = 1024


@dataclass(frozen=True)
class Spi:
    """``score`` as published, Σ_ij / samples, so that it grows with their number; ``per_pair`` divides once more."""

    score: float
    per_pair: float
    per_example: Float[Tensor, " sample"]


def spi(images: Any, reconstructions: Any) -> Spi:
    """How much reconstruction changes the cosine similarities between examples; 0 when it keeps them all.

    Both are sample × …. An example of zeros has no direction: its cosine with everything is 0.
    """
    tables = [torch.as_tensor(part).detach().float() for part in (images, reconstructions)]
    if any(table.ndim < 2 or table.numel() == 0 for table in tables):
        raise ValueError(f"images and reconstructions must be sample × …, given {[tuple(t.shape) for t in tables]}")
    before, after = (_directions(table.flatten(1)) for table in tables)
    check_lengths(before, after, ("images", "reconstructions"))
    parts = []
    for left, right in zip(before.split(BLOCK), after.split(BLOCK)):
        # SPI = 1/h Σ_ij |D_ij − D̂_ij|
        parts.append((left @ before.T - right @ after.T).abs().sum(1, dtype=torch.float64))
    per_example = torch.cat(parts)
    score = float(per_example.sum()) / len(before)
    return Spi(score, score / len(before), per_example / len(before))


def _directions(table: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample feature"]:
    norm = table.norm(dim=1, keepdim=True)
    return torch.where(norm > 0, table / norm.clamp(min=1e-30), 0.0)
