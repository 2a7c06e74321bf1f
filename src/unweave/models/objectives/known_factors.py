"""A decoder that is told the factors through a channel of limited capacity (Burgess et al., 2018, §4.3 and Figure 3).

Which factor is worth the first nats of a code, and which the last? Nothing has to be found here: every factor has a
latent of its own, and training only decides how loudly each of them is told.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unweave.models.autoencoder import Architecture
from unweave.models.conditional import LabelledAutoencoder
from unweave.models.labels import centred_labels
from unweave.models.method import MODEL, Batch, Context, Phase, Terms
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.posteriors import Code, Heads
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class KnownFactors(AnnealedVAE):
    """γ |KL(q(z|f) ‖ N(0, I)) − C(t)| with q(z_j|f) = N(a_j f_j, σ_j²): one scale and one noise a factor are learned.

    Needs as many latents as the data have factors or labels. The ``kl`` of a latent in the history is what is told of
    its factor, in nats.
    """

    name: ClassVar[str] = "known_factors"

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "noise", "labels")

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        return {MODEL: self.model(architecture)}

    def model(self, architecture: Architecture) -> "ToldFactors":
        return ToldFactors(architecture)

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL,), self.loss),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        code, reconstructions = context.networks[MODEL](batch["images"], batch["noise"], batch["labels"])
        return self.totals(code, reconstructions, context), code


class ToldFactors(LabelledAutoencoder):
    """A decoder, and a scale and a noise for every factor in the place of an encoder."""

    encoder: "Channels"  # type: ignore[assignment]

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture, None)
        n_factors, given = len(architecture.labels), architecture.latents
        if n_factors != given:
            raise ValueError(
                f"known_factors has a latent for every factor: this data has {n_factors}, and {given} latents were"
                f" given; take --latents {n_factors}"
            )
        self.encoder = Channels(n_factors)

    def code(
        self,
        x: Float[Tensor, "batch ..."],
        noise: Float[Tensor, "batch latent"],
        labels: Float[Tensor, "batch label"] | None = None,
    ) -> Code:
        """What is told of the factors: nothing is looked at of the examples themselves."""
        return self.architecture.posterior.code(self._heads(self.told(labels).to(x.dtype)), noise)

    def prior_of(
        self, labels: Float[Tensor, "batch label"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        """Mean and log-variance of the codes of examples with these factors."""
        heads = self._heads(labels.to(torch.float32))
        return heads["mean"], heads["log_variance"]

    def _heads(self, labels: Float[Tensor, "batch label"]) -> Heads:
        return self.encoder(centred_labels(labels, self.architecture.labels))


class Channels(nn.Module):
    """μ_j = a_j f_j and one log σ_j² for all examples; a_j = σ_j = 1 at first."""

    begins_as_made = ("scale", "log_variance")

    def __init__(self, n_factors: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n_factors))
        self.log_variance = nn.Parameter(torch.zeros(n_factors))

    def forward(self, factors: Float[Tensor, "batch factor"]) -> Heads:
        return {"mean": self.scale * factors, "log_variance": self.log_variance.expand_as(factors)}
