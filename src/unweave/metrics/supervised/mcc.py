"""Mean correlation coefficient, MCC (Hyvärinen and Morioka, 2016)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, as_numbers, check_lengths
from unweave.metrics.estimators.correlation import correlation, ranks
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Mcc:
    """``score`` is the mean of ``per_factor``; ``latent`` is the latent matched to each factor, −1 for none."""

    score: float
    per_factor: Float[Tensor, " factor"]
    latent: Int[Tensor, " factor"]
    correlation: Float[Tensor, "latent factor"]


def mcc(codes: Any, factors: Any, *, method: str = "pearson") -> Mcc:
    """Mean absolute correlation of every factor with its own latent, under the best one-to-one match.

    Factors are numbers, continuous or not. With fewer latents than factors the factors left over count 0; latents
    left over cost nothing. A constant latent or factor correlates 0 with everything.
    """
    from scipy.optimize import linear_sum_assignment

    if method not in ("pearson", "spearman"):
        raise ValueError(f"method must be 'pearson' or 'spearman', not {method!r}")
    table, truth = as_codes(codes), as_numbers(factors)
    check_lengths(table, truth)
    truth = truth.to(table.device)
    if method == "spearman":
        table, truth = ranks(table), ranks(truth)
    matrix = correlation(table, truth)
    rows, columns = linear_sum_assignment(matrix.abs().cpu().numpy(), maximize=True)
    per_factor = torch.zeros(truth.shape[1], dtype=torch.float64, device=table.device)
    latent = torch.full((truth.shape[1],), -1, device=table.device)
    per_factor[columns], latent[columns] = matrix.abs()[rows, columns], torch.as_tensor(rows, device=table.device)
    return Mcc(float(per_factor.mean()), per_factor, latent, matrix)
