"""Encode rows of a run's data once, so that every metric reads from the same table."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from unweave import rng
from unweave.shapes import Float, Int, Shaped, Tensor
from unweave.training.run import Run, joined

BATCH_SIZE = 1024
"""Part of the result: the noise of a sampled code is a function of (seed, batch, place in the batch)."""


@dataclass(frozen=True)
class Encoded:
    """Mean, variance and sample of the posterior of every row, and the factors or labels that are known.

    The prior is the standard normal, unless the model learned one for every row.
    """

    rows: Int[Tensor, " sample"]
    mean: Float[Tensor, "sample latent"]
    sampled: Float[Tensor, "sample latent"]
    variance: Float[Tensor, "sample latent"]
    kl: Float[Tensor, "sample latent"]
    factors: Shaped[Tensor, "sample factor"] | None
    prior_mean: Float[Tensor, "sample latent"] | None = None
    prior_variance: Float[Tensor, "sample latent"] | None = None

    def standardised(self) -> "Encoded":
        """The codes of (z − μ†)/σ†, whose prior is the standard normal; these ones where it is that already."""
        if self.prior_mean is None or self.prior_variance is None:
            return self
        shift, scale = self.prior_mean, self.prior_variance.sqrt()
        mean, sampled = ((codes - shift) / scale for codes in (self.mean, self.sampled))
        return Encoded(self.rows, mean, sampled, self.variance / self.prior_variance, self.kl, self.factors)


@torch.no_grad()
def encode(
    run: Run,
    rows: Int[Tensor, " sample"],
    *,
    seed: int = 0,
    device: str | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Encoded:
    """The codes of these rows, on the GPU where there is one; equal seeds give equal samples."""
    run.require_codes()
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model, data = copy.deepcopy(run.model).to(place), run.data
    parts = []
    for step, some in enumerate(rows.split(BATCH_SIZE)):
        if watch is not None:
            watch(step * BATCH_SIZE, len(rows))
        images = data.examples(some, seed=seed, step=step).to(place)
        noise = rng.normal(seed, rng.Purpose.EVALUATE, step, len(some), run.experiment.latents)
        labels = run.labels(rows=some)
        told = () if labels is None else (labels.to(place),)
        parts.append(model.code(images, noise.to(place), *told).map(Tensor.cpu))
    if watch is not None:
        watch(len(rows), len(rows))
    code = joined(parts)
    factors = known_factors(data, rows)
    return Encoded(rows, code.mean, code.sampled, code.variance, code.kl, factors, code.prior_mean, code.prior_variance)


def known_factors(data: Any, rows: Int[Tensor, " sample"]) -> Shaped[Tensor, "sample factor"] | None:
    """The factors of a world, the labels of labelled data, or None."""
    return None if data.space is None and data.labels is None else data.factors(rows)


def factor_names(data: Any) -> tuple[str, ...]:
    """The names of what :func:`known_factors` gives."""
    if data.space is not None:
        return tuple(data.space.names)
    if data.labels is None:
        return ()
    return data.label_names or tuple(str(place) for place in range(data.labels.shape[1]))
