"""Intrinsic dimension from two nearest neighbours, TwoNN (Facco et al., 2017).

```
r(x) = T_2(x) / T_1(x),   −log(1 − F(r)) = d · log r,   F the empirical distribution of r
```

**Protocol.** A line through the origin, fitted to the smallest nine tenths of the ratios (`anchor=0.9`): the others
are outliers, as published. Of more than 10,000 points, 10,000 drawn at random are asked (`n_asked=…`).

**Rewards.** Codes whose density varies: two neighbours are near enough for it to be even.

**Misses.** The same as [MLE](mle.md), and more: it sees the finest scale alone, so a little noise on every latent
counts as a dimension. Too high for data of high dimension. It is a description rather than a mark.

## Known defects, and what is done about them

- Points that occur several times count once; a constant code has dimension 0.
- On a grid the two neighbours are equally far everywhere: the answer is infinite, and means that there is none.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from unweave.metrics.dimension.mle import N_ASKED
from unweave.metrics.dimension.nearest import Nearest
from unweave.metrics.estimators.arrays import as_codes
from unweave.metrics.row import CURVE, DISTANCES, Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class TwoNN:
    """``score`` is the slope of ``log_survival`` over ``log_ratio``, two lines that should be one if it holds."""

    score: float
    log_ratio: Float[Tensor, " kept"] = field(metadata=CURVE)
    log_survival: Float[Tensor, " kept"] = field(metadata=CURVE)
    n_points: int


def two_nn(codes: Any, *, anchor: float = 0.9, n_asked: int = N_ASKED) -> TwoNN:
    """The dimension from the ratio of the distances to the second and the first neighbour.

    The largest ratios, a share of 1 − ``anchor``, are left out of the fit. Points that occur several times count
    once; a single distinct point has dimension 0. When the two neighbours are always equally far (a lattice) the
    ratio says nothing and the dimension is infinite. Of more than ``n_asked`` points so many at random are asked;
    their neighbours lie among all.
    """
    if not 0.0 < anchor < 1.0:
        raise ValueError(f"anchor must lie between 0 and 1, not {anchor}")
    nearest = codes if isinstance(codes, Nearest) else Nearest(as_codes(codes))
    distances = nearest.distances(2, n_asked)
    if distances is None:
        none = torch.zeros(0, dtype=torch.float64)
        return TwoNN(0.0, none, none, 1)
    return two_nn_of(distances, anchor)


def two_nn_of(distances: Float[Tensor, "sample neighbour"], anchor: float = 0.9) -> TwoNN:
    """The same from the distances to the nearest neighbours of distinct points."""
    n_points = len(distances)
    ratios = (distances[:, 1] / distances[:, 0]).log().sort().values
    n_kept = max(1, math.floor(n_points * anchor))
    # F(r_i) = i / n, and −log(1 − F(r)) = d log r
    place = torch.arange(1, n_kept + 1, dtype=torch.float64, device=distances.device)
    survival = -torch.log1p(-place / n_points)
    kept = ratios[:n_kept]
    square = float((kept * kept).sum())
    slope = float((kept * survival).sum()) / square if square > 0 else math.inf
    return TwoNN(slope, kept, survival, n_points)


ROW = Metric(
    two_nn,
    name="two_nn",
    label="TwoNN",
    title="Intrinsic dimension from two neighbours (TwoNN)",
    tells="The same question, asked of the two nearest neighbours only.",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="neither",
    invariant_to=DISTANCES,
    at_chance="0 for a constant code; about the number of latents for white noise; infinite on a grid",
    nearest=True,
    paper="facco2017estimating",
    example="two_nn(codes).n_points",
    most_rows=N_ASKED,
)
