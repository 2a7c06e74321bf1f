"""z-theorem-1: every local minimum of the stochastic loss is global, and has orthogonal columns (Zietlow, 2022).

Over many samples at once: the rotations V_i and the noise σ_i of all of them are free, their KL together is fixed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave import rng
from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.shapes import Float, Tensor
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_exact

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "No local minima, and orthogonal columns in all of them"
LATENTS = (2, 3, 5)
N_SAMPLES, BUDGET = 6, 20.0
"""Samples that share a budget C of KL."""
N_STARTS = {"smoke": 5, "small": 20, "paper": 100}


@dataclass(frozen=True)
class Minimum:
    """Where a descent ended: how far above the least loss, and the largest cosine between two columns."""

    excess: float
    cosine: float


def study(size: str) -> Study:
    """Nothing is trained: the problem is solved over rotations and noise directly, as the theorem states it."""
    at_size(size, N_STARTS)
    return Study(f"z-theorem-1-{size}", (), title=TITLE)


def judge(results: Results, size: str) -> Outcome:
    """Descents from random starts, for several numbers of latents."""
    return judge_with(size, free_noise=True)


def judge_with(size: str, free_noise: bool) -> Outcome:
    """The same; without free noise all latents have the same, and nothing is left to prefer a rotation."""
    found = {d: [descend(d, seed, free_noise) for seed in range(at_size(size, N_STARTS))] for d in LATENTS}
    comparisons: list[Comparison] = []
    for d, minima in found.items():
        words = f"{d} latents, {N_SAMPLES} samples, {len(minima)} starts"
        excess, cosine = max(one.excess for one in minima), max(one.cosine for one in minima)
        comparisons.append(compare_exact(f"{words}: largest excess over the global minimum", excess, 0.0, 1e-5))
        comparisons.append(compare_exact(f"{words}: largest cosine between columns", cosine, 0.0, 5e-3))
    notes = (
        f"Singular values are drawn between 0.3 and 3 for every sample, V_i and σ_i at random; the budget C"
        f" is {BUDGET:g} nats over all samples. Quasi-Newton steps in double precision know nothing of the answer.",
        "The least loss is N log d + (Σ log s² − C)/d: by the inequality of means for the noise, by Hadamard's for the"
        " rotations. A descent that ended in a local minimum would stay above it.",
        "§3.2 states it for the logarithm of the loss; Corollary 1, without it, is the case of a single sample.",
    )
    return Outcome(tuple(comparisons), {"Cosines at the ends of the descents": _figure(found)}, {}, notes)


def descend(d: int, seed: int, free_noise: bool = True) -> Minimum:
    """Minimise Σ_i log E ‖J_i ε_i‖² over V_i and σ_i with Σ −log σ² = C, from a random start."""
    from scipy.optimize import minimize

    values = 0.3 + 2.7 * rng.uniform(seed, rng.Purpose.WORLD, 2, N_SAMPLES, d).double()
    bases = torch.linalg.qr(rng.normal(seed, rng.Purpose.WORLD, 3, N_SAMPLES, d * d).double().view(-1, d, d)).Q
    start = rng.normal(seed, rng.Purpose.WORLD, 4, N_SAMPLES, d * d + d).double()

    def loss_of(flat: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.from_numpy(flat).view_as(start).requires_grad_()
        loss = _loss(*_parts(point, values, bases, free_noise))
        (slope,) = torch.autograd.grad(loss, point)
        return float(loss.detach()), slope.flatten().numpy()

    ended = minimize(loss_of, start.flatten().numpy(), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 4000})
    columns, noise = _parts(torch.from_numpy(ended.x).view_as(start), values, bases, free_noise)
    least = N_SAMPLES * float(np.log(d)) + (2 * float(values.log().sum()) - BUDGET) / d
    return Minimum(float(_loss(columns, noise)) - least, _cosine(columns))


def _parts(
    point: Float[Tensor, "sample number"], values: Tensor, bases: Tensor, free_noise: bool
) -> tuple[Float[Tensor, "sample latent latent"], Float[Tensor, "sample latent"]]:
    """J_i = Σ_i V_iᵀ up to a rotation of the output, and log σ² with the budget kept."""
    d = values.shape[1]
    skew = point[:, : d * d].view(-1, d, d)
    turns = bases @ torch.linalg.matrix_exp(skew - skew.mT)
    free = point[:, d * d :] if free_noise else torch.zeros_like(point[:, d * d :])
    return values[:, :, None] * turns.mT, free - free.mean() - BUDGET / free.numel()


def _loss(columns: Float[Tensor, "sample row latent"], noise: Float[Tensor, "sample latent"]) -> Tensor:
    # Σ_i log Σ_j σ_ij² ‖J_i e_j‖²
    return torch.logsumexp(noise + columns.square().sum(1).log(), dim=1).sum()


def _cosine(columns: Float[Tensor, "sample row latent"]) -> float:
    units = columns / columns.norm(dim=1, keepdim=True)
    gram = units.mT @ units - torch.eye(units.shape[2], dtype=units.dtype)
    return float(gram.abs().max())


def _figure(found: dict[int, list[Minimum]]) -> "matplotlib.figure.Figure":
    samples = [np.array([one.cosine for one in minima]) for minima in found.values()]
    return violins(samples, [f"{d} latents" for d in found], "", "largest cosine between columns")


CONTROLS = (
    Control(
        "equal noise",
        "all latents with the same noise, so that no rotation is cheaper than another.",
        lambda results, size, draw: judge_with(size, free_noise=False),
    ),
)

REPRODUCTION = Reproduction("z-theorem-1", TITLE, f"{SOURCE}, Theorem 1", study, judge, CONTROLS)
