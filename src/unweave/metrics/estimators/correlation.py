"""Covariances, correlations and ranks, with a defined answer for columns that do not vary."""

import torch

from unweave.shapes import Float, Tensor


def covariance(codes: Float[Tensor, "*model sample latent"]) -> Float[Tensor, "*model latent latent"]:
    """Unbiased covariance in float64; constant columns have exactly none."""
    n_samples = codes.shape[-2]
    if n_samples < 2:
        raise ValueError(f"codes must have at least two samples for a covariance, given {n_samples}")
    centred = _centre(codes)
    return centred.transpose(-1, -2) @ centred / (n_samples - 1)


def correlation(
    left: Float[Tensor, "*model sample left"], right: Float[Tensor, "*model sample right"]
) -> Float[Tensor, "*model left right"]:
    """Pearson's correlation of every column with every other; 0 where one of them is constant."""
    left, right = _unit(left), _unit(right)
    return (left.transpose(-1, -2) @ right).clamp(-1.0, 1.0)


def ranks(table: Float[Tensor, "*model sample column"]) -> Float[Tensor, "*model sample column"]:
    """Ranks 1 … n within every column; equal values share their mean rank."""
    columns = table.transpose(-1, -2).contiguous()
    ordered = columns.sort(dim=-1).values
    below = torch.searchsorted(ordered, columns)
    upto = torch.searchsorted(ordered, columns, right=True)
    return ((below + upto + 1).to(torch.float64) / 2).transpose(-1, -2)


def _centre(table: Float[Tensor, "*model sample column"]) -> Float[Tensor, "*model sample column"]:
    table = table.to(torch.float64)
    constant = table.amin(-2, keepdim=True) == table.amax(-2, keepdim=True)
    # the mean of n equal numbers is not always that number: without the mask a constant would keep 1e-17
    return (table - table.mean(-2, keepdim=True)).masked_fill(constant, 0.0)


def _unit(table: Float[Tensor, "*model sample column"]) -> Float[Tensor, "*model sample column"]:
    centred = _centre(table)
    # by the largest entry first, so that squares neither overflow nor vanish
    centred = centred / centred.abs().amax(-2, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    norm = centred.norm(dim=-2, keepdim=True)
    return torch.where(norm > 0, centred / norm.clamp(min=1e-300), 0.0)
