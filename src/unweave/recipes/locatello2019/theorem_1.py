"""k-theorem-1: entangled factors with the distribution of the true ones (Locatello et al., 2019, Theorem 1)."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave.metrics.supervised.mig import mig
from unweave.models.impossibility import MARGINALS, Marginal, entangle, householder
from unweave.pages.outcome import Outcome
from unweave.plots.scatter import scatter
from unweave.recipes.locatello2019.settings import SOURCE
from unweave.recipes.reproduction import Control, Reproduction
from unweave.shapes import Float, Tensor
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, Verdict, compare_exact

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "Without further assumptions nothing tells disentangled factors from entangled ones"
N_FACTORS = (2, 3, 5, 10)
N_SAMPLES = {"smoke": 20_000, "small": 200_000, "paper": 1_000_000}
N_POINTS = 2_000
"""Points at which slopes are taken."""

Turn = Callable[..., Tensor]
"""f, from factors, marginals and a matrix to entangled factors."""


def study(size: str) -> Study:
    """No model is trained: the theorem is a construction."""
    return Study(f"k-theorem-1-{size}", (), title=TITLE)


def judge(results: Results, size: str) -> Outcome:
    """Build f for several numbers of factors and three marginals, and check every property that the theorem claims."""
    return judge_with(householder, size)


def judge_with(matrix: Callable[[int], Tensor], size: str, turn: Turn = entangle, unrelated: bool = False) -> Outcome:
    """The same with another matrix or f than the theorem's, or with factors that the codes know nothing of."""
    comparisons: list[Comparison] = []
    for n_factors in N_FACTORS:
        comparisons += _properties(n_factors, N_SAMPLES[size], matrix(n_factors), turn, unrelated)
    notes = (
        f"{N_SAMPLES[size]:,} draws of factors with uniform, normal and logistic marginals in turn; α = ¼ for the"
        " Householder matrix. Distribution and independence are checked to the error that so many draws have, slopes"
        f" at {N_POINTS:,} points by automatic differentiation.",
        "Codes z score 1 against the factors z, codes f(z) do not; yet data made from z is data made from f(z) too."
        " So no unsupervised learner can know which of the two it has found.",
    )
    return Outcome(tuple(comparisons), {"The same square, entangled": _figure()}, {}, notes)


