"""FactorVAE (Kim & Mnih, 2018): a discriminator estimates the total correlation of the sampled codes."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.models.autoencoder import Architecture
from unweave.models.layers import Dense
from unweave.models.method import Batch, Context, Phase, Terms
from unweave.models.objectives.objective import MODEL, Objective, total_kl
from unweave.models.optimisers import Adam
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor

DISCRIMINATOR = "discriminator"


@dataclass(frozen=True)
class FactorVAE(Objective):
    """KL + γ TC, TC = E[logit₀ − logit₁] of a discriminator that tells codes from codes with shuffled dimensions.

    ``protocol="paper"`` shuffles the codes of a second batch. ``protocol="study"`` does what the published study's code
    did: it shuffles the same batch, and counts every iteration as two steps, so 300,000 steps are 150,000 updates.
    """

    name: ClassVar[str] = "factor_vae"
    gamma: Scalar = number(10.0, least=0, help="weight of the total correlation")
    protocol: Literal["paper", "study"] = "paper"
    learning_rate: Scalar = number(1e-4, above=0, help="of the discriminator")
    width: int = number(1000, least=1, most=10_000, help="units of the discriminator's layers")
    depth: int = number(6, least=1, most=20, help="layers of the discriminator")

    @property
    def batch(self) -> tuple[str, ...]:
        second = ("second_images", "second_noise") if self.protocol == "paper" else ()
        return ("images", "noise", *second, "permutation")

    def iterations(self, steps: int) -> int:
        return steps if self.protocol == "paper" else (steps + 1) // 2

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        discriminator = CodeDiscriminator(architecture.latents, self.width, self.depth)
        return super().networks(architecture) | {DISCRIMINATOR: discriminator}

    def phases(self) -> tuple[Phase, ...]:
        encodes = ("second_images", "second_noise") if self.protocol == "paper" else None
        optimiser = Adam(self.learning_rate, beta1=0.5, beta2=0.9)
        return (
            *super().phases(),
            Phase((DISCRIMINATOR,), self.discriminator_loss, DISCRIMINATOR, optimiser, encodes=encodes),
        )

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        logits = context.networks[DISCRIMINATOR](code.sampled)
        # TC ≈ E log D/(1 − D) = E[logit₀ − logit₁], class 0 being the true joint
        correlation = (logits[:, 0] - logits[:, 1]).mean()
        return {"regulariser": kl + self.gamma * correlation, "kl": kl, "total_correlation": correlation}

    def discriminator_loss(self, batch: Batch, context: Context) -> tuple[Terms, None]:
        """What the discriminator minimises; no gradient of it reaches the encoder."""
        assert context.code is not None
        joint = other = context.code.sampled
        if self.protocol == "paper":
            with torch.no_grad():
                other = context.networks[MODEL].code(batch["second_images"], batch["second_noise"]).sampled
        shuffled = torch.gather(other, 0, batch["permutation"])
        # −½ (E log p₀(z) + E log p₁(z_perm))
        discriminator = context.networks[DISCRIMINATOR]
        true, false = (functional.log_softmax(discriminator(codes), dim=-1) for codes in (joint, shuffled))
        return {DISCRIMINATOR: -0.5 * (true[:, 0].mean() + false[:, 1].mean())}, None


class CodeDiscriminator(nn.Module):
    """Six layers of a thousand leaky rectifiers, and two logits."""

    def __init__(self, latents: int, width: int, depth: int) -> None:
        super().__init__()
        widths = [width] * depth
        self.layers = nn.ModuleList(map(Dense, [latents, *widths[:-1]], widths))
        self.output = Dense(width, 2)

    def forward(self, codes: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch 2"]:
        for layer in self.layers:
            codes = functional.leaky_relu(layer(codes), 0.2)
        return self.output(codes)
