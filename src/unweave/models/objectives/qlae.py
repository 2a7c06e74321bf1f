"""QLAE, the quantised-latent autoencoder (Hsu et al., 2023): a few learned values a latent, and strong weight decay."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from unweave.config import number
from unweave.models.autoencoder import Architecture, Encoder, Model
from unweave.models.method import MODEL, Batch, Context, Method, Phase, Terms
from unweave.models.optimisers import AdamW
from unweave.models.posteriors import Code, Deterministic, Posterior
from unweave.shapes import Float, Scalar, Tensor

Codes = Float[Tensor, "batch latent"]


@dataclass(frozen=True)
class QLAE(Method):
    """reconstruction / pixels + λ_q (sg[z] − q)² + λ_c (z − sg[q])², averaged over latents; q is the nearest value.

    Weights are decayed and their gradients clipped; biases and values follow plain Adam. The authors take twice as many
    latents as there are factors, batches of 128 and 200,000 steps.
    """

    name: ClassVar[str] = "qlae"
    warms_up: ClassVar[bool] = False
    posterior: ClassVar[Posterior] = Deterministic()
    measured: ClassVar[Mapping[str, Mapping[str, Any]]] = {"infomec": {"discrete": True}}
    values: int = number(10, least=2, most=10_000, help="values that a latent can take")
    quantisation: Scalar = number(0.01, least=0, help="how strongly values follow the codes")
    commitment: Scalar = number(0.01, least=0, help="how strongly codes keep to their values")
    learning_rate: Scalar = number(1e-3, above=0, most=1e6, help="size of a step")
    weight_decay: float = number(0.1, least=0, most=1e6, help="of the weights; the authors take 0.001 for MPI3D")
    clip: float = number(1.0, above=0, most=1e30, help="largest size of each entry of a weight's gradient")

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images",)

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        return {MODEL: self.model(architecture)}

    def model(self, architecture: Architecture) -> "QuantisedAutoencoder":
        return QuantisedAutoencoder(architecture, self.values)

    def phases(self) -> tuple[Phase, ...]:
        optimiser = AdamW(self.learning_rate, weight_decay=self.weight_decay, clip=self.clip)
        return (Phase((MODEL,), self.loss, optimiser=optimiser),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """Every named term, ``loss`` itself among them; the history has the reconstruction summed over pixels."""
        images = batch["images"]
        continuous, quantised, reconstructions = context.networks[MODEL](images)
        reconstruction = reconstructions.mean()
        quantisation = (continuous.detach() - quantised).square().mean()
        commitment = (continuous - quantised.detach()).square().mean()
        loss = reconstruction / math.prod(images.shape[1:])
        loss = loss + self.quantisation * quantisation + self.commitment * commitment
        terms = {"loss": loss, "reconstruction": reconstruction, "quantisation": quantisation, "commitment": commitment}
        return terms, certain(quantised)


class Quantiser(nn.Module):
    """Every latent to the nearest of its own learned values; of two equally near ones to the first."""

    begins_as_made = ("values",)

    def __init__(self, latents: int, n_values: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.linspace(-0.5, 0.5, n_values).repeat(latents, 1))

    def forward(self, codes: Codes) -> Codes:
        nearest = (codes.detach()[..., None] - self.values.detach()).abs().argmin(-1, keepdim=True)
        # by a 0/1 mask: the gradient of a gather adds up in no fixed order on a GPU
        chosen = nearest == torch.arange(self.values.shape[-1], device=codes.device)
        return torch.where(chosen, self.values, 0.0).sum(-1)


class QuantisedAutoencoder(Model):
    """An autoencoder whose decoder sees quantised codes only; gradients pass as if the quantiser were not there."""

    def __init__(self, architecture: Architecture, n_values: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoder = Encoder(architecture)
        self.quantiser = Quantiser(architecture.latents, n_values)
        self.decoder = architecture.network.decoder(architecture.latents, architecture.shape)
        self.log_noise = nn.Parameter(torch.zeros(())) if architecture.likelihood.learns_noise else None

    def forward(self, x: Float[Tensor, "batch ..."]) -> tuple[Codes, Codes, Float[Tensor, " batch"]]:
        """Codes before and after the quantiser, and the loss of reconstructing each example from the latter."""
        continuous = self.encoder(x)["mean"]
        quantised = self.quantiser(continuous)
        outputs = self.decoder(straight_through(continuous, quantised))
        return continuous, quantised, self.architecture.likelihood.loss(x, outputs, self.log_noise)

    def code(self, x: Float[Tensor, "batch ..."], noise: Codes) -> Code:
        """The quantised code as the mean; nothing about it is random."""
        return certain(self.quantiser(self.encoder(x)["mean"]))

    def decode(self, code: Codes) -> Float[Tensor, "batch ..."]:
        """The expected example for a code, quantised or not: images in [0, 1]."""
        return self.architecture.likelihood.mean(self.decoder(code))


def straight_through(continuous: Codes, quantised: Codes) -> Codes:
    """The value of the second with the gradient of the first."""
    return continuous + (quantised - continuous).detach()


def certain(mean: Codes) -> Code:
    """A code without noise."""
    return Deterministic().code({"mean": mean}, mean)
