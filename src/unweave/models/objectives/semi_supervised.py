"""β-VAE with a few labels (Locatello et al., 2020): a regulariser on the mean codes of examples with known factors.

The first latents are to be the labels, one each. ``protocol="study"`` does what disentanglement_lib does: it sums over
the batch, takes labels as they are (``l2``, ``cov``) or divides them by their number of values (``xent``), and ``l2``
without a learned scale compares every code with every label of the batch. By default all of that is mended: means over
the batch, labels from 0 to 1, every code with its own label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.models.autoencoder import Architecture
from unweave.models.labels import constants, scaled_labels
from unweave.models.method import MODEL, Batch, Context, Draw, Phase, Terms
from unweave.models.objectives.ivae import OTHERS
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor

SUPERVISION = "supervision"
"""The name of the regulariser's own weights among the networks."""

Regulariser = Literal["l2", "xent", "cov", "embed"]
Annealing = Literal["fixed", "linear", "fine_tuning"]
Protocol = Literal["paper", "study"]


@dataclass(frozen=True)
class SemiVAE(Objective):
    """β KL + γ R(mean codes, labels) on a second batch of ``labelled`` examples, which the seed chooses.

    ``labels="random"`` is the control: every labelled example is told the labels of another one.
    """

    name: ClassVar[str] = "semi_vae"
    regulariser: Regulariser = "xent"
    beta: Scalar = number(4.0, least=0, help="weight of the KL")
    gamma: Scalar = number(100.0, least=0, help="weight of the supervision")
    labelled: int = number(1000, least=1, most=10**9, help="examples whose labels are known")
    annealing: Annealing = "fixed"
    threshold: int = number(10_000, least=1, most=10**12, help="steps until gamma is reached, linearly or all at once")
    learned_scale: bool = True
    sigma: float = number(1.0, above=0, help="of embed: how sharply neighbouring values are told apart")
    learned_sigma: bool = False
    ordered: bool = False
    protocol: Protocol = "paper"
    labels: Literal["own", "random"] = "own"

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "noise", "labelled_images", "labelled_labels")

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        return {} if self.labels == "own" else {OTHERS: Draw("permutation", 1)}

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        supervision = Supervision(self, architecture)
        return super().networks(architecture) | ({SUPERVISION: supervision} if self.learns_more else {})

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL, SUPERVISION) if self.learns_more else (MODEL,), self.loss),)

    @property
    def learns_more(self) -> bool:
        """Whether the regulariser has weights of its own."""
        return self.regulariser == "embed" or (self.regulariser == "l2" and self.learned_scale)

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": self.beta * kl, "kl": kl}

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        terms, code = super().loss(batch, context)
        model = context.networks[MODEL]
        regulariser = context.networks[SUPERVISION] if self.learns_more else Supervision(self, model.architecture)
        labels = batch["labelled_labels"] if self.labels == "own" else batch["labelled_labels"][batch[OTHERS][:, 0]]
        supervision = regulariser(model.encode(batch["labelled_images"]).mean, labels)
        # loss = reconstruction + β KL + γ(t) R
        loss = terms["loss"] + self.weight(context.step).to(supervision.dtype) * supervision
        return terms | {"loss": loss, "supervision": supervision}, code

    def weight(self, step: int | Tensor) -> Float[Tensor, ""]:
        """γ at a step: fixed, rising linearly up to the threshold, or nothing up to and with it."""
        now = torch.as_tensor(step)
        shares = {
            "fixed": torch.ones((), device=now.device),
            "linear": torch.clamp(now / self.threshold, max=1.0),
            "fine_tuning": (now > self.threshold).float(),
        }
        return self.gamma * shares[self.annealing]


