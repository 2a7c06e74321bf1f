"""Restricted labelling (Shu et al., 2020): a GAN whose first latents are the labels of some factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.models.autoencoder import Architecture
from unweave.models.labels import Sizes, standardised_labels
from unweave.models.method import Batch, Context, Draw, Method, Phase, Terms
from unweave.models.networks.gan import Generator, LabelDiscriminator, NormalEncoder
from unweave.models.objectives.ivae import OTHERS
from unweave.models.objectives.ws_gan import (
    DISCRIMINATOR,
    ENCODER,
    GENERATOR,
    GeneratorModel,
    gan_channels,
    log_density,
    normal_code,
)
from unweave.models.optimisers import Adam
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor


@dataclass(frozen=True)
class LabelGAN(Method):
    """A discriminator sees an image and the labels of some factors; these labels are latents of generated images.

    Latent j stands for factor j: of a ``known`` factor it is the label, from −√3 to √3 or nearly so, and else noise, as
    nuisances are. There are no pairs. ``labels="random"`` is the control: images with the labels of others.
    """

    name: ClassVar[str] = "label_gan"
    warms_up: ClassVar[bool] = False
    kept: ClassVar[tuple[str, ...]] = (ENCODER, GENERATOR)
    at_once: ClassVar[int] = 8
    known: tuple[int, ...] = number(
        (), least=0, most=999, entries=(0, 1000), help="numbers of the factors whose labels are told, from 0; else all"
    )
    labels: Literal["own", "random"] = "own"
    nuisances: int = number(
        0, least=0, most=1000, help="further latents for what is no factor; the encoder ignores them"
    )
    hidden: int = number(128, least=1, most=100_000, help="units of the dense layers")
    width: int = number(1, least=1, most=100, help="how many times wider the discriminator is")
    learning_rate: Scalar = number(1e-3, above=0, help="of the generator")
    critic_rate: Scalar = number(1e-3, above=0, help="learning rate of discriminator and encoder")

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "labels")

    @property
    def reads_labels(self) -> bool:
        return False  # the discriminator does; it is not kept

    @property
    def samples_by_label(self) -> bool:
        return True

    def labels_of_samples(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for place, name in enumerate(names) if not self.known or place in self.known)

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        drawn = Draw("normal", architecture.latents + self.nuisances)
        return {"z": drawn, "second_z": drawn} | ({} if self.labels == "own" else {OTHERS: Draw("permutation", 1)})

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        model, wide = self.model(architecture), [self.width * n for n in gan_channels(self.name, architecture)]
        discriminator = LabelDiscriminator(architecture.shape, architecture.labels, wide, self.width * self.hidden)
        return {ENCODER: model.encoder, GENERATOR: model.generator, DISCRIMINATOR: discriminator}

    def model(self, architecture: Architecture) -> "LabelledGenerator":
        shape, latents, channels = architecture.shape, architecture.latents, gan_channels(self.name, architecture)
        _check(self, architecture.labels)
        return LabelledGenerator(
            architecture,
            NormalEncoder(shape, latents, channels, self.hidden),
            Generator(latents + self.nuisances, shape, channels, self.hidden),
            self.known,
        )

    def phases(self) -> tuple[Phase, ...]:
        # here the generator comes first, as in the original
        critics, generator = (Adam(rate, beta1=0.5) for rate in (self.critic_rate, self.learning_rate))
        return (
            Phase((GENERATOR,), self.generator_loss, GENERATOR, generator),
            Phase((DISCRIMINATOR, ENCODER), self.critics_loss, optimiser=critics),
        )

    def generator_loss(self, batch: Batch, context: Context) -> tuple[Terms, None]:
        """How far the discriminator is from taking generated images, with the labels they are made of, for real."""
        told, networks = self._told(batch, context), context.networks
        made = torch.sigmoid(networks[GENERATOR](self._latents(batch["second_z"], told)))
        return {GENERATOR: functional.softplus(-networks[DISCRIMINATOR](made, told)).mean()}, None

    def critics_loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """What discriminator and encoder minimise; each has a gradient of its own part only."""
        told, networks, real = self._told(batch, context), context.networks, batch["images"]
        z = self._latents(batch["z"], told)
        with torch.no_grad():
            made = torch.sigmoid(networks[GENERATOR](z))
        logits = networks[DISCRIMINATOR](torch.cat([real, made]), torch.cat([told, told]))
        truth = (torch.arange(len(logits), device=logits.device) < len(real)).to(logits.dtype)
        discriminator = functional.binary_cross_entropy_with_logits(logits, truth)
        mean, deviation = networks[ENCODER](made)
        encoder = -log_density(z[:, : mean.shape[-1]], mean, deviation).mean()
        terms = {"loss": discriminator + encoder, DISCRIMINATOR: discriminator, ENCODER: encoder}
        return terms, normal_code(mean, deviation, torch.zeros_like(mean))

    def _told(self, batch: Batch, context: Context) -> Float[Tensor, "batch label"]:
        """The labels, of mean 0 and deviation 1 over their values; 0 for those that are not known."""
        labels = batch["labels"] if self.labels == "own" else batch["labels"][batch[OTHERS][:, 0]]
        return standardised_labels(labels, context.networks[DISCRIMINATOR].sizes) * known_mask(labels, self.known)

    def _latents(self, z: Float[Tensor, "batch any"], told: Float[Tensor, "batch label"]) -> Float[Tensor, "batch any"]:
        """Labels where they are known, and noise elsewhere."""
        after = (0, z.shape[-1] - told.shape[-1])
        return functional.pad(told, after) + z * (1.0 - functional.pad(known_mask(told, self.known), after))


class LabelledGenerator(GeneratorModel):
    """A generator whose latents are labels where these are known, with the encoder that inverts it."""

    def __init__(
        self, architecture: Architecture, encoder: NormalEncoder, generator: Generator, known: tuple[int, ...]
    ) -> None:
        super().__init__(architecture, encoder, generator)
        self.known = known

    def prior_of(self, labels: Float[Tensor, "batch label"]) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the latents of some labels: certain where they are known, else of N(0, 1)."""
        mask = known_mask(labels, self.known)
        mean = standardised_labels(labels, self.architecture.labels) * mask
        return mean, torch.log(1.0 - mask).expand_as(mean)


def known_mask(labels: Float[Tensor, "batch label"], known: tuple[int, ...]) -> Float[Tensor, " label"]:
    """One for the labels that are known, and 0 for the others."""
    numbers = torch.arange(labels.shape[-1], device=labels.device)
    if not known:
        return torch.ones_like(numbers, dtype=labels.dtype)
    return sum(((numbers == one).to(labels.dtype) for one in {*known}), torch.zeros_like(labels[0]))


def _check(method: LabelGAN, sizes: Sizes) -> None:
    if 0 in sizes:
        raise ValueError(
            f"label_gan needs labels with a number of values each; label {sizes.index(0) + 1} of {len(sizes)} is a"
            " continuous number"
        )
    beyond = [one for one in method.known if sizes and one >= len(sizes)]
    if beyond:
        raise ValueError(f"objective.known names factor {beyond[0]}, and there are {len(sizes)}: 0 to {len(sizes) - 1}")
