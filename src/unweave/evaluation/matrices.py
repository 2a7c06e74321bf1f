"""The matrices behind the scores: what latents tell about factors, and how they go together."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.evaluation.truth import as_truth
from unweave.metrics import information
from unweave.metrics.estimators.arrays import as_codes
from unweave.metrics.estimators.correlation import correlation
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Matrices:
    """Latents against factors and against each other. Without factors, or with fractions among them, fewer of them."""

    information: Float[Tensor, "latent factor"] | None
    """I(z; v) / H(v), the share of a factor's entropy that a latent tells."""
    correlation: Float[Tensor, "latent factor"] | None
    code_correlation: Float[Tensor, "latent latent"]


def matrices(codes: Any, factors: Any = None, *, factor_bins: int | None = None) -> Matrices:
    """The matrices of one representation."""
    table = as_codes(codes).double()
    together = correlation(table, table)
    if factors is None:
        return Matrices(None, None, together)
    truth = as_truth(factors, factor_bins)
    numbers = truth.numbers.to(table.device)
    linear = None if truth.words else correlation(table, numbers.double())
    return Matrices(_share(table, numbers), linear, together)


def _share(codes: Tensor, factors: Tensor) -> Float[Tensor, "latent factor"] | None:
    if factors.is_floating_point():
        return None
    known = information(codes, factors)
    return torch.where(known.factor_entropy > 0, known.mutual / known.factor_entropy.clamp(min=1e-300), 0.0)
