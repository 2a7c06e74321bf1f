"""Orthogonal Procrustes similarity (Schönemann, 1966; Ding, Denain and Steinhardt, 2021; Bonheme, 2023, eq. 7.8)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.similarity.layers import Layers, centred_layers
from unweave.shapes import Float, Tensor

TOLERANCE = 1e-6
LARGE = 128
"""Pairs smaller than that take no time either way."""


@dataclass(frozen=True)
class Procrustes:
    """``scores`` of every left layer (rows) with every right one (columns), 0 to 1.

    1 for equal representations up to rotation and scale. Unrelated ones score well above 0 when there are few
    examples: at least several times as many as features are needed. A constant layer scores 0.
    """

    scores: Float[Tensor, "left right"]
    n_samples: int


def procrustes(left: Any, right: Any) -> float:
    """Procrustes similarity of one pair of representations of the same examples."""
    return float(procrustes_matrix([left], [right]).scores)


def procrustes_matrix(left: Layers, right: Layers = None) -> Procrustes:
    """Procrustes similarity of all pairs of layers; without ``right``, of the layers of one model with each other.

    Each layer is first reduced, once, to at most as many columns as there are examples; the nuclear norm of a pair
    then costs no more than that number cubed, however many features there are.
    """
    layers, n_left = centred_layers(left, right)
    factors = [reduced(layer.double()) for layer in layers]
    first, second = (factors[:n_left], factors[n_left:]) if right is not None else (factors, factors)
    # 1 − ½ (‖Ẋ‖² + ‖Ẏ‖² − 2 ‖ẎᵀẊ‖_*) = ‖ẎᵀẊ‖_* for unit norms
    scores = [[nuclear(x, y) for y in second] for x in first]
    return Procrustes(torch.tensor(scores, dtype=torch.float64).clamp(max=1.0), len(layers[0]))


def reduced(table: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample column"]:
    """The same rows up to a rotation, in at most as many columns as rows: Xᵀ = QR gives X = RᵀQᵀ, and Rᵀ will do."""
    if table.shape[1] <= table.shape[0]:
        return table
    return torch.linalg.qr(table.T, mode="r").R.T


def nuclear(
    left: Float[Tensor, "sample left"], right: Float[Tensor, "sample right"], tolerance: float = TOLERANCE
) -> float:
    """Sum of the singular values of XᵀY.

    The eigenvalues of the smaller Gram matrix of XᵀY cost a quarter of its singular values, but small ones drown in
    rounding; where that could reach ``tolerance``, as with a rank that is not full, the singular values are computed.
    """
    product = left.T @ right
    if min(product.shape) < LARGE:
        return float(torch.linalg.svdvals(product).sum())
    squares = torch.linalg.eigvalsh(
        product.T @ product if product.shape[1] <= product.shape[0] else product @ product.T
    )
    # |δλ| ≤ ε, so |δ√λ| ≤ min(√ε, ε/√λ)
    rounding = 16.0 * torch.finfo(squares.dtype).eps * squares[-1].clamp(min=0.0)
    roots = squares.clamp(min=0.0).sqrt()
    error = torch.minimum(rounding.sqrt(), rounding / roots.clamp(min=1e-300)).sum()
    return float(roots.sum() if error <= tolerance else torch.linalg.svdvals(product).sum())
