"""FactorVAE (Kim & Mnih, 2018): a discriminator estimates the total correlation of the sampled codes."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.models.layers import Dense
from unweave.models.objectives.objective import Context, Discriminator, Objective, Terms, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Int, Scalar, Tensor


@dataclass(frozen=True)
class FactorVAE(Objective):
    """KL + γ TC, TC = E[logit₀ − logit₁] of a discriminator that tells codes from codes with shuffled dimensions.

    ``protocol="paper"`` shuffles the codes of a second batch. ``protocol="study"`` does what the published study's code
    did: it shuffles the same batch, and counts every iteration as two steps, so 300,000 steps are 150,000 updates.
    """

    name: ClassVar[str] = "factor_vae"
    has_discriminator: ClassVar[bool] = True
    gamma: Scalar = 10.0
    protocol: Literal["paper", "study"] = "paper"
    learning_rate: Scalar = 1e-4
    width: int = 1000
    depth: int = 6

    @property
    def needs_second_batch(self) -> bool:
        return self.protocol == "paper"

    def iterations(self, steps: int) -> int:
        return steps if self.protocol == "paper" else (steps + 1) // 2

    def terms(self, code: Code, context: Context) -> Terms:
        assert context.discriminator is not None
        kl = total_kl(code)
        logits = context.discriminator(code.sampled)
        # TC ≈ E log D/(1 − D) = E[logit₀ − logit₁], class 0 being the true joint
        correlation = (logits[:, 0] - logits[:, 1]).mean()
        return {"regulariser": kl + self.gamma * correlation, "kl": kl, "total_correlation": correlation}

    def discriminator(self, latents: int) -> nn.Module:
        return CodeDiscriminator(latents, self.width, self.depth)

    def discriminator_loss(
        self,
        discriminator: Discriminator,
        joint: Float[Tensor, "batch latent"],
        other: Float[Tensor, "batch latent"],
        permutation: Int[Tensor, "batch latent"],
    ) -> Float[Tensor, ""]:
        shuffled = torch.gather(other, 0, permutation)
        # −½ (E log p₀(z) + E log p₁(z_perm))
        true, false = (functional.log_softmax(discriminator(codes), dim=-1) for codes in (joint, shuffled))
        return -0.5 * (true[:, 0].mean() + false[:, 1].mean())


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
