"""The weakly supervised GAN (Shu et al., 2020): generated pairs share what pairs of examples share."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.data.pairings import ChangePairs, Pairing, RandomPairs, RankPairs, SharePairs
from unweave.models.autoencoder import Architecture, Model
from unweave.models.likelihoods import Bernoulli
from unweave.models.method import Batch, Context, Draw, Method, Phase, Terms
from unweave.models.networks.conv import Conv
from unweave.models.networks.gan import Generator, NormalEncoder, PairDiscriminator, RankDiscriminator, generated_pair
from unweave.models.optimisers import Adam
from unweave.models.posteriors import Code, Diagonal
from unweave.shapes import Float, Int, Scalar, Tensor

ENCODER, GENERATOR, DISCRIMINATOR = "encoder", "generator", "discriminator"

Latents = Float[Tensor, "batch latent"]
Images = Float[Tensor, "batch channel height width"]


@dataclass(frozen=True)
class WSGAN(Method):
    """A discriminator sees two images and what they have in common: factors of real pairs, latents of generated ones.

    Latent j stands for factor j, so there are as many latents as factors. ``pairs`` says what is known: ``share``, one
    factor is equal in both ("full sharing"); ``change``, only one may differ; ``rank``, which of the two has more of
    each factor; ``random`` is the control. The encoder learns, on generated images alone, which latents were drawn.
    """

    name: ClassVar[str] = "ws_gan"
    warms_up: ClassVar[bool] = False
    kept: ClassVar[tuple[str, ...]] = (ENCODER, GENERATOR)
    at_once: ClassVar[int] = 8
    pairs: Literal["share", "change", "rank", "random"] = "share"
    nuisances: int = number(
        0, least=0, most=1000, help="further latents for what is no factor; the encoder ignores them"
    )
    hidden: int = number(128, least=1, most=100_000, help="units of the dense layers")
    width: int = number(2, least=1, most=100, help="how many times wider the discriminator is")
    learning_rate: Scalar = number(1e-3, above=0, help="of the generator")
    critic_rate: Scalar = number(1e-3, above=0, help="learning rate of discriminator and encoder")

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "labels") if self.pairs == "rank" else ("images", "group")

    @property
    def reads_labels(self) -> bool:
        return False  # the discriminator does; it is not kept

    @property
    def pairing(self) -> Pairing:
        return {"share": SharePairs, "change": ChangePairs, "rank": RankPairs, "random": RandomPairs}[self.pairs]()

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        both = Draw("normal", 2 * (architecture.latents + self.nuisances))
        return {"z": both, "z_word": Draw("words", 1), "second_z": both, "second_z_word": Draw("words", 1)}

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        shape, latents = architecture.shape, architecture.latents
        kind = RankDiscriminator if self.pairs == "rank" else PairDiscriminator
        wide = [self.width * n for n in gan_channels(self.name, architecture)]
        model = self.model(architecture)
        return {
            ENCODER: model.encoder,
            GENERATOR: model.generator,
            DISCRIMINATOR: kind(shape, latents, wide, self.width * self.hidden),
        }

    def model(self, architecture: Architecture) -> "GeneratorModel":
        shape, latents, channels = architecture.shape, architecture.latents, gan_channels(self.name, architecture)
        return GeneratorModel(
            architecture,
            NormalEncoder(shape, latents, channels, self.hidden),
            Generator(latents + self.nuisances, shape, channels, self.hidden),
        )

    def phases(self) -> tuple[Phase, ...]:
        # the original's three networks; encoder and discriminator learn from the same generated images
        critics, generator = (Adam(rate, beta1=0.5) for rate in (self.critic_rate, self.learning_rate))
        return (
            Phase((DISCRIMINATOR, ENCODER), self.critics_loss, optimiser=critics),
            Phase((GENERATOR,), self.generator_loss, GENERATOR, generator),
        )

    def critics_loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """What discriminator and encoder minimise; each has a gradient of its own part only."""
        networks = context.networks
        latents = self._known_latents(batch)
        first, second, said = self._made(batch["z"], batch["z_word"], latents)
        with torch.no_grad():
            one, other = (torch.sigmoid(image) for image in generated_pair(networks[GENERATOR], first, second))
        with context.beside(one, first):
            mean, deviation = networks[ENCODER](one)
            encoder = -log_density(first[:, :latents], mean, deviation).mean()
            code = normal_code(mean, deviation, torch.zeros_like(mean))
        real, partner = batch["images"].chunk(2)
        told = torch.cat([self._told(batch), said])
        logits = networks[DISCRIMINATOR](torch.cat([real, one]), torch.cat([partner, other]), told)
        truth = (torch.arange(len(logits), device=logits.device) < len(real)).to(logits.dtype)
        discriminator = functional.binary_cross_entropy_with_logits(logits, truth)
        context.beside.join()
        terms = {"loss": discriminator + encoder, DISCRIMINATOR: discriminator, ENCODER: encoder}
        return terms, code

    def generator_loss(self, batch: Batch, context: Context) -> tuple[Terms, None]:
        """How far the discriminator is from taking generated pairs for real ones."""
        networks = context.networks
        first, second, said = self._made(batch["second_z"], batch["second_z_word"], self._known_latents(batch))
        one, other = (torch.sigmoid(image) for image in generated_pair(networks[GENERATOR], first, second))
        logits = networks[DISCRIMINATOR](one, other, said)
        return {GENERATOR: functional.softplus(-logits).mean()}, None

    def _made(
        self, z: Float[Tensor, "batch both"], words: Int[Tensor, "batch 1"], n_known: int
    ) -> tuple[Latents, Latents, Float[Tensor, "batch known"]]:
        """Latents of a generated pair, and what the discriminator is told of it."""
        first, second = z.chunk(2, dim=-1)
        if self.pairs == "rank":
            return first, second, (first > second)[:, :n_known].to(z.dtype)
        group = one_hot((words[:, 0] * n_known) >> 32, n_known, z.dtype)
        if self.pairs != "random":
            known = group if self.pairs == "share" else 1.0 - group
            # nuisances are always drawn anew
            shared = functional.pad(known, (0, z.shape[-1] // 2 - n_known))
            second = shared * first + (1.0 - shared) * second
        return first, second, group

    def _told(self, batch: Batch) -> Float[Tensor, "batch known"]:
        """What the discriminator is told of a pair of examples."""
        if self.pairs == "rank":
            first, second = batch["labels"].chunk(2)
            return (first > second).to(first.dtype)
        return one_hot(batch["group"], self._known_latents(batch), batch["z"].dtype)

    def _known_latents(self, batch: Batch) -> int:
        return batch["z"].shape[-1] // 2 - self.nuisances


def gan_channels(name: str, architecture: Architecture) -> tuple[int, ...]:
    """The channels of a GAN's convolutions; other networks, and latents that are no factors, are refused."""
    network, factors, latents = architecture.network, len(architecture.labels), architecture.latents
    if not isinstance(network, Conv):
        raise ValueError(f"{name} makes images by convolutions: take the network conv, not {network.name}")
    if len(architecture.shape) != 3:
        raise ValueError(f"{name} makes images, and these examples have the shape {architecture.shape}: take images")
    network.check(architecture.shape)
    if factors not in (0, latents):
        raise ValueError(
            f"{name} ties every latent to a factor, and there are {factors} factors: set latents to {factors},"
            f" not {latents}, and objective.nuisances to what is to be learned besides"
        )
    return network.channels


