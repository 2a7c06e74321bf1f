"""z-fig-7.6: with a precise decoder the ELBO is the IMA-regularised likelihood (Zietlow, 2022, §7.6)."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave import rng
from unweave.metrics.geometry.ima import ima_contrast
from unweave.pages.outcome import Outcome
from unweave.plots.bands import Band, bands
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.shapes import Float, Tensor
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_exact, compare_trend

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "The ELBO approaches the IMA objective as the decoder grows precise"
PRECISIONS = (1e1, 1e2, 1e3, 1e4, 1e5)
"""γ², the decoder's precision."""
D = 3
BEND = 0.2
N_POINTS = {"smoke": 500, "small": 2_000, "paper": 10_000}
N_DRAWS = 256
N_DECODERS = 5


def study(size: str) -> Study:
    """Nothing is trained: decoders are random, encoders self-consistent, as the paper's theorem has them."""
    at_size(size, N_POINTS)
    return Study(f"z-fig-7.6-{size}", (), title=TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The gap over γ² for several decoders, and what is left of it."""
    return judge_with(size, regularised=True)


def judge_with(size: str, regularised: bool) -> Outcome:
    """The same beside the IMA objective, or beside the likelihood without its regulariser."""
    gaps = np.array([_gaps(seed, at_size(size, N_POINTS), regularised) for seed in range(N_DECODERS)])
    x = np.tile(np.log10(PRECISIONS), N_DECODERS)
    seeds = np.repeat(np.arange(N_DECODERS), len(PRECISIONS))
    last = float(np.abs(gaps[:, -1]).max())
    comparisons: tuple[Comparison, ...] = (
        compare_trend(
            "distance of the ELBO and the IMA objective against γ²", x, np.abs(gaps).ravel(), -1, seeds=seeds
        ),
        compare_exact(
            f"distance at γ² = {PRECISIONS[-1]:g}, nats, the largest of {N_DECODERS} decoders", last, 0.0, 0.01
        ),
    )
    notes = (
        f"Decoders x = y + {BEND:g} sin y with y = W z, three latents, W drawn at random: invertible, and with columns"
        " that are not orthogonal. The encoder is the self-consistent one: its mean inverts the decoder, its variances"
        f" are 1/(1 + γ²‖J_j‖²). {N_DRAWS} draws of noise a point, antithetic.",
        "The IMA objective is the likelihood less the contrast Σ log ‖J_j‖ − log |det J|. The published figure has no"
        " numbers; that the distance vanishes is read as below 0.01 nats.",
    )
    return Outcome(comparisons, {"ELBO less IMA objective over γ²": _figure(gaps)}, {}, notes)


def _gaps(seed: int, n_points: int, regularised: bool) -> list[float]:
    """The mean ELBO less the mean objective, for every γ²."""
    weight = rng.normal(seed, rng.Purpose.WORLD, 5, D, D).double() + 0.5 * torch.eye(D, dtype=torch.float64)
    codes = rng.normal(seed, rng.Purpose.WORLD, 6, n_points, D).double()
    slopes = (1 + BEND * torch.cos(codes @ weight.T))[:, :, None] * weight
    norms = slopes.norm(dim=1)
    prior = -0.5 * (codes.square().sum(1) + D * math.log(2 * math.pi))
    likelihood = prior - torch.linalg.slogdet(slopes).logabsdet
    contrast = ima_contrast(slopes.mT @ slopes).score if regularised else 0.0
    target = float(likelihood.mean()) - float(contrast)
    return [_elbo(codes, weight, norms, precision, seed) - target for precision in PRECISIONS]


def _elbo(codes: Float[Tensor, "sample latent"], weight: Tensor, norms: Tensor, precision: float, seed: int) -> float:
    """E log p(x|z) − KL of the self-consistent encoder, up to nothing: constants are kept."""
    variance = 1 / (1 + precision * norms.square())
    images = _decoded(codes, weight)
    squares = torch.zeros(len(codes), dtype=torch.float64)
    for draw in range(N_DRAWS // 2):
        noise = rng.normal(seed, rng.Purpose.NOISE, draw, *codes.shape).double() * variance.sqrt()
        for sign in (1.0, -1.0):
            squares += (_decoded(codes + sign * noise, weight) - images).square().sum(1) / N_DRAWS
    rebuilt = -0.5 * (precision * squares + D * math.log(2 * math.pi / precision))
    kl = 0.5 * (codes.square() + variance - variance.log() - 1).sum(1)
    return float((rebuilt - kl).mean())


def _decoded(codes: Float[Tensor, "sample latent"], weight: Tensor) -> Float[Tensor, "sample feature"]:
    straight = codes @ weight.T
    return straight + BEND * torch.sin(straight)


def _figure(gaps: Float[np.ndarray, "decoder precision"]) -> "matplotlib.figure.Figure":
    nothing = np.full(len(PRECISIONS), np.nan)
    lines = {f"decoder {seed}": Band(np.array(PRECISIONS), row, nothing, nothing) for seed, row in enumerate(gaps)}
    return bands({"": lines}, "γ²", "ELBO less IMA objective (nats)", logarithmic=True)


CONTROLS = (
    Control(
        "unregularised",
        "the likelihood without its regulariser in the place of the IMA objective.",
        lambda results, size, draw: judge_with(size, regularised=False),
        about="distance at",
    ),
    Control(
        "one precision",
        "distances of all γ² exchanged at random.",
        lambda results, size, draw: _exchanged(size, draw),
        draws=5,
        about="against γ²",
    ),
)


def _exchanged(size: str, draw: int) -> Outcome:
    generator = np.random.default_rng(draw)
    gaps = np.array([generator.permutation(_gaps(seed, 200, True)) for seed in range(N_DECODERS)])
    x, seeds = np.tile(np.log10(PRECISIONS), N_DECODERS), np.repeat(np.arange(N_DECODERS), len(PRECISIONS))
    what = "distance of the ELBO and the IMA objective against γ²"
    return Outcome((compare_trend(what, x, np.abs(gaps).ravel(), -1, seeds=seeds),))


REPRODUCTION = Reproduction("z-fig-7.6", TITLE, f"{SOURCE}, Figure 7.6", study, judge, CONTROLS)
