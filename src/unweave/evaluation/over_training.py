"""What a model went through while it trained: the polarised regime step by step, passive latents over snapshots."""

from dataclasses import dataclass

import torch

from unweave.metrics.polarised.passive import PassiveCorrelation, passive_correlation
from unweave.metrics.polarised.regime import RegimeShare, regime_share
from unweave.metrics.polarised.types import Type
from unweave.shapes import Float, Tensor
from unweave.training.run import Run

MOST_SNAPSHOTS = 20
EVERY = 500
"""Steps between two looks at the polarised regime, as in the source (Zietlow, 2022, §3.3.2)."""


@dataclass(frozen=True)
class OverTraining:
    """``regime`` is None for a deterministic autoencoder; ``correlations`` is None for a run without snapshots.

    ``steps`` are those of the history, at which ``kl`` is known; ``regime_steps`` those at which Δ_KL is.
    """

    regime: RegimeShare | None
    snapshots: tuple[int, ...]
    correlations: PassiveCorrelation | None
    steps: tuple[int, ...] = ()
    kl: Float[Tensor, "row latent"] | None = None
    regime_steps: tuple[int, ...] = ()


def over_training(
    run: Run,
    images: Float[Tensor, "sample ..."],
    types: list[Type],
    *,
    labels: Float[Tensor, "sample label"] | None = None,
    stochastic: bool = True,
) -> OverTraining:
    """Δ_KL from the history of a run, and the correlations of its latents at every snapshot it kept."""
    steps = _spread(sorted(run.snapshots))
    means = [means_of(run, run.snapshots[step], images, labels) for step in steps]
    correlations = passive_correlation(torch.stack(means), types) if means else None
    share, at = _share(run) if stochastic else (None, ())
    kl = run.history.latent("kl") if stochastic else None
    return OverTraining(share, tuple(steps), correlations, tuple(run.history.steps), kl, at)


def _share(run: Run) -> tuple[RegimeShare, tuple[int, ...]]:
    history = run.history
    steps = torch.tensor(history.steps)
    # the source looks every 500 steps; a history that is coarser, or shorter than ten looks, is taken as it is
    chosen = [row for row, step in enumerate(history.steps) if step % EVERY == 0]
    rows = torch.tensor(chosen) if len(chosen) >= 10 else torch.arange(len(steps))
    kl, spread, average = (history.latent(name)[rows] for name in ("kl", "variance_of_mean", "mean_variance"))
    at = steps[rows].tolist()
    return regime_share(kl, spread, average, steps=at), tuple(at)


@torch.no_grad()
def means_of(
    run: Run, name: str, images: Float[Tensor, "sample ..."], labels: Float[Tensor, "sample label"] | None = None
) -> Float[Tensor, "sample latent"]:
    """The mean codes of images by the weights of one file; of a learned prior, as deviations from it."""
    model = run.load_weights(name)
    told = (images,) if labels is None else (images, labels)
    codes = [model.encode(*(part.to(run.device) for part in batch)) for batch in zip(*(one.split(256) for one in told))]
    return torch.cat([code.standardised().mean.cpu() for code in codes])


def _spread(steps: list[int]) -> list[int]:
    """At most MOST_SNAPSHOTS, evenly spread, both ends among them."""
    places = torch.linspace(0, len(steps) - 1, min(len(steps), MOST_SNAPSHOTS)).round().long().tolist()
    return [steps[place] for place in places]
