"""The impossibility of unsupervised disentanglement, as a construction (Locatello et al., 2019, Theorem 1).

For independent factors z the map f = g⁻¹ ∘ h⁻¹ ∘ A ∘ h ∘ g gives factors f(z) of the very same distribution of which
each depends on each z. Data made from z is as well made from f(z), and nothing in it tells which.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from unweave.shapes import Float, Tensor

TINY = 1e-16


@dataclass(frozen=True)
class Marginal:
    """The distribution of one factor: its cumulative distribution function and the inverse of it, elementwise."""

    cumulative: Callable[[Tensor], Tensor]
    quantile: Callable[[Tensor], Tensor]


UNIFORM = Marginal(lambda value: value, lambda share: share)
NORMAL = Marginal(torch.special.ndtr, torch.special.ndtri)
LOGISTIC = Marginal(torch.sigmoid, torch.logit)
MARGINALS = {"uniform": UNIFORM, "normal": NORMAL, "logistic": LOGISTIC}


def entangle(
    factors: Float[Tensor, "sample factor"],
    marginals: tuple[Marginal, ...],
    rotation: Float[Tensor, "factor factor"] | None = None,
) -> Float[Tensor, "sample factor"]:
    """f(z): independent factors of the same distribution, each of which depends on all of z.

    ``rotation`` is any orthogonal matrix without zeros; :func:`householder` makes one.
    """
    d = factors.shape[1]
    if len(marginals) != d:
        raise ValueError(f"marginals must describe each of the {d} factors, given {len(marginals)}")
    turn = householder(d) if rotation is None else rotation
    if turn.shape != (d, d) or float((turn @ turn.T - torch.eye(d, dtype=turn.dtype)).abs().max()) > 1e-6:
        raise ValueError(f"rotation must be an orthogonal {d} × {d} matrix")
    # g: factors → uniform,  h: uniform → normal
    uniform = torch.stack([m.cumulative(column) for m, column in zip(marginals, factors.unbind(1))], dim=1)
    normal = torch.special.ndtri(uniform.clamp(TINY, 1.0 - TINY))
    turned = torch.special.ndtr(normal @ turn.T.to(factors.dtype))
    return torch.stack([m.quantile(column) for m, column in zip(marginals, turned.unbind(1))], dim=1)


def householder(n_factors: int, alpha: float = 0.25) -> Float[Tensor, "factor factor"]:
    """An orthogonal matrix A = I − 2vvᵀ without zeros, one for every α in (0, ½): v² = (α, (1 − α)/(d − 1), …)."""
    if n_factors < 2:
        raise ValueError(f"a single factor cannot be entangled with another, given {n_factors}")
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and ½, not {alpha}")
    vector = torch.full((n_factors,), math.sqrt((1.0 - alpha) / (n_factors - 1)), dtype=torch.float64)
    vector[0] = math.sqrt(alpha)
    return torch.eye(n_factors, dtype=torch.float64) - 2.0 * torch.outer(vector, vector)
