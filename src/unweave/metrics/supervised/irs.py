"""Interventional robustness score, IRS (Suter et al., 2019).

```
IRS_jk = 1 − mean over values v of Q₀.₉₉(|z_j − E[z_j | v]|) / max|z_j − E z_j|
IRS = mean over latents of max_k IRS_jk, weighed by max|z_j − E z_j|
```

**Protocol.** Factors are put into 20 bins; `quantile=1` is the maximum of the paper, 0.99 what disentanglement_lib
uses. Factors may be continuous.

**Rewards.** Latents that depend on one factor and on nothing else.

**Misses.** A factor that no latent holds, and copies.

## Known defects, and what is done about them

- Factors of more than 20 values are merged before scoring.
- Extremes decide, so chance depends on the tails of the codes and is not 0: noise gets 0.33 in the picture. Use
  `--adjust chance`.
- Latents weigh by their largest deviation, so the score depends on their relative scales.
- `num_active_dims` of the original is the sum of the code's *values*; it is kept under that name, the count is
  `n_active_latents`.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_codes, as_factors, as_numbers, as_score, check_lengths
from unweave.metrics.estimators.bins import discretise
from unweave.metrics.row import ORDER, Metric
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Irs:
    """``score`` is the mean of ``per_latent``, weighted by ``max_deviation``."""

    score: Score
    per_latent: Float[Tensor, "*model latent"]
    parent: Int[Tensor, "*model latent"]
    """The factor each latent is most robust about."""
    matrix: Float[Tensor, "*model latent factor"]
    max_deviation: Float[Tensor, "*model latent"]
    n_active_latents: Score
    """How many latents vary."""
    num_active_dims: Score
    """What disentanglement_lib reports under this name: the sum of all code values of the latents that vary."""


def irs(codes: Any, factors: Any, *, quantile: float = 0.99, n_bins: int = 20) -> Irs:
    """How little a latent moves when its own factor is held fixed and all others change.

    As disentanglement_lib computes it: factors are put into ``n_bins`` bins over their range, so factors of more
    values are merged; ``quantile=1`` is the maximum of the paper. Constant latents have no score (0) and no weight;
    a code without any latent that varies scores 0. Numeric factors may be continuous.
    """
    if not 0.0 <= quantile <= 1.0:
        raise ValueError(f"quantile must lie between 0 and 1, not {quantile!r}")
    table = as_codes(codes, batched=True)
    truth = _factor_bins(factors, n_bins).to(table.device)
    check_lengths(table, truth)
    varies = table.amin(-2) < table.amax(-2)
    num_active_dims = torch.where(varies, table.double().sum(-2), 0.0).sum(-1)
    centred = table.double() - table.double().mean(-2, keepdim=True)
    deviation = torch.where(varies, centred.abs().amax(-2), 0.0)
    matrix = _matrix(centred, truth, quantile, deviation)
    per_latent, parent = matrix.max(-1)
    score = (per_latent * deviation).sum(-1) / deviation.sum(-1).clamp(min=1e-300)
    n_active = varies.sum(-1).double()
    return Irs(as_score(score), per_latent, parent, matrix, deviation, as_score(n_active), as_score(num_active_dims))


def _matrix(
    codes: Float[Tensor, "*model sample latent"],
    factors: Int[Tensor, "sample factor"],
    quantile: float,
    deviation: Float[Tensor, "*model latent"],
) -> Float[Tensor, "*model latent factor"]:
    rows, columns = codes.transpose(-1, -2).contiguous(), []
    for factor in factors.unbind(-1):
        groups = rows[..., factor.argsort(stable=True)].split(torch.bincount(factor).tolist(), dim=-1)
        spread = [_spread(group, quantile) for group in groups if group.shape[-1]]
        # 1 − mean over values v of Q(|z − E[z|v]|) / max|z − E[z]|
        columns.append(1.0 - torch.stack(spread).mean(0) / deviation.clamp(min=1e-300))
    matrix = torch.stack(columns, dim=-1)
    return torch.where(deviation[..., None] > 0, matrix, 0.0)


def _spread(codes: Float[Tensor, "*model latent group"], quantile: float) -> Float[Tensor, "*model latent"]:
    """A quantile of the distances to the group's mean, between neighbouring order statistics as in numpy."""
    n = codes.shape[-1]
    place = (n - 1) * quantile
    below = min(int(place), n - 1)
    largest = (codes - codes.mean(-1, keepdim=True)).abs().topk(n - below, dim=-1).values
    above = largest[..., -2] if below < n - 1 else largest[..., -1]
    return torch.lerp(largest[..., -1], above, place - below)


def _factor_bins(factors: Any, n_bins: int) -> Int[Tensor, "sample factor"]:
    try:
        numbers = as_numbers(factors)
    except ValueError:
        numbers = as_factors(factors).values.to(torch.float64)
    return discretise(numbers, n_bins)


ROW = Metric(
    irs,
    name="irs",
    label="IRS",
    title="Interventional robustness score (IRS)",
    tells="How little does a latent move when its own factor is held fixed and all others change?",
    kind="supervised",
    needs="codes factors",
    range=(-1.0, 1.0),
    better="more",
    invariant_to=(*ORDER, "latent sign", "latent shift", "global scale"),
    at_chance="0 for a constant code; about 0 to 0.2 for random codes; below 0 only in tiny samples",
    paper="suter2019robustly",
    example="irs(codes, factors, quantile=1.0).parent",
    batched=True,
)
