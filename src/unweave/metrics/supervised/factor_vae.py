"""The FactorVAE metric (Kim & Mnih, 2018), as ``factor_vae_score`` of disentanglement_lib.

```
vote = argmin_j Var_batch(z_j) / Var(z_j), over a batch of 64 that shares factor k
score = share of test votes (j, k) in which k is the factor that latent j was voted for most often in training
```

**Protocol.** 10,000 votes to count, 5,000 to test; global variances from 10,000 rows; latents with a standard
deviation below 0.05 are pruned, as in the published studies.

**Rewards.** A latent that is still exactly when its factor is. No classifier to fit, no hyperparameter to choose.

**Misses.** Rotations in part (a random one still scores 0.65 to 0.96), copies, what else a latent holds, and a
missing factor costs little.

## Known defects, and what is done about them

- **A dead latent ruins the original's default** (`prune="code"`): 0/0 is NaN, which wins every vote; an ideal code
  with one dead latent scores 0.25 instead of 1. `prune="study"` is the studies' threshold of 0.05 and the default
  here.
- The threshold depends on the scale of the code. Mended: `prune="relative"` takes it relative to the largest standard
  deviation.
- `num_active_dims` of the original is the length of the mask, not a count; here `n_active_latents` counts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import as_codes, as_codes_and_factors, check_count
from unweave.metrics.row import DRAWN, Metric
from unweave.metrics.supervised.interventions import Grouped, fixed_batches, gather, grouped
from unweave.shapes import Bool, Float, Int, Tensor

PRUNE = ("study", "code", "relative")


@dataclass(frozen=True)
class FactorVae:
    """``score`` is the test accuracy of the majority vote."""

    score: float
    train_accuracy: float
    votes: Int[Tensor, "latent factor"]
    """How often each latent varied least while each factor was held fixed, in the rows to fit on."""
    active: Bool[Tensor, " latent"]
    """The latents that may be voted for."""
    n_active_latents: int
    prune: str


def factor_vae(
    codes: Any,
    factors: Any,
    *,
    n_train: int = 10_000,
    n_test: int = 5_000,
    n_variance: int = 10_000,
    batch_size: int = 64,
    prune: str = "study",
    threshold: float = 0.05,
    seed: int = 0,
) -> FactorVae:
    """How well the latent that varies least, for its own scale, tells which factor was held fixed.

    Batches are drawn from the rows of the table; the global variance is that of ``n_variance`` rows. Which latents are
    too still to vote is decided by ``prune``. ``"study"``: standard deviation below ``threshold``, 0.05 in the
    published studies, which depends on the code's scale. ``"code"``: the original's own default, nothing is pruned; a
    dead latent then gives 0/0, wins every vote and ruins the score. ``"relative"`` mends both: standard deviation
    below ``threshold`` times the largest one. Factors that never vary are left out; 0 when no latent or no factor is
    left.
    """
    counts = {"n_train": n_train, "n_test": n_test, "n_variance": n_variance, "batch_size": batch_size}
    for name, count in counts.items():
        check_count(count, name, 2 if name in ("n_variance", "batch_size") else 1)
    tensor, truth = as_codes_and_factors(codes, factors)
    # from the first row on, so that a latent that never varies is exactly 0 and leaves no rounding dust
    tensor = tensor.to(torch.float64)
    table, labels = tensor - tensor[0], truth.values.cpu().numpy()
    groups, generator = grouped(labels), np.random.default_rng(seed)
    rows = torch.from_numpy(generator.permutation(len(table))[:n_variance]).to(table.device)
    variance = _variance(table[rows])
    active = _active(variance.cpu().numpy(), prune, threshold)
    if len(groups.factors) == 0 or not active.any():
        return _nothing(active, labels.shape[1], prune, table.device)
    kept = torch.from_numpy(active).to(table.device)
    scaled = table[:, kept].contiguous(), variance[kept]
    parts = [_drawn_votes(*scaled, groups, n, batch_size, generator, labels.shape[1]) for n in (n_train, n_test)]
    return _majority(parts[0], parts[1], kept, prune)


def factor_vae_of_draws(
    batches: Any,
    fixed: Any,
    reference: Any,
    *,
    n_train: int | None = None,
    prune: str = "study",
    threshold: float = 0.05,
) -> FactorVae:
    """The same from ready draws: codes batch × sample × latent, the factor fixed in each, and codes of anything.

    The first ``n_train`` batches (two thirds unless told) are counted, the others tested.
    """
    table = torch.as_tensor(batches).detach().to(torch.float64)
    labels = torch.as_tensor(fixed).cpu().numpy().astype(np.int64)
    if table.ndim != 3 or labels.shape != table.shape[:1] or table.shape[1] < 2:
        raise ValueError(
            f"batches must be batch × sample × latent and fixed batch, not {tuple(table.shape)}, {labels.shape}"
        )
    n_train = round(len(labels) * 2 / 3) if n_train is None else n_train
    if not 0 < n_train < len(labels):
        raise ValueError(f"n_train must leave batches to count and to test of {len(labels)}, not {n_train}")
    anything = as_codes(reference, "reference").to(table)
    table, variance = table - anything[0], _variance(anything - anything[0])
    active = _active(variance.cpu().numpy(), prune, threshold)
    n_factors = int(labels.max()) + 1
    if not active.any():
        return _nothing(active, n_factors, prune, table.device)
    kept = torch.from_numpy(active).to(table.device)
    winner = _stillest(table[:, :, kept], variance[kept])
    shape = (int(active.sum()), n_factors)
    parts = [_count(winner[part], labels[part], shape) for part in (slice(n_train), slice(n_train, None))]
    return _majority(parts[0], parts[1], kept, prune)


def _active(variance: Float[np.ndarray, " latent"], prune: str, threshold: float) -> Bool[np.ndarray, " latent"]:
    if prune not in PRUNE:
        raise ValueError(f"prune must be one of {', '.join(PRUNE)}, not {prune!r}")
    if threshold < 0:
        raise ValueError(f"threshold must not be negative, given {threshold}")
    deviation = np.sqrt(variance)
    least = {"study": threshold, "code": 0.0, "relative": threshold * float(deviation.max())}[prune]
    # exactly still latents are pruned at any threshold, except by the original's own rule
    return deviation >= least if prune == "code" else (deviation >= least) & (variance > 0)


def _variance(table: Float[Tensor, "*batch sample latent"]) -> Float[Tensor, "*batch latent"]:
    """In the memory of the table, which every caller has made for this."""
    centred = table.sub_(table.mean(-2, keepdim=True))
    return centred.square_().sum(-2) / max(table.shape[-2] - 1, 1)


def _drawn_votes(
    table: Float[Tensor, "sample latent"],
    variance: Float[Tensor, " latent"],
    groups: Grouped,
    n_batches: int,
    batch_size: int,
    generator: np.random.Generator,
    n_factors: int,
) -> Int[np.ndarray, "latent factor"]:
    votes = np.zeros((table.shape[1], n_factors), np.int64)
    kept: list[Tensor] = []
    for which, rows in fixed_batches(groups, n_batches, batch_size, generator):
        votes += _count(_stillest(gather(table, rows, kept), variance), which, votes.shape)
    return votes


def _stillest(
    batches: Float[Tensor, "batch sample latent"], variance: Float[Tensor, " latent"]
) -> Int[np.ndarray, " batch"]:
    # argmin_j Var_batch[z_j] / Var[z_j]; numpy's argmin takes the first NaN, as the original's does
    return (_variance(batches) / variance).cpu().numpy().argmin(1)


def _count(
    winner: Int[np.ndarray, " batch"], which: Int[np.ndarray, " batch"], shape: tuple[int, ...]
) -> Int[np.ndarray, "latent factor"]:
    return np.bincount(winner * shape[1] + which, minlength=shape[0] * shape[1]).reshape(shape)


def _majority(train: np.ndarray, test: np.ndarray, active: Bool[Tensor, " latent"], prune: str) -> FactorVae:
    answer = train.argmax(1)
    train_accuracy, accuracy = (
        float(votes[np.arange(len(votes)), answer].sum() / votes.sum()) for votes in (train, test)
    )
    votes = torch.zeros((len(active), train.shape[1]), dtype=torch.int64, device=active.device)
    votes[active] = torch.from_numpy(train).to(active.device)
    return FactorVae(accuracy, train_accuracy, votes, active, int(active.sum()), prune)


def _nothing(active: np.ndarray, n_factors: int, prune: str, device: torch.device) -> FactorVae:
    votes = torch.zeros((len(active), n_factors), dtype=torch.int64, device=device)
    return FactorVae(0.0, 0.0, votes, torch.from_numpy(active).to(device), int(active.sum()), prune)


ROW = Metric(
    factor_vae,
    name="factor_vae_score",
    label="FactorVAE",
    title="FactorVAE metric",
    tells="Does one latent stand still, for its own scale, when a factor is held fixed?",
    kind="supervised",
    needs="codes factors pairs seed",
    range=(0.0, 1.0),
    better="more",
    invariant_to=DRAWN,
    at_chance="0 for a constant code; about one over the number of factors, and more with many latents, for noise",
    paper="kim2018disentangling",
    example='factor_vae(codes, factors, prune="relative").n_active_latents',
)
