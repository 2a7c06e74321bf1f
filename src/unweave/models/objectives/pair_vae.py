"""Ada-GVAE, Ada-ML-VAE (Locatello et al., 2020), GVAE (Hosoya, 2019) and ML-VAE (Bouchacourt et al., 2018).

What two images share is coded once: the two posteriors of a shared latent are replaced by their average.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from unweave.config import number
from unweave.data.pairings import Changes, Pairing, RandomPairs
from unweave.models.autoencoder import Architecture
from unweave.models.method import Batch, Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code, Diagonal, Heads, Posterior
from unweave.shapes import Bool, Float, Scalar, Tensor

Average = Literal["gvae", "ml_vae"]
Pair = tuple[Float[Tensor, "pair latent"], ...]
"""One of the two examples each."""


@dataclass(frozen=True)
class AdaGVAE(Objective):
    """β KL of posteriors that agree in the latents which a pair shares; reconstruction and KL averaged over the pair.

    Which latents changed is guessed: those whose two posteriors differ more than half as much as any. A pair differs in
    ``changes`` random factors, or in one and in 1 … all but one, half of the pairs each. ``pairs="random"`` is the
    control: partners that have nothing to do with each other.
    """

    name: ClassVar[str] = "ada_gvae"
    average: ClassVar[Average] = "gvae"
    beta: Scalar = number(1.0, least=0, help="weight of the KL")
    changes: int | None = number(None, least=1, most=1000, help="factors that change; else one in half of the pairs")
    pairs: Literal["changes", "random"] = "changes"

    @property
    def pairing(self) -> Pairing:
        return RandomPairs() if self.pairs == "random" else Changes(self.changes, often_one=self.changes is None)

    @property
    def training_posterior(self) -> Posterior:
        return SharedCode(self.average)

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": self.beta * kl, "kl": kl}


@dataclass(frozen=True)
class AdaMLVAE(AdaGVAE):
    """Ada-GVAE with the product of the posteriors in place of their average."""

    name: ClassVar[str] = "ada_ml_vae"
    average: ClassVar[Average] = "ml_vae"


@dataclass(frozen=True)
class GVAE(AdaGVAE):
    """Which factor changed is told: latent number k belongs to factor k, and every other latent is shared."""

    name: ClassVar[str] = "gvae"

    @property
    def training_posterior(self) -> Posterior:
        return ToldCode(self.average)

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "noise", "group")

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        factors, latents = len(architecture.labels), architecture.latents
        if factors > latents:
            raise ValueError(
                f"{self.name} gives every factor a latent of its own: {factors} factors need at least as many latents,"
                f" not {latents}; set latents to {factors} or more"
            )
        return super().networks(architecture)

    def posterior_noise(self, batch: Batch) -> Float[Tensor, "*any"]:
        """The noise, and beside it the number of the factor that changed in each pair."""
        told = batch["group"].to(batch["noise"].dtype)
        return torch.cat([batch["noise"], torch.cat([told, told], dim=-1)[..., None]], dim=-1)


@dataclass(frozen=True)
class MLVAE(GVAE):
    """GVAE with the product of the posteriors in place of their average."""

    name: ClassVar[str] = "ml_vae"
    average: ClassVar[Average] = "ml_vae"


@dataclass(frozen=True)
class SharedCode(Posterior):
    """A diagonal posterior over pairs, firsts in the batch's first half: latents that hardly differ are averaged."""

    average: Average = "gvae"
    name: ClassVar[str] = "shared"

    def heads(self, latents: int) -> dict[str, int]:
        return Diagonal().heads(latents)

    def code(self, heads: Heads, noise: Float[Tensor, "batch latent"]) -> Code:
        return shared_code(heads, noise, changed_latents(heads), self.average)


@dataclass(frozen=True)
class ToldCode(SharedCode):
    """The same where it is known which latent changed: its number stands in a column after the noise."""

    name: ClassVar[str] = "told"
    n_told: ClassVar[int] = 1

    def code(self, heads: Heads, noise: Float[Tensor, "batch column"]) -> Code:
        latent = torch.arange(noise.shape[-1] - 1, device=noise.device)
        changed = noise[: len(noise) // 2, -1:] == latent
        return shared_code(heads, noise[:, :-1], changed, self.average)


def shared_code(
    heads: Heads, noise: Float[Tensor, "batch latent"], changed: Bool[Tensor, "pair latent"], average: Average
) -> Code:
    """The code of pairs whose latents are averaged but for those that changed."""
    means, log_variances = heads["mean"].chunk(2), heads["log_variance"].chunk(2)
    mean, log_variance = AVERAGES[average](means, log_variances)
    chosen = {
        "mean": torch.cat([torch.where(changed, own, mean) for own in means]),
        "log_variance": torch.cat([torch.where(changed, own, log_variance) for own in log_variances]),
    }
    return Diagonal().code(chosen, noise)


@torch.no_grad()
def changed_latents(heads: Heads) -> Bool[Tensor, "pair latent"]:
    """Latents whose posteriors differ at least half way between a pair's least and greatest difference."""
    (mean1, mean2), (log_variance1, log_variance2) = heads["mean"].chunk(2), heads["log_variance"].chunk(2)
    # δ = 2 KL(q₁ ‖ q₂) = σ₁²/σ₂² + (μ₂ − μ₁)²/σ₂² − 1 + log σ₂² − log σ₁²
    ratio = torch.exp(log_variance1 - log_variance2)
    difference = ratio + (mean2 - mean1).square() * torch.exp(-log_variance2) - 1.0 + log_variance2 - log_variance1
    least, greatest = difference.amin(-1, keepdim=True), difference.amax(-1, keepdim=True)
    # all averaged where every difference is the same
    return (difference >= 0.5 * (least + greatest)) & (greatest > least)


def averaged(means: Pair, log_variances: Pair) -> Pair:
    """GVAE: the mean of μ, and the mean of σ²."""
    # log ½(σ₁² + σ₂²)
    return 0.5 * (means[0] + means[1]), torch.logaddexp(*log_variances) - torch.log(torch.full_like(means[0], 2.0))


def multiplied(means: Pair, log_variances: Pair) -> Pair:
    """ML-VAE: σ² = 2σ₁²σ₂²/(σ₁² + σ₂²), and means weighted by their precision."""
    log_variance = -averaged(means, (-log_variances[0], -log_variances[1]))[1]
    # μ = (μ₁σ₂² + μ₂σ₁²)/(σ₁² + σ₂²): the weight of μ₁ is sigmoid(log σ₂² − log σ₁²)
    weight = torch.sigmoid(log_variances[1] - log_variances[0])
    return weight * means[0] + (1.0 - weight) * means[1], log_variance


AVERAGES = {"gvae": averaged, "ml_vae": multiplied}
