"""Matched latents of two models: which of one goes with which of the other, and with what sign."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.metrics.estimators.correlation import correlation, ranks
from unweave.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Matching:
    """``partner`` is the right latent of every left one, −1 for none; ``correlation`` is theirs, with its sign.

    ``score`` is the mean |correlation| over the matched pairs in the smaller set of latents: 1 when the models agree
    up to order, sign and scale. ``matrix`` holds all correlations, left × right.
    """

    score: float
    partner: Int[Tensor, " left"]
    correlation: Float[Tensor, " left"]
    matrix: Float[Tensor, "left right"]


def matching(
    left: Any,
    right: Any,
    *,
    method: str = "pearson",
    left_active: Any = None,
    right_active: Any = None,
) -> Matching:
    """The one-to-one match of latents of largest total |correlation| over the same examples.

    ``left_active`` and ``right_active`` mark the latents to match; passive ones follow anything. Models may differ in
    their number of latents. With no latent to match the score is 0.
    """
    from scipy.optimize import linear_sum_assignment

    if method not in ("pearson", "spearman"):
        raise ValueError(f"method must be 'pearson' or 'spearman', not {method!r}")
    tables = as_codes(left, "left"), as_codes(right, "right")
    check_lengths(*tables, ("left", "right"))
    first, second = (ranks(table) for table in tables) if method == "spearman" else tables
    matrix = correlation(first, second).cpu()
    rows = _marked(left_active, matrix.shape[0], "left_active").nonzero()[:, 0]
    columns = _marked(right_active, matrix.shape[1], "right_active").nonzero()[:, 0]
    partner = torch.full((len(matrix),), -1)
    signed = torch.zeros(len(matrix), dtype=torch.float64)
    inside = matrix[rows][:, columns]
    chosen, matched = map(torch.as_tensor, linear_sum_assignment(inside.abs().numpy(), maximize=True))
    partner[rows[chosen]], signed[rows[chosen]] = columns[matched], inside[chosen, matched]
    return Matching(float(signed.abs().sum()) / max(1, min(inside.shape)), partner, signed, matrix)


def _marked(active: Any, n_latents: int, name: str) -> Bool[Tensor, " latent"]:
    if active is None:
        return torch.ones(n_latents, dtype=torch.bool)
    marks = torch.as_tensor(active, dtype=torch.bool).cpu()
    if marks.shape != (n_latents,):
        raise ValueError(f"{name} must mark each of the {n_latents} latents, not {tuple(marks.shape)} entries")
    return marks
