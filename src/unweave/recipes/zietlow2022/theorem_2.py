"""z-theorem-2: a linear VAE finds the directions of PCA, up to sign and order (Zietlow, 2022, Theorem 2)."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from unweave import rng
from unweave.models.closed_form import differentiable_loss, linear_optimum
from unweave.models.networks.mlp import Linear
from unweave.models.objectives import BetaVAE
from unweave.models.precision_budget import precision_budget
from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.controls import before_training
from unweave.recipes.extent import Extent, at_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.recipes.zietlow2022.settings import (
    QUICK,
    QUICKENED,
    SOURCE,
    beta_at,
    by_seed,
    changes_at,
    experiment,
    notes,
)
from unweave.shapes import Float, Tensor
from unweave.studies.measures.principal import PrincipalDirections, matched
from unweave.studies.results import Results
from unweave.studies.statistics.settings import column
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_exact, compare_mean, compare_share

if TYPE_CHECKING:
    import polars as pl

TITLE = "A linear VAE finds the directions of PCA"

EIGENVALUES = (5.0, 3.0, 2.0, 1.0, 0.5, 0.2)
N_LATENTS, NOISE, BETA = 3, 0.1, 2.0
N_MINIMA, N_ROTATIONS = 5, 200


EXTENTS = {
    "smoke": Extent(6, changes={"synth_lin": QUICK | {"steps": 8_000}}, beta={"synth_lin": 0.02}),
    "small": Extent(
        16, changes={"synth_lin": QUICK | {"steps": 20_000, "history_every": 500}}, beta={"synth_lin": 0.02}
    ),
    "paper": Extent(32),
}


def study(size: str) -> Study:
    """Linear β-VAEs on Synth. Lin., with a latent more than there are directions."""
    extent = at_size(size, EXTENTS)
    beta = beta_at(extent, "synth_lin")
    runs = [
        experiment("synth_lin", BetaVAE(beta), seed, network=Linear(), latents=3, **changes_at(extent, "synth_lin"))
        for seed in range(extent.n_seeds)
    ]
    return Study(f"z-theorem-2-{size}", tuple(runs), (PrincipalDirections(),), TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The theorem in numbers, then in trained models."""
    return judge_with(results, size)


def judge_with(results: Results, size: str, *, wrong: bool = False) -> Outcome:
    """The same; where it is to be ``wrong``, with directions of other data and a rotation in the place of PCA."""
    table = results.table
    angles = [_angle_at_minimum(seed, wrong) for seed in range(N_MINIMA)]
    comparisons = (
        compare_exact(f"largest angle to PCA at {N_MINIMA} minima of the loss, degrees", max(angles), 0.0, 0.1),
        _rotations(wrong),
        compare_mean("trained: largest angle to PCA, degrees", _angles(table), 0.0, tolerance=3.0, unit="degrees"),
        _kept(table),
        _rate(table),
    )
    figures = {
        "Largest angle between a latent's direction and PCA's, by restart": violins(
            [column(table, "principal.largest_angle")], [f"{table.height} restarts"], "", "degrees"
        )
    }
    return Outcome(comparisons, figures, {"Trained models beside their closed form": _rows(table)}, _notes(size))


def _angle_at_minimum(seed: int, wrong: bool) -> float:
    """Minimise the loss of a linear β-VAE with a diagonal posterior from random weights, in double precision."""
    covariance = turned(EIGENVALUES, seed)
    start = rng.normal(seed, rng.Purpose.WORLD, 1, len(EIGENVALUES), N_LATENTS).double()
    weight = minimum(covariance, start)
    covariance = turned(EIGENVALUES, seed + N_MINIMA) if wrong else covariance
    directions = linear_optimum(covariance, N_LATENTS, noise=NOISE, beta=BETA).weight
    # an arc cosine near 1 knows an angle to a millionth of a degree, and its last digits are the machine's
    return round(float(matched(weight, directions)[2].max()), 5)


def minimum(
    covariance: Float[Tensor, "feature feature"], start: Float[Tensor, "feature latent"]
) -> Float[Tensor, "feature latent"]:
    """The decoder of least loss, found from a start by quasi-Newton steps that know nothing of PCA."""
    from scipy.optimize import minimize

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weight = torch.from_numpy(flat).view_as(start).requires_grad_()
        value = differentiable_loss(weight, covariance, NOISE, beta=BETA)
        (slope,) = torch.autograd.grad(value, weight)
        return value.item(), slope.flatten().numpy()

    found = minimize(loss, start.flatten().numpy(), jac=True, method="BFGS", options={"gtol": 1e-10})
    return torch.from_numpy(found.x).view_as(start)


