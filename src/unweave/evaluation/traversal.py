"""Pictures of a decoder: strips along one latent, planes of two, and non-linear eigenfaces (Zietlow, 2022, §3.3.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unweave.evaluation.describe import Description, describe
from unweave.metrics.polarised.types import Type
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor
from unweave.training.run import Run

N_MEAN = 300
"""Examples behind the mean code of the eigenfaces, as in the source."""


@dataclass(frozen=True)
class Strips:
    """Images [latent, step, …] along ``latents``, at ``values`` [step]; type and KL of each latent beside them."""

    images: Float[Tensor, "latent step ..."]
    values: Float[Tensor, " step"]
    latents: tuple[int, ...]
    types: tuple[Type, ...]
    kl: Float[Tensor, " latent"]


def by_deviation(description: Description) -> list[int]:
    """Latents by the mean of σ (in units of the prior's) over examples, the smallest first, as the first of PCA."""
    return description.code.standardised().variance.sqrt().mean(0).argsort(stable=True).tolist()


def strips(
    run: Run,
    description: Description | None = None,
    *,
    latents: Sequence[int] | None = None,
    image: Float[Tensor, "..."] | None = None,
    labels: Float[Tensor, " label"] | None = None,
    n: int = 11,
    width: float = 2.5,
) -> Strips:
    """One row a latent, in the order of :func:`by_deviation`, around the code of an image."""
    found = description or describe(run)
    chosen = _chosen(run, latents, found)
    frames = run.traverse(image, labels, latents=chosen, n=n, width=width)
    return _strips(frames, torch.linspace(-width, width, n), chosen, found)


def plane(
    run: Run,
    first: int,
    second: int,
    *,
    image: Float[Tensor, "..."] | None = None,
    labels: Float[Tensor, " label"] | None = None,
    n: int = 9,
    width: float = 2.5,
) -> Float[Tensor, "row column ..."]:
    """Two latents at once, the first down the rows from ``width`` to −``width``, the second along the columns.

    A code that is cartesian in two factors shows one along each axis; a polar one shows rings and rays.
    """
    _inside(run, (first, second))
    if first == second:
        raise ValueError(f"a plane needs two different latents, given {first} twice")
    start = run.start(image, labels)
    values = torch.linspace(-width, width, n)
    codes = start.mean[0].repeat(n, n, 1)
    # upwards is more, as on paper
    codes[:, :, first] = start.in_deviations(0, first, values.flip(0))[:, None]
    codes[:, :, second] = start.in_deviations(0, second, values)
    return run.decode(codes.flatten(0, 1)).unflatten(0, (n, n))


def eigenfaces(
    run: Run, description: Description | None = None, *, n_latents: int = 5, width: float = 2.5, seed: int = 0
) -> Strips:
    """The decoded mean code, and z_mean ± width · e_j for the first latents in the order of their mean σ."""
    found = description or describe(run)
    chosen = by_deviation(found)[:n_latents]
    code = run.encode(run.images(N_MEAN, seed), run.labels(N_MEAN, seed))
    scale = _scale(run, code)
    codes = code.mean.mean(0).repeat(len(chosen), 3, 1)
    for row, latent in enumerate(chosen):
        codes[row, 0, latent] -= width * scale[latent]
        codes[row, 2, latent] += width * scale[latent]
    frames = run.decode(codes.flatten(0, 1)).unflatten(0, (len(chosen), 3))
    return _strips(frames, torch.tensor([-width, 0.0, width]), chosen, found)


def _scale(run: Run, code: Code) -> Float[Tensor, " latent"]:
    """A deviation of every latent's prior, or of the codes where there is none."""
    if code.prior_variance is not None:
        return code.prior_variance.sqrt().mean(0)
    return torch.ones_like(code.mean[0]) if run.has_prior else code.mean.std(0, correction=0)


def _strips(frames: Tensor, values: Tensor, chosen: list[int], found: Description) -> Strips:
    return Strips(frames, values, tuple(chosen), tuple(found.types[latent] for latent in chosen), found.kl[chosen])


def _chosen(run: Run, latents: Sequence[int] | None, found: Description) -> list[int]:
    if latents is None:
        return by_deviation(found)
    _inside(run, latents)
    return list(latents)


def _inside(run: Run, latents: Sequence[int]) -> None:
    last = run.experiment.latents - 1
    for latent in latents:
        if not 0 <= latent <= last:
            raise ValueError(f"latents of {run.path} are numbered 0…{last}, given {latent}")