class Supervision(nn.Module):
    """The regulariser and what it learns beside the model: a scale, or a place for every value of every label."""

    def __init__(self, method: SemiVAE, architecture: Architecture) -> None:
        super().__init__()
        _check(method, architecture)
        self.method, self.sizes = method, architecture.labels
        if method.regulariser == "l2" and method.learned_scale:
            self.scale_offset = nn.Parameter(torch.zeros(()))
        if method.regulariser == "embed":
            sizes = [2] * len(self.sizes) if method.ordered else self.sizes
            self.place_offsets = nn.ParameterList([nn.Parameter(torch.zeros(size)) for size in sizes])
            if method.learned_sigma:
                self.sigma_offset = nn.Parameter(torch.zeros(len(self.sizes)))

    def forward(self, means: Float[Tensor, "batch latent"], labels: Float[Tensor, "batch label"]) -> Float[Tensor, ""]:
        """R for the means of some labelled examples."""
        codes = means[:, : len(self.sizes)]
        if self.method.regulariser == "embed":
            return embedding_loss(codes, labels, self.places(), self.sigmas())
        if self.method.regulariser == "cov":
            return covariance_penalty(means, self.targets(labels))
        total = self.distances(codes, self.targets(labels)).sum()
        return total if self.method.protocol == "study" else total / len(means)

    def targets(self, labels: Float[Tensor, "batch label"]) -> Float[Tensor, "batch label"]:
        """What codes are compared with: labels from 0 to 1, or as the study took them."""
        if self.method.protocol == "paper":
            return scaled_labels(labels, self.sizes)
        squashed = self.method.regulariser == "xent" or not self.method.learned_scale
        if self.method.regulariser == "cov" or not squashed:
            return labels
        return labels / constants(tuple(size or 1 for size in self.sizes), labels.dtype, labels.device)

    def distances(self, codes: Float[Tensor, "batch label"], targets: Float[Tensor, "batch label"]) -> Tensor:
        """How far every code is from its label; by the study's l2 without a scale, from everyone's."""
        if self.method.regulariser == "xent":
            # −y log sigmoid(z) − (1 − y) log(1 − sigmoid(z))
            return functional.binary_cross_entropy_with_logits(codes, targets, reduction="none")
        if self.method.learned_scale:
            return ((1.0 + self.scale_offset) * codes - targets).square()
        squashed = torch.sigmoid(codes)
        if self.method.protocol == "study":
            return (squashed[:, None] - targets[None]).square()
        return (squashed - targets).square()

    def places(self) -> list[Float[Tensor, " _"]]:
        """Where every value of every label lies on its latent: from −1 to 1 at first."""
        if self.method.ordered:
            # e_k = slope k + bias
            return [
                (2.0 / max(1, size - 1) + offsets[0]) * torch.arange(size, device=offsets.device) + offsets[1] - 1.0
                for size, offsets in zip(self.sizes, self.place_offsets)
            ]
        return [torch.linspace(-1.0, 1.0, len(one), device=one.device) + one for one in self.place_offsets]

    def sigmas(self) -> Float[Tensor, " label"]:
        """How sharply the values of each label are told apart."""
        fixed = self.place_offsets[0].new_full((len(self.sizes),), self.method.sigma)
        return fixed + self.sigma_offset if self.method.learned_sigma else fixed


def covariance_penalty(
    codes: Float[Tensor, "batch latent"], targets: Float[Tensor, "batch label"]
) -> Float[Tensor, ""]:
    """Σ over latents i and labels j ≠ i of Cov(z_i, y_j)², divided by the batch: no latent follows another's label."""
    covariance = (codes - codes.mean(0)).T @ (targets - targets.mean(0)) / len(codes)
    return (
        (covariance - covariance * torch.eye(*covariance.shape, dtype=codes.dtype, device=codes.device)).square().sum()
    )


def embedding_loss(
    codes: Float[Tensor, "batch label"],
    labels: Float[Tensor, "batch label"],
    places: Sequence[Float[Tensor, " _"]],
    sigmas: Float[Tensor, " label"],
) -> Float[Tensor, ""]:
    """Σ over labels of the mean cross-entropy of softmax(−((z − e_k) σ)²) with the value k of the label."""
    losses = []
    for column, (place, sigma) in enumerate(zip(places, sigmas.unbind())):
        logits = -((codes[:, column, None] - place) * sigma).square()
        losses.append(functional.cross_entropy(logits, labels[:, column].long()))
    return torch.stack(losses).sum()


def _check(method: SemiVAE, architecture: Architecture) -> None:
    sizes = architecture.labels
    if not sizes:
        raise ValueError("semi_vae needs data with labels, and this has none")
    if len(sizes) > architecture.latents:
        raise ValueError(
            f"semi_vae gives every label a latent of its own: {len(sizes)} labels need at least as many latents, not"
            f" {architecture.latents}; set latents to {len(sizes)} or more"
        )
    if method.regulariser in ("embed", "xent") and 0 in sizes:
        raise ValueError(
            f"the regulariser {method.regulariser} needs labels with a number of values each; label"
            f" {sizes.index(0) + 1} of {len(sizes)} is a continuous number. Choose l2 or cov."
        )
