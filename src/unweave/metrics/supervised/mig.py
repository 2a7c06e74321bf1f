"""Mutual information gap, MIG (Chen et al., 2018).

```
MIG = mean over factors k of (I(z₁; v_k) − I(z₂; v_k)) / H(v_k)

z₁ and z₂ are the two latents that tell most about factor k. Information and entropy are counted, in nats.
```

**Protocol.** Codes are put into 20 equal-width bins over their own range (`n_bins`). The published studies use 10,000
samples; here all rows are used, or the first N of `--split N:M`. The gap of every factor is kept in `per_factor`, the
matrix I(z; v) in `mutual`.

**Rewards.** A factor that lives in a single latent. Sign, scale and order of latents do not matter, nor does a
monotone bend beyond what it does to the bins.

**Misses.** What else a latent holds: one that tells equally about two factors can win both. An equal copy of a latent
costs everything: "every latent twice" gets 0 although each latent holds one factor. Whether the factor can be read
off easily.

## Known defects, and what is done about them

- **Ceiling.** In 20 bins a code tells at most log 20 nats, so factors of more values cannot reach 1: an ideal code of
  dSprites scores 0.896 (0.80 for its 40 orientations, 0.84 for x and y), of Cars3D 0.819. Mended:
  `normalise="ceiling"` divides by what an ideal code attains in as many bins.
- Equal-width bins follow outliers: one far value squeezes all others into few bins.
- Counting is biased upwards by about (bins − 1)(values − 1) / 2N for each pair; the gap of two biased numbers suffers
  less, but small tables do suffer.
- The original fails for a single latent; here its lead is all it tells. Constant factors are left out of the mean.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.metrics.row import COUNTED, Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Mig:
    """``score`` is the mean of ``per_factor`` over the factors that vary."""

    score: Score
    per_factor: Float[Tensor, "*model factor"]
    mutual: Float[Tensor, "*model latent factor"]
    denominator: Float[Tensor, " factor"]


def mig(codes: Any, factors: Any = None, *, n_bins: int = 20, normalise: str = "entropy") -> Mig:
    """Lead of the best-informed latent over the second best, as a share of each factor's entropy.

    In ``n_bins`` bins a code tells at most log(n_bins) nats, so with the published ``normalise="entropy"`` an ideal
    code stays below 1 for factors of more values (0.80 for the 40 orientations of dSprites). ``"ceiling"`` divides
    by what an ideal code in as many bins attains; it is the same for factors of at most ``n_bins`` values.

    A single latent has no rival: its lead is all it tells. Constant factors score 0 and are left out of the mean;
    without any factor that varies the score is 0.
    """
    if normalise not in ("entropy", "ceiling"):
        raise ValueError(f"normalise must be 'entropy' or 'ceiling', not {normalise!r}")
    known = informed(codes, factors, n_bins)
    denominator = known.factor_entropy if normalise == "entropy" else known.ceiling
    # MIG_k = (I(z_first; v_k) − I(z_second; v_k)) / H(v_k)
    per_factor = (gap(known.mutual, dim=-2) / denominator.clamp(min=1e-300)).clamp(max=1.0)
    varies = known.factor_entropy > 0
    per_factor = torch.where(varies, per_factor, 0.0)
    return Mig(as_score(per_factor.sum(-1) / varies.sum().clamp(min=1)), per_factor, known.mutual, denominator)


def gap(table: Float[Tensor, "*any"], dim: int) -> Float[Tensor, "*less"]:
    """Largest less second largest entry along an axis; the largest itself where there is only one."""
    best = table.topk(min(2, table.shape[dim]), dim=dim).values
    return best.select(dim, 0) - best.select(dim, 1) if best.shape[dim] == 2 else best.select(dim, 0)


ROW = Metric(
    mig,
    name="mig",
    label="MIG",
    title="Mutual information gap (MIG)",
    tells="Does one latent, and only one, tell about each factor?",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=COUNTED,
    at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
    paper="chen2018isolating",
    example='mig(codes, factors, normalise="ceiling").per_factor',
    counted=True,
    batched=True,
    compact=True,
)
