"""Maximum-likelihood intrinsic dimension (Levina and Bickel, 2004; averaging of MacKay and Ghahramani, 2005).

```
1 / d_k(x) = 1/(k − 1) Σ_{j<k} log T_k(x) / T_j(x),   T_j the distance to the j-th neighbour
score = mean of d_k over the stable range of k ∈ {3, 5, 10, 20}
```

**Protocol.** The nearest among all rows, once for all k. Of more than 10,000 points, 10,000 drawn at random are asked
for theirs, so that the time grows as the rows do (`n_asked=…`). `averaging="levina_bickel"` averages the points'
estimates, as published; `"mackay_ghahramani"` their inverses, which is the likelihood of all points together and less
biased for small k. The stable range is the longest run of k whose estimates differ by 10 % at most. `neighbours=(…)`
takes others.

**Rewards.** Codes that fill many directions, curved ones too, where the effective rank sees straight ones only.

**Misses.** Meaning. Codes of factors with few values lie in clumps, and what is measured inside a clump is the noise:
the ideal codes below get 1.7 for four factors. Estimates are too low beyond ten or so dimensions, for the points are
never dense enough there. It is a description rather than a mark.

## Known defects, and what is done about them

- Points that occur several times have neighbours at distance 0, which would decide the estimate: scikit-dimension
  answers 0 then. Here they count once.
- A constant code has dimension 0; points whose neighbours are all equally far have an infinite one.
- Fewer than 21 distinct points are refused: ask for fewer `neighbours`.
- Where two ranges of k are about equally stable, as for nearly ideal codes, a few rows more or less decide between
  them, and the score jumps from the mean of one to that of the other. The interval over halves says how sure the mean
  of one range is, and not which range it is: look at `per_k`, or ask for one k (`neighbours=(20,)`).

The other averaging: D. J. C. MacKay, Z. Ghahramani. Comments on 'Maximum Likelihood Estimation of Intrinsic
Dimension' by E. Levina and P. Bickel. Cavendish Laboratory, Cambridge, 2005.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.dimension.nearest import Nearest
from unweave.metrics.dimension.stable import Stable, stable_range
from unweave.metrics.estimators.arrays import as_codes, check_count
from unweave.metrics.row import DISTANCES, Metric
from unweave.shapes import Float, Tensor

NEIGHBOURS = (3, 5, 10, 20)
N_ASKED = 10_000
"""Points whose neighbours are looked for: of more points so many at random, with neighbours among all."""
AVERAGING = ("levina_bickel", "mackay_ghahramani")


@dataclass(frozen=True)
class Mle:
    """``score`` is the mean over the stable range of ``per_k``, by the averaging that was asked for.

    ``levina_bickel`` averages the points' estimates, ``mackay_ghahramani`` their inverses (the likelihood of all
    points together; lower, and less biased for small k). ``n_points`` counts the distinct points that were averaged.
    """

    score: float
    neighbours: tuple[int, ...]
    per_k: Float[Tensor, " k"]
    levina_bickel: Float[Tensor, " k"]
    mackay_ghahramani: Float[Tensor, " k"]
    stable: Stable
    n_points: int


def mle(
    codes: Any,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    n_asked: int = N_ASKED,
) -> Mle:
    """The dimension in which codes, or points of any kind, lie, from how fast their neighbours recede.

    Points that occur several times count once: a repetition says nothing of the dimension, and its distance of 0
    would decide the estimate. A single distinct point has dimension 0. Of more than ``n_asked`` points so many at
    random are averaged; their neighbours lie among all.
    """
    chosen = checked(neighbours, averaging)
    nearest = codes if isinstance(codes, Nearest) else Nearest(as_codes(codes))
    distances = nearest.distances(chosen[-1], n_asked)
    if distances is None:
        zeros = torch.zeros(len(chosen), dtype=torch.float64)
        return Mle(0.0, chosen, zeros, zeros, zeros, stable_range(chosen, zeros.tolist()), 1)
    return mle_of(distances, chosen, averaging)


def mle_of(
    distances: Float[Tensor, "sample neighbour"], neighbours: tuple[int, ...], averaging: str = "levina_bickel"
) -> Mle:
    """The same from the distances to the nearest neighbours of distinct points."""
    inverses = torch.stack([_inverse(distances[:, :k]) for k in neighbours])
    both = {"levina_bickel": _mean_of_estimates(inverses), "mackay_ghahramani": 1.0 / inverses.mean(1)}
    stable = stable_range(neighbours, both[averaging].tolist())
    return Mle(stable.value, neighbours, both[averaging], **both, stable=stable, n_points=len(distances))


def _inverse(distances: Float[Tensor, "sample k"]) -> Float[Tensor, " sample"]:
    # 1 / d_k(x) = 1/(k − 1) Σ_{j<k} log T_k(x) / T_j(x)
    return (distances[:, -1:] / distances[:, :-1]).log().mean(1)


def _mean_of_estimates(inverses: Float[Tensor, "k sample"]) -> Float[Tensor, " k"]:
    # a point whose neighbours are all equally far has no estimate of its own
    finite = inverses > 0
    estimates = torch.where(finite, 1.0 / inverses.clamp(min=1e-300), 0.0).sum(1) / finite.sum(1)
    return torch.where(finite.any(1), estimates, torch.inf)


def checked(neighbours: Sequence[int], averaging: str) -> tuple[int, ...]:
    """The numbers of neighbours in ascending order, once each; one sentence where a setting is wrong."""
    if averaging not in AVERAGING:
        raise ValueError(f"averaging must be {' or '.join(AVERAGING)}, not {averaging!r}")
    for k in neighbours:
        check_count(k, "neighbours", least=2)
    if len(neighbours) == 0:
        raise ValueError("neighbours must name at least one number of neighbours, given none")
    return tuple(sorted({int(k) for k in neighbours}))


ROW = Metric(
    mle,
    name="mle",
    label="MLE",
    title="Intrinsic dimension by maximum likelihood (MLE)",
    tells="In how many dimensions do the codes lie, whatever surface they lie on?",
    kind="unsupervised",
    needs="codes",
    range=(0.0, math.inf),
    better="neither",
    invariant_to=DISTANCES,
    at_chance="0 for a constant code; about the number of latents for white noise",
    nearest=True,
    paper="levina2004maximum",
    example='mle(codes, averaging="mackay_ghahramani").per_k',
    most_rows=N_ASKED,
)
