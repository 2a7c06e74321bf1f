"""InfoM, InfoE and InfoC: modularity, explicitness and compactness (Hsu et al., 2023).

```
N_jk = I(z_j; v_k) / H(v_k), over active latents
InfoM = (mean_j max_k N_jk / Σ_k N_jk − 1/K) / (1 − 1/K)
InfoC = (mean_k max_j N_jk / Σ_j N_jk − 1/d) / (1 − 1/d)
InfoE = mean_k 1 − CE_k / log(values of k), CE_k of a linear softmax classifier
```

**Protocol.** Continuous codes: information by ten nearest neighbours, latents narrower than a twentieth of the widest
pruned. `discrete=True` for quantised codes: information by counting.

**Rewards.** InfoM: latents with one factor. InfoC: factors with one latent. InfoE: factors that follow linearly.

**Misses.** InfoM alone gives noise 0.48: of several small informations one is the largest. Read the three together.

## Known defects, and what is done about them

- The authors' explicitness is fitted and scored on the same rows; unbalanced factors can push it below 0, where it is
  0 here.
- Slower than its neighbours: nearest neighbours for every pair and a classifier for every factor.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import Categories, as_categories, as_codes_and_factors, check_count
from unweave.metrics.estimators.information import entropy, mutual_information
from unweave.metrics.estimators.lbfgs import one_blas_thread
from unweave.metrics.estimators.neighbours import neighbour_information
from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.row import ORDER, Metric
from unweave.metrics.supervised.logistic import logistic
from unweave.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Infomec:
    """InfoM, InfoE, InfoC, and the matrix of I(z_j; v_k) / H(v_k) behind the first and the last."""

    modularity: float
    explicitness: float
    compactness: float
    share: Float[Tensor, "latent factor"]
    active: Bool[Tensor, " latent"]
    per_factor: Float[Tensor, " factor"]
    """Explicitness of every factor."""

    @property
    def score(self) -> float:
        """InfoM, the one the authors rank by."""
        return self.modularity


def infomec(codes: Any, factors: Any, *, discrete: bool = False, n_neighbours: int = 10, seed: int = 0) -> Infomec:
    """Whether a latent tells about one factor, a factor lives in one latent, and can be read off linearly.

    Follows the authors' stand-alone code. Continuous codes: information by nearest neighbours; latents whose range
    is at most a twentieth of the widest are pruned. ``discrete=True``, for quantised latents: information by
    counting, constant latents pruned. Explicitness is the share of a factor's entropy that a linear softmax
    classifier explains on the samples it is fitted to; where unbalanced factors push it below 0 it is 0 here.

    One factor makes every latent modular, one active latent makes every factor compact: 1. A latent or factor
    without information counts as spread evenly: 0. Constant factors are left out. Without an active latent or a
    factor that varies all three are 0. ``seed`` draws the noise of 1e-10 that tells equal codes apart.
    """
    check_count(n_neighbours, "n_neighbours")
    table, truth = as_codes_and_factors(codes, factors)
    labels = as_categories(table) if discrete else None
    mutual = _counted(labels, truth) if labels else _neighbours(table, truth, n_neighbours, seed)
    share = mutual / entropy(truth.values).clamp(min=1e-300)
    width = table.amax(0) - table.amin(0)
    active = width > (0 if discrete else float(width.max()) / 20)
    kept = [factor for factor, size in enumerate(truth.sizes) if size > 1]
    per_factor = torch.zeros(len(truth.sizes), dtype=torch.float64)
    if bool(active.any()):
        features = _one_hot(labels) if labels else _scaled(table).cpu().numpy()
        columns = [truth.values[:, factor].cpu().numpy() for factor in kept]
        with one_blas_thread():
            found = side_by_side(lambda labels: _explicit(features, labels), columns, size=np.max)
        per_factor[kept] = torch.tensor(found, dtype=torch.float64)
    return Infomec(
        modularity=_sharpness(share[active][:, kept], dim=1),
        explicitness=float(per_factor[kept].mean()) if kept else 0.0,
        compactness=_sharpness(share[active][:, kept], dim=0),
        share=share,
        active=active,
        per_factor=per_factor.to(table.device),
    )


def _sharpness(share: Float[Tensor, "latent factor"], dim: int) -> float:
    """Mean ratio of the largest entry to the sum, from 0 when spread evenly to 1 when alone."""
    n = share.shape[dim]
    if share.numel() == 0:
        return 0.0
    if n == 1:
        return 1.0 if bool((share > 0).any()) else 0.0
    total = share.sum(dim)
    ratio = torch.where(total > 0, share.amax(dim) / total.clamp(min=1e-300), 1 / n)
    # (mean(max / sum) − 1/n) / (1 − 1/n)
    return max(0.0, float((ratio.mean() - 1 / n) / (1 - 1 / n)))


def _counted(labels: Categories, truth: Categories) -> Float[Tensor, "latent factor"]:
    return mutual_information(labels.values, truth.values)


def _neighbours(
    codes: Float[Tensor, "sample latent"], truth: Categories, n_neighbours: int, seed: int
) -> Float[Tensor, "latent factor"]:
    scaled = _scaled(codes)
    noise = torch.from_numpy(np.random.default_rng(seed).standard_normal(tuple(codes.shape))).to(codes.device)
    scaled = scaled + 1e-10 * scaled.abs().mean(0).clamp(min=1.0) * noise
    columns = truth.values.unbind(-1)

    def tell(code: Float[Tensor, " sample"]) -> Float[Tensor, " factor"]:
        # sorted once for all factors, for sorting it again takes a seventh of the time
        code, order = code.sort()
        return torch.stack([neighbour_information(code, factor[order], n_neighbours) for factor in columns])

    return torch.stack(side_by_side(tell, scaled.unbind(-1)))


def _scaled(codes: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample latent"]:
    codes = codes.to(torch.float64)
    centred = codes - codes.mean(0)
    spread = centred.square().mean(0).sqrt()
    constant = codes.amax(0) == codes.amin(0)
    return torch.where(constant, 0.0, centred / torch.where(constant | (spread == 0), 1.0, spread))


def _one_hot(labels: Categories) -> np.ndarray:
    columns: list[Int[Tensor, "sample value"]] = [
        torch.nn.functional.one_hot(column, size) for column, size in zip(labels.values.unbind(-1), labels.sizes)
    ]
    return torch.cat(columns, dim=-1).to(torch.float64).cpu().numpy()


def _explicit(features: np.ndarray, labels: np.ndarray) -> float:
    # no penalty; balanced classes, as the authors fit it, so that knowing nothing costs log(n_classes)
    classes, (chances,) = logistic(features, labels, (features,), cost=math.inf, balanced=True)
    own = chances[np.arange(len(labels)), np.searchsorted(classes, labels)]
    nothing = math.log(len(classes))
    # (log K − H) / log K with the log-loss H, no probability below what a double tells from 0
    return max(0.0, float((nothing + np.log(own.clip(np.finfo(np.float64).eps)).mean()) / nothing))


ROW = Metric(
    infomec,
    name="infomec",
    label="InfoMEC",
    title="InfoM, InfoE, InfoC",
    tells="Modularity, explicitness and compactness by one yardstick: shares of information.",
    kind="supervised",
    needs="codes factors seed",
    range=(0.0, 1.0),
    better="more",
    invariant_to=(*ORDER, "latent sign", "latent shift", "global scale", "factor relabelling"),
    at_chance="0 for a constant code; random codes get small explicitness, but modularity and compactness from the "
    "noise of their small informations",
    paper="hsu2023disentanglement",
    example="infomec(codes, factors).share",
    scores=("modularity", "explicitness", "compactness"),
    on_cpu="linear classifiers",
)
