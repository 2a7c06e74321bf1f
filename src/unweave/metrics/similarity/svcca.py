"""Singular vector canonical correlation analysis, SVCCA (Raghu et al., 2017)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.similarity.layers import Layers, centred_layers
from unweave.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Svcca:
    """``scores`` of every left layer (rows) with every right one (columns): the mean canonical correlation, 0 to 1.

    ``directions`` were kept of each layer, left ones first. ``saturated`` marks pairs that keep more directions
    together than there are examples: some correlations are 1 there whatever the representations.
    """

    scores: Float[Tensor, "left right"]
    directions: Int[Tensor, " layer"]
    saturated: Bool[Tensor, "left right"]


def svcca(left: Any, right: Any, *, share: float = 0.99) -> float:
    """SVCCA of one pair of representations of the same examples."""
    return float(svcca_matrix([left], [right], share=share).scores)


def svcca_matrix(left: Layers, right: Layers = None, *, share: float = 0.99) -> Svcca:
    """Mean correlation of the best-aligned directions, among those that hold ``share`` of each layer's variance.

    Invariant to every invertible linear map of the directions kept. A constant layer has none and scores 0.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must lie in (0, 1], not {share}")
    layers, n_left = centred_layers(left, right)
    bases = [_directions(layer.double(), share) for layer in layers]
    first, second = (bases[:n_left], bases[n_left:]) if right is not None else (bases, bases)
    scores = torch.tensor([[_agreement(x, y) for y in second] for x in first], dtype=torch.float64)
    counts = torch.tensor([basis.shape[1] for basis in bases])
    of_right = counts[n_left:] if right is not None else counts
    return Svcca(scores, counts, counts[:n_left, None] + of_right > len(layers[0]) - 1)


def _directions(table: Float[Tensor, "sample feature"], share: float) -> Float[Tensor, "sample direction"]:
    """Orthonormal left singular vectors, the largest first, up to the share of the variance."""
    n_samples, n_features = table.shape
    # the smaller of the two products has the same eigenvalues
    values, vectors = torch.linalg.eigh(table.T @ table if n_features <= n_samples else table @ table.T)
    values, vectors = values.clamp(min=0.0).flip(0), vectors.flip(1)
    regular = int((values > 1e-12 * values[0].clamp(min=1e-300)).sum())
    before = values.cumsum(0) - values
    kept = min(regular, int((before < share * values.sum() * (1.0 - 1e-12)).sum()))
    if n_features > n_samples:
        return vectors[:, :kept]
    return table @ vectors[:, :kept] / values[:kept].sqrt()


def _agreement(left: Float[Tensor, "sample left"], right: Float[Tensor, "sample right"]) -> float:
    if 0 in (left.shape[1], right.shape[1]):
        return 0.0
    return float(torch.linalg.svdvals(left.T @ right).clamp(max=1.0).mean())
