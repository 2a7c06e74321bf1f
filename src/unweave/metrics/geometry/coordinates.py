"""Cartesian or polar: how two latents hold two factors (the question of Zietlow, 2022, §4.3.6, as a number)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes_and_factors
from unweave.metrics.estimators.information import information
from unweave.shapes import Float, Tensor

N_TURNS = 18
"""Rotations of the plane that are tried for its best axes: every five degrees of a right angle."""


@dataclass(frozen=True)
class Coordinates:
    """``score`` is ``polar`` − ``cartesian``, from −1 (a factor an axis) to 1 (one is the angle, one the radius)."""

    score: float
    polar: float
    """What the angle tells of one factor and the radius of the other, as shares of their entropies, averaged."""
    cartesian: float
    """What the two axes tell of them, at the rotation where it is most."""
    rotation: float
    """That rotation in degrees, 0 to 85: where it is far from 0 (and 90) the axes are not the latents' own."""


def polar_or_cartesian(plane: Any, factors: Any, *, n_bins: int = 20) -> Coordinates:
    """Whether two latents (sample × 2) hold two factors (sample × 2) as axes or as angle and radius.

    Codes are centred and whitened first, so that scale, sign, order and rotation of the latents, and any other
    invertible linear map of the plane, change nothing but which values share a bin.
    """
    codes, _ = as_codes_and_factors(plane, factors)
    if codes.shape[1] != 2 or torch.as_tensor(factors).shape[-1] != 2:
        given = f"{codes.shape[1]} latents and {torch.as_tensor(factors).shape[-1]} factors"
        raise ValueError(f"a plane has two latents and two factors, given {given}")
    white = _whitened(codes.double())
    angle = torch.atan2(white[:, 1], white[:, 0])
    polar = _told(torch.stack([angle, white.norm(dim=1)], dim=1), factors, n_bins)
    turned = [_told(white @ _rotation(turn), factors, n_bins) for turn in range(N_TURNS)]
    best = max(range(N_TURNS), key=lambda turn: turned[turn])
    return Coordinates(polar - turned[best], polar, turned[best], best * 90.0 / N_TURNS)


def _told(coordinates: Float[Tensor, "sample 2"], factors: Any, n_bins: int) -> float:
    """Mean share of both factors' entropies that two coordinates tell, each of one, the better way round."""
    known = information(coordinates, factors, n_bins)
    shares = known.mutual / known.factor_entropy.clamp(min=1e-300)
    return float(torch.maximum(shares[0, 0] + shares[1, 1], shares[0, 1] + shares[1, 0]) / 2)


def _whitened(codes: Float[Tensor, "sample 2"]) -> Float[Tensor, "sample 2"]:
    centred = codes - codes.mean(0)
    values, vectors = torch.linalg.eigh(centred.T @ centred / len(codes))
    # a latent that is constant stays so
    scales = torch.where(values > 1e-12 * values.max(), values, 1.0).clamp(min=1e-300).rsqrt()
    # Σ^(−1/2), the symmetric root: without correlations the axes stay the latents' own
    return centred @ (vectors * scales) @ vectors.T


def _rotation(turn: int) -> Float[Tensor, "2 2"]:
    angle = turn * (math.pi / 2) / N_TURNS
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
