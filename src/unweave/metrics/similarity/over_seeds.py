"""Similarity averaged over seeds, and which of two measures to quote (Bonheme, 2023, eq. 7.9 and §7.2.2)."""

from dataclasses import dataclass

import torch

from unweave.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class OverSeeds:
    """Means over all pairs of seeds, ``spread`` their standard deviation. ``quoted`` is the smaller of the two.

    Procrustes overrates similarity when examples are few, CKA when differences are small: where they ``disagree`` one
    of them is too high.
    """

    cka: Float[Tensor, "left right"]
    procrustes: Float[Tensor, "left right"] | None
    quoted: Float[Tensor, "left right"]
    spread: Float[Tensor, "left right"]
    disagree: Bool[Tensor, "left right"]


def over_seeds(
    cka: Float[Tensor, "left_seed right_seed left right"],
    procrustes: Float[Tensor, "left_seed right_seed left right"] | None = None,
    *,
    tolerance: float = 0.1,
) -> OverSeeds:
    """One matrix of layers from those of all pairs of seeds; ``tolerance`` is how far the measures may differ."""
    if procrustes is not None and procrustes.shape != cka.shape:
        raise ValueError(f"cka and procrustes must agree in shape, given {tuple(cka.shape)}, {tuple(procrustes.shape)}")
    # CKA_avg(M_j^A, M_k^B) = 1/S² Σ_i Σ_l CKA(M_j^{A_i}, M_k^{B_l})
    mean, spread = cka.mean((0, 1)), cka.flatten(0, 1).std(0, correction=0)
    if procrustes is None:
        return OverSeeds(mean, None, mean, spread, torch.zeros_like(mean, dtype=torch.bool))
    other = procrustes.mean((0, 1))
    return OverSeeds(mean, other, torch.minimum(mean, other), spread, (mean - other).abs() > tolerance)
