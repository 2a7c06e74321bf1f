"""What the decoder of a run does with codes: its directions, its losses, and whether the encoder inverts it."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave import rng
from unweave.evaluation.describe import reconstruction_losses
from unweave.metrics.estimators.assignment import largest_assignment
from unweave.metrics.geometry.consistency import self_consistency
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.jacobian import decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.metrics.polarised.rate_distortion import RateDistortion, rate_distortion
from unweave.metrics.polarised.reconstruction import ReconstructionSplit, reconstruction_split
from unweave.models.posteriors import Code
from unweave.shapes import Bool, Float, Tensor
from unweave.training.run import Run

N_DRAWS = 4


@dataclass(frozen=True)
class Decoder:
    """DtO and IMA contrast over the latents in use; None where no latent is.

    ``dto_chance`` is the DtO of random rotations of the same size: near it, the decoder's directions are not
    aligned with its latents at all. ``rate_distortion`` is at sampled codes, as in the ELBO.
    """

    dto: float | None
    dto_chance: float | None
    degenerate: float | None
    ima: float | None
    n_jacobians: int
    consistency: float
    rate_distortion: RateDistortion
    split: ReconstructionSplit


def look_at_decoder(
    run: Run,
    images: Float[Tensor, "sample ..."],
    code: Code,
    used: Bool[Tensor, " latent"],
    *,
    labels: Float[Tensor, "sample label"] | None = None,
    n_jacobians: int = 256,
    seed: int = 0,
) -> Decoder:
    """Measure the decoder at the codes of some images; the Jacobians of the decoded image at the first of them."""
    run.require_decoder()
    means = code.mean[:n_jacobians]
    latents = used.nonzero()[:, 0].tolist()
    gram = decoder_gram(run.model.decode, means.to(run.device), latents=latents).cpu() if latents else None
    aligned = None if gram is None else dto(gram)
    contrast = None if gram is None else ima_contrast(gram)
    outputs = run.outputs(code.sampled)
    return Decoder(
        None if aligned is None else aligned.score,
        None if aligned is None else random_dto(int(used.sum()), seed),
        None if aligned is None else aligned.degenerate,
        None if contrast is None else contrast.score,
        len(means),
        self_consistency(code.mean, run.encode(run.decode(code.mean), labels).mean, active=used).score,
        rate_distortion(code.kl, reconstruction_losses(run, images, outputs)),
        _split(run, images[:n_jacobians], None if labels is None else labels[:n_jacobians], seed),
    )


def random_dto(n_latents: int, seed: int = 0, n: int = 200) -> float:
    """Mean distance of random rotations to the nearest signed permutation."""
    drawn = rng.normal(seed, rng.Purpose.RESAMPLE, 0, n, n_latents**2).double().view(n, n_latents, n_latents)
    sizes = torch.linalg.qr(drawn).Q.abs().numpy()
    matched = torch.tensor([size[range(n_latents), largest_assignment(size)].sum() for size in sizes])
    # ‖V − P‖² = 2 (d − Σ_matched |V|)
    return float((2.0 * (n_latents - matched)).clamp(min=0.0).sqrt().mean())


def _split(run: Run, images: Tensor, labels: Tensor | None, seed: int) -> ReconstructionSplit:
    draws: list[Any] = [run.encode(images, labels, seed=seed + draw) for draw in range(N_DRAWS)]
    at_samples = torch.stack([run.decode(drawn.sampled) for drawn in draws])
    return reconstruction_split(images, run.decode(draws[0].mean), at_samples)
