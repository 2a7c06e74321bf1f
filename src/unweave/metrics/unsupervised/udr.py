"""Unsupervised disentanglement ranking, UDR (Duan et al., 2020).

```
R_ij = |Lasso weights| or |Spearman correlations| between the latents of models i and j
UDR_ij = ½ mean over rows and columns of max² / sum;  UDR_j = median over i of UDR_ij
```

**Protocol.** Codes of the same samples from at least two models (model × sample × latent). Latents with a mean KL of
at most 0.01 are left out where the posterior variances are known. `method="lasso"` (penalty 0.1) or `"spearman"`.

**Rewards.** Models that others can be mapped to latent by latent. No labels needed.

**Misses.** A bias that all models share: five copies of the same rotation agree perfectly (the second bar).

## Known defects, and what is done about them

- The Lasso shrinks: even perfect agreement scores 0.9 at its penalty of 0.1.
- The original masks at 0.01 whatever the threshold; here one threshold does both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import as_codes
from unweave.metrics.estimators.correlation import correlation, ranks
from unweave.metrics.estimators.lasso import lasso
from unweave.metrics.row import AFFINE, Metric
from unweave.shapes import Bool, Float, Tensor


@dataclass(frozen=True)
class Udr:
    """``score`` of every model: the median of its column of ``pairwise``, itself left out."""

    score: Float[Tensor, " model"]
    pairwise: Float[Tensor, "model model"]
    correlations: Float[Tensor, "model model latent latent"]
    """Entry (i, j): how strongly each latent of model i (rows) goes with each of model j (columns)."""
    informative: Bool[Tensor, "model latent"]


def udr(models: Any, kl: Any = None, *, method: str = "lasso", threshold: float = 0.01) -> Udr:
    """How well every model agrees with the others, up to order and sign of the latents, without any label.

    As disentanglement_lib computes it; the Lasso is scikit-learn's, step for step, for all pairs of models at once.
    ``models`` are the codes of the same samples, model × sample × latent; pad narrower models with columns of zeros.
    ``kl`` is the mean KL divergence of each latent, model × latent: latents at or below ``threshold`` are
    uninformative and left out (without ``kl`` all are kept). disentanglement_lib sets them to zero at 0.01 whatever
    the threshold; here the threshold does both, which is the same at its default. A pair in which one model has no
    informative latent scores 0, as does a latent that goes with nothing.
    """
    if method not in ("lasso", "spearman"):
        raise ValueError(f"method must be 'lasso' or 'spearman', not {method!r}")
    table = as_codes(models, "models", batched=True)
    if table.ndim != 3 or len(table) < 2:
        raise ValueError(f"models must be model × sample × latent with at least two models, not {tuple(table.shape)}")
    informative = _informative(kl, table, threshold)
    standard = _standardise(table) * informative[:, None, :]
    correlations = _lasso(standard) if method == "lasso" else _spearman(standard)
    pairwise = torch.zeros(len(table), len(table), dtype=torch.float64, device=table.device)
    for i, j in _pairs(len(table)):
        pairwise[i, j] = _strength(correlations[i, j][informative[i]][:, informative[j]])
    columns = pairwise.cpu().numpy().T
    others = [np.median(np.delete(column, model)) for model, column in enumerate(columns)]
    return Udr(torch.tensor(others, device=table.device), pairwise, correlations, informative)


def _informative(
    kl: Any, codes: Float[Tensor, "model sample latent"], threshold: float
) -> Bool[Tensor, "model latent"]:
    if kl is None:
        return torch.ones(len(codes), codes.shape[2], dtype=torch.bool, device=codes.device)
    divergence = as_codes(kl, "kl").to(codes.device)
    if divergence.shape != (len(codes), codes.shape[2]):
        expected = (len(codes), codes.shape[2])
        raise ValueError(f"kl must be model × latent, {expected} for these models, not {tuple(divergence.shape)}")
    return divergence > threshold


def _standardise(codes: Float[Tensor, "model sample latent"]) -> Float[Tensor, "model sample latent"]:
    codes = codes.to(torch.float64)
    mean, variance = codes.mean(1, keepdim=True), codes.var(1, keepdim=True, correction=0)
    n_samples, eps = codes.shape[1], torch.finfo(torch.float64).eps
    # a variance within rounding error of the mean is none
    constant = variance <= n_samples * eps * variance + (n_samples * mean * eps) ** 2
    return torch.where(constant, 0.0, (codes - mean) / torch.where(constant, 1.0, variance).sqrt())


def _pairs(n_models: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n_models) for j in range(n_models) if i != j]


def _lasso(codes: Float[Tensor, "model sample latent"]) -> Float[Tensor, "model model latent latent"]:
    """|weights| of the Lasso, penalty 0.1 a sample, that predicts every latent of model j from those of model i."""
    n_models, n_samples, n_latents = codes.shape
    wide = codes.permute(1, 0, 2).reshape(n_samples, -1)
    products = (wide.T @ wide).view(n_models, n_latents, n_models, n_latents)
    found = torch.zeros(n_models, n_models, n_latents, n_latents, dtype=torch.float64, device=codes.device)
    n_problems = n_models * n_latents
    squares = torch.diagonal(products.view(n_problems, n_problems)).contiguous()
    for i in range(n_models):
        gram = products[i, :, i].expand(n_problems, n_latents, n_latents)
        weights = lasso(gram, products[i].reshape(n_latents, n_problems).T, squares, 0.1 * n_samples)
        found[i] = weights.abs().view(n_models, n_latents, n_latents).transpose(1, 2)
        found[i, i] = 0.0
    return found


def _spearman(codes: Float[Tensor, "model sample latent"]) -> Float[Tensor, "model model latent latent"]:
    n_models, _, n_latents = codes.shape
    wide = ranks(codes).permute(1, 0, 2).reshape(codes.shape[1], -1)
    found = correlation(wide, wide).abs().view(n_models, n_latents, n_models, n_latents).transpose(1, 2).clone()
    found[range(n_models), range(n_models)] = 0.0
    return found


def _strength(matrix: Float[Tensor, "left right"]) -> float:
    """Mean over rows and over columns of largest² / sum: 1 for a permutation, 1/n for n equal entries."""
    if matrix.numel() == 0:
        return 0.0
    each = [torch.where(matrix.sum(dim) > 0, matrix.amax(dim) ** 2 / matrix.sum(dim), 0.0).mean() for dim in (0, 1)]
    return float(each[0] + each[1]) / 2


ROW = Metric(
    udr,
    name="udr",
    label="UDR",
    title="Unsupervised disentanglement ranking (UDR)",
    tells="Do models trained from different seeds agree, up to order and sign of their latents?",
    kind="unsupervised",
    needs="models kl",
    range=(0.0, 1.0),
    better="more",
    invariant_to=("sample order", "latent order", *AFFINE, "model order"),
    at_chance="0 for constant codes, and by Lasso for unrelated models; small by Spearman for these",
    paper="duan2020unsupervised",
    example='udr(models, method="spearman").pairwise',
)