def _rotations(wrong: bool) -> Comparison:
    """The problem of the theorem itself: with the reconstruction fixed, no rotation of the latents is cheaper."""
    covariance = turned(EIGENVALUES[:N_LATENTS], 0)
    values, vectors = torch.linalg.eigh(covariance)
    best = precision_budget(_rotated(covariance, N_ROTATIONS) if wrong else vectors * values.sqrt()).loss
    losses = [precision_budget(_rotated(covariance, seed)).loss for seed in range(N_ROTATIONS)]
    cheaper = sum(loss >= best * (1 - 1e-9) for loss in losses)
    return compare_share(f"{N_ROTATIONS} random rotations that cost more noise than PCA's", cheaper, N_ROTATIONS, 1.0)


def _rotated(covariance: Float[Tensor, "latent latent"], seed: int) -> Float[Tensor, "feature latent"]:
    """A decoder with latents of unit variance along random axes: M_j = √((U C Uᵀ)_jj) along the j-th axis."""
    axes = rotation(len(covariance), seed)
    return axes.T * torch.diagonal(axes @ covariance @ axes.T).sqrt()


def turned(eigenvalues: tuple[float, ...], seed: int) -> Float[Tensor, "feature feature"]:
    """A covariance with these eigenvalues and random principal directions."""
    axes = rotation(len(eigenvalues), seed)
    return axes.T @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ axes


def rotation(size: int, seed: int) -> Float[Tensor, "row column"]:
    """A random orthogonal matrix."""
    drawn = rng.normal(seed, rng.Purpose.WORLD, 0, size, size).double()
    return torch.linalg.qr(drawn).Q


def _angles(table: "pl.DataFrame") -> dict[int, float]:
    return by_seed(table, "principal.largest_angle")


def _kept(table: "pl.DataFrame") -> Comparison:
    kept, expected = column(table, "principal.n_active"), column(table, "principal.n_active_theory")
    return compare_share(
        "trained: runs that keep as many latents as the closed form",
        int((kept == expected).sum()),
        int(np.isfinite(kept).sum()),
        1.0,
        tolerance=0.2,
    )


def _rate(table: "pl.DataFrame") -> Comparison:
    rates = by_seed(table, "principal.rate")
    theory = float(np.nanmean(column(table, "principal.rate_theory"))) if table.height else math.nan
    what = "trained: KL beside the closed form's, nats"
    return compare_mean(what, rates, round(theory, 3), tolerance=0.05 * theory, unit="nats")


def _rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
    names = {"seed": "seed", "angle": "principal.largest_angle", "DtO": "principal.dto", "KL": "principal.rate"}
    names |= {"KL, theory": "principal.rate_theory", "active": "principal.n_active"}
    return [{shown: row.get(name) for shown, name in names.items()} for row in table.iter_rows(named=True)]


def _notes(size: str) -> tuple[str, ...]:
    changed = {
        "smoke": "Trained with β = 0.02, a learning rate of 0.01 and 8,000 steps of 256 examples.",
        "small": "Trained with β = 0.02, a learning rate of 0.01 and 20,000 steps of 256 examples.",
        "paper": "Trained as the other experiments on Synth. Lin.: β = 0.0001, 375,000 steps.",
    }
    return notes(
        "The theorem is exact and needs no training: the first two rows minimise the loss of a linear β-VAE in double"
        " precision, and draw rotations, on covariances with the eigenvalues"
        f" {', '.join(f'{value:g}' for value in EIGENVALUES)} and random directions. They are the same at every size.",
        "The other rows are trained models, which are where their last step left them: at the minimum but for Adam's"
        " noise, or still on their way.",
        changed[size],
        QUICKENED if size != "paper" else "",
        "The source states the theorem for a fixed reconstruction and unit variance of the means; the minimised loss"
        " has neither constraint.",
    )


CONTROLS = (
    Control(
        "wrong directions",
        "principal directions of other data, and a random rotation in the place of PCA's.",
        lambda results, size, draw: judge_with(results, size, wrong=True),
        about="minima|rotations",
    ),
    before_training(judge, about="^trained"),
)

REPRODUCTION = Reproduction("z-theorem-2", TITLE, f"{SOURCE}, Theorem 2", study, judge, CONTROLS)