class GeneratorModel(Model):
    """A generator with the encoder that inverts it."""

    def __init__(self, architecture: Architecture, encoder: NormalEncoder, generator: Generator) -> None:
        super().__init__()
        # pixels are what the generator's sigmoid says, whatever likelihood stands in the settings
        self.architecture, self.log_noise = replace(architecture, likelihood=Bernoulli()), None
        self.encoder, self.generator = encoder, generator

    @property
    def decoder(self) -> Generator:
        return self.generator

    def code(self, x: Images, noise: Latents) -> Code:
        """Mean, variance and sample of every latent but nuisances; the KL is that to the latents' distribution."""
        mean, deviation = self.encoder(x)
        return normal_code(mean, deviation, noise)

    def decode(self, code: Latents) -> Images:
        """The image that is generated from latents; nuisances are 0 where they are not given."""
        return torch.sigmoid(self.generator(code))


def log_density(z: Latents, mean: Latents, deviation: Latents) -> Float[Tensor, " batch"]:
    """log N(z; μ, diag σ²)."""
    return -(0.5 * ((z - mean) / deviation).square() + deviation.log() + 0.5 * math.log(2.0 * math.pi)).sum(-1)


def one_hot(numbers: Tensor, n: int, dtype: torch.dtype) -> Float[Tensor, "batch n"]:
    """One where the column is the number."""
    return (numbers[..., None] == torch.arange(n, device=numbers.device)).to(dtype)


def normal_code(mean: Latents, deviation: Latents, noise: Latents) -> Code:
    """The code of a Gaussian posterior, a standard deviation each."""
    return Diagonal().code({"mean": mean, "log_variance": 2.0 * deviation.log()}, noise)