def _properties(n_factors: int, n_samples: int, rotation: Tensor, turn: Turn, unrelated: bool) -> list[Comparison]:
    names = [list(MARGINALS)[place % len(MARGINALS)] for place in range(n_factors)]
    marginals = tuple(MARGINALS[name] for name in names)
    generator = torch.Generator().manual_seed(n_factors)
    # uniform numbers strictly inside (0, 1): quantiles of 0 and 1 are infinite
    shares = torch.rand(n_samples, n_factors, generator=generator, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    factors = torch.stack([m.quantile(column) for m, column in zip(marginals, shares.unbind(1))], dim=1)
    turned = turn(factors, marginals, rotation)
    back = turn(turned, marginals, rotation.T)
    slopes = _slopes(factors[:N_POINTS], marginals, rotation, turn)
    told = factors[torch.randperm(n_samples, generator=generator)] if unrelated else factors
    bound, few = 4 / math.sqrt(n_samples), f"{n_factors} factors"
    gap = (rotation @ rotation.T - torch.eye(n_factors, dtype=torch.float64)).abs().max()
    found = {
        "A is orthogonal, ‖AAᵀ − I‖∞": (float(gap), 0.0, 1e-12),
        "f is invertible, f⁻¹(f(z)) − z": (float(_tail(back, factors)), 0.0, 1e-6),
        "the marginals stay, largest distance of distributions": (_distance(turned, marginals), 0.0, bound),
        "f(z) stays independent, largest rank correlation": (_dependence(turned), 0.0, bound),
        "every ∂fᵢ/∂zⱼ differs from 0, share of entries": (float((slopes != 0).double().mean()), 1.0, 0.0),
        "MIG of the codes z": (_mig(factors, told), 1.0, 0.02),
    }
    exact = [compare_exact(f"{few}: {claim}", *numbers) for claim, numbers in found.items()]
    return [*exact, _entangled(few, _mig(turned, factors))]


def _entangled(few: str, score: float) -> Comparison:
    rule = "Agrees when the score is below 0.5, half of what the factors themselves get."
    verdict: Verdict = "agrees" if score < 0.5 else "differs"
    return Comparison(f"{few}: MIG of the codes f(z)", "below 1", score, None, 1, rule, verdict, kind="exact")


def _tail(back: Float[Tensor, "sample factor"], factors: Float[Tensor, "sample factor"]) -> Tensor:
    """The 99.9 % quantile of the relative error; far out in the tails a quantile of a share rounds off."""
    error = ((back - factors).abs() / (1 + factors.abs())).flatten()
    return error.kthvalue(int(0.999 * len(error))).values


def _distance(turned: Float[Tensor, "sample factor"], marginals: tuple[Marginal, ...]) -> float:
    """Kolmogorov's: the largest gap between the empirical and the true distribution, over all factors."""
    shares = torch.stack([m.cumulative(column) for m, column in zip(marginals, turned.unbind(1))], dim=1)
    n = len(shares)
    steps = torch.arange(1, n + 1, dtype=shares.dtype)[:, None] / n
    return float((shares.sort(dim=0).values - steps).abs().max())


def _dependence(turned: Float[Tensor, "sample factor"]) -> float:
    ranks = turned.argsort(dim=0).argsort(dim=0).double()
    correlations = torch.corrcoef(ranks.T)
    return float((correlations - torch.eye(len(correlations), dtype=torch.float64)).abs().max())


def _slopes(
    factors: Float[Tensor, "sample factor"], marginals: tuple[Marginal, ...], rotation: Tensor, turn: Turn
) -> Float[Tensor, "sample factor factor"]:
    points = factors.clone().requires_grad_()
    turned = turn(points, marginals, rotation)
    # samples do not know each other, so the slopes of a sum over them are the slopes of each
    rows = [torch.autograd.grad(column.sum(), points, retain_graph=True)[0] for column in turned.unbind(1)]
    return torch.stack(rows, dim=1)


def _mig(codes: Float[Tensor, "sample factor"], factors: Float[Tensor, "sample factor"]) -> float:
    """Of 20,000 draws, factors in the 20 equally likely bins that codes are put into too."""
    chosen, shares = codes[:20_000], _ranked(factors[:20_000])
    return float(mig(_ranked(chosen).float(), (shares * 20).long().clamp(0, 19)).score)


def _ranked(values: Float[Tensor, "sample factor"]) -> Float[Tensor, "sample factor"]:
    """Each column as its ranks in [0, 1): a monotone map, which changes no information."""
    return values.argsort(dim=0).argsort(dim=0).double() / len(values)


def _figure() -> "matplotlib.figure.Figure":
    places = np.linspace(0.02, 0.98, 33)
    grid = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    turned = entangle(torch.from_numpy(grid), (MARGINALS["uniform"],) * 2).numpy()
    quarter = (grid > 0.5).astype(int) @ np.array([1, 2])
    words = ("both small", "first large", "second large", "both large")
    series = {word: (turned[quarter == place, 0], turned[quarter == place, 1]) for place, word in enumerate(words)}
    names = {word: [f"z = {a:.2f}, {b:.2f}" for a, b in grid[quarter == place]] for place, word in enumerate(words)}
    return scatter(series, "f(z) for an even grid of z, by quarter of z", "f₁(z)", "f₂(z)", names=names)


def _nothing(n_factors: int) -> Tensor:
    return torch.eye(n_factors, dtype=torch.float64)


def _sheared(n_factors: int) -> Tensor:
    return householder(n_factors) + 0.5 * torch.ones(n_factors, n_factors, dtype=torch.float64).triu(1)


def _turned(
    factors: Float[Tensor, "sample factor"], marginals: tuple[Marginal, ...], matrix: Tensor
) -> Float[Tensor, "sample factor"]:
    """As f, with any matrix."""
    shares = torch.stack([m.cumulative(column) for m, column in zip(marginals, factors.unbind(1))], dim=1)
    normal = torch.special.ndtri(shares.clamp(1e-12, 1 - 1e-12)) @ matrix.T
    turned = torch.special.ndtr(normal).clamp(1e-12, 1 - 1e-12)
    return torch.stack([m.quantile(column) for m, column in zip(marginals, turned.unbind(1))], dim=1)


CONTROLS = (
    Control(
        "identity",
        "f(z) = z, which entangles nothing.",
        lambda results, size, draw: judge_with(_nothing, size),
        about=r"∂f|codes f\(z\)",
    ),
    Control(
        "sheared",
        "a matrix that is not orthogonal in the place of the theorem's.",
        lambda results, size, draw: judge_with(_sheared, size, _turned),
        about="orthogonal|invertible|marginals|independent",
    ),
    Control(
        "other factors",
        "codes beside the factors of other examples.",
        lambda results, size, draw: judge_with(householder, size, unrelated=True),
        about="of the codes z",
    ),
)

REPRODUCTION = Reproduction("k-theorem-1", TITLE, f"{SOURCE}, Theorem 1", study, judge, CONTROLS)
