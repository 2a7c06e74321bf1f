"""Equal-width bins over the range of every code, exactly as ``np.histogram`` and ``np.digitize`` place them."""

import numpy as np
import torch

from unweave.metrics.estimators.arrays import check_count
from unweave.shapes import Float, Int, Tensor


def discretise(codes: Float[Tensor, "*model sample latent"], n_bins: int = 20) -> Int[Tensor, "*model sample latent"]:
    """The bin 0 … n_bins − 1 of every code; the last bin holds its upper edge, a constant code lies in one bin."""
    check_count(n_bins, "n_bins", least=1)
    columns = codes.transpose(-1, -2).contiguous()
    low, high = columns.amin(-1), columns.amax(-1)
    edges = _edges(low, high, n_bins)
    # a guess by division is at most one bin off; comparing with the edges on either side makes it np.digitize
    share = (columns - edges[..., :1]) / torch.where(high > low, high - low, 1.0)[..., None]
    guess = (share * n_bins).to(torch.int64).clamp_(max=n_bins - 1)
    guess += (columns >= edges.gather(-1, guess + 1)).to(torch.int64)
    guess -= (columns < edges.gather(-1, guess)).to(torch.int64)
    return guess.transpose(-1, -2)


def _edges(
    low: Float[Tensor, "*model latent"], high: Float[Tensor, "*model latent"], n_bins: int
) -> Float[Tensor, "*model latent bin"]:
    """Left edges and a last one out of reach, by numpy's own arithmetic: a code may lie exactly on an edge."""
    least, most = low.cpu().numpy(), high.cpu().numpy()
    flat = least == most
    least, most = np.where(flat, least - 0.5, least), np.where(flat, most + 0.5, most)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(least, most, n_bins + 1, axis=-1, dtype=least.dtype)
    if not np.isfinite(edges).all():
        raise ValueError("codes must have a finite range: the largest less the smallest value overflows; rescale them")
    edges[..., -1] = np.inf
    return torch.from_numpy(np.ascontiguousarray(edges)).to(low.device)
