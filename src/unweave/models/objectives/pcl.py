"""PCL, permutation-contrastive learning (Hyvärinen & Morioka, 2017): true neighbours in time against false ones."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unweave.config import number
from unweave.data.pairings import Pairing, RandomPairs, Transitions
from unweave.models.autoencoder import Architecture, Encoder, Model
from unweave.models.method import MODEL, Batch, Context, Draw, Method, NoDecoder, Phase, Terms
from unweave.models.normalisation import BatchNorm
from unweave.models.posteriors import Code, Deterministic, Posterior
from unweave.shapes import Float, Tensor

COMPARISON = "comparison"

Features = Float[Tensor, "batch latent"]


@dataclass(frozen=True)
class PCL(Method):
    """Logistic regression of "is x_{t−1} the one before x_t?" on features h; there is no decoder.

    logit = −Σ_j |w₁ h_j(x_t) + w₂ h_j(x_{t−1}) + b| + a Σ_j h_j(x_t)² + m

    ``protocol="images"`` is how the published comparisons train it: a = 1, no batch norm, the earlier frames of a batch
    are permuted to make false pairs. ``protocol="original"`` is the authors': a ≥ 0 is learned, h is normalised over
    the batch, and the earlier frame of a false pair is any example. It goes with the network maxout, the optimiser sgd.
    ``pairs="random"`` is the control: no pair is a true one.
    """

    name: ClassVar[str] = "pcl"
    warms_up: ClassVar[bool] = False
    posterior: ClassVar[Posterior] = Deterministic()
    decodes: ClassVar[bool] = False
    protocol: Literal["images", "original"] = "images"
    pairs: Literal["transitions", "random"] = "transitions"
    step_rate: float = number(1.0, above=0, help="of the world's steps: they are log(size)/rate values long")

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images",) if self.protocol == "images" else ("images", "second_images")

    @property
    def pairing(self) -> Pairing:
        return RandomPairs() if self.pairs == "random" else Transitions(self.step_rate, cyclic=False)

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        return {"order": Draw("permutation", 1)} if self.protocol == "images" else {}

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        comparison = Comparison(architecture.latents, learns_square=self.protocol == "original")
        return {MODEL: self.model(architecture), COMPARISON: comparison}

    def model(self, architecture: Architecture) -> "FeatureModel":
        return FeatureModel(architecture, normalised=self.protocol == "original")

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL, COMPARISON), self.loss),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """Cross-entropy of the regression and its accuracy, with as many false pairs as true ones."""
        earlier, later, other = self._features(batch, context.networks[MODEL])
        compare = context.networks[COMPARISON]
        logits = torch.cat([compare(later, earlier), compare(later, other)])
        truth = (torch.arange(len(logits), device=logits.device) < len(later)).to(logits.dtype)
        loss = functional.binary_cross_entropy_with_logits(logits, truth)
        right = ((logits > 0).to(logits.dtype) == truth).to(logits.dtype).mean()
        return {"loss": loss, "accuracy": right}, _certain(torch.cat([earlier, later]))

    def _features(self, batch: Batch, model: nn.Module) -> tuple[Features, Features, Features]:
        if self.protocol == "images":
            earlier, later = model(batch["images"]).chunk(2)
            return earlier, later, torch.gather(earlier, 0, batch["order"].expand_as(earlier))
        earlier, later, other = model(torch.cat([batch["images"], batch["second_images"]])).chunk(3)
        return earlier, later, other


class FeatureModel(Model):
    """An encoder alone: features, normalised over the batch or as they are."""

    def __init__(self, architecture: Architecture, *, normalised: bool) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoder = Encoder(architecture)
        self.norm = BatchNorm(architecture.latents) if normalised else None
        if normalised:  # the norm takes off whatever a bias adds
            self.encoder.heads["mean"].register_parameter("bias", None)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Features:
        features: Tensor = self.encoder(x)["mean"]
        return features if self.norm is None else self.norm(features)

    def code(self, x: Float[Tensor, "batch ..."], noise: Features) -> Code:
        """The features as the mean; nothing about them is random."""
        return _certain(self(x))

    def decode(self, code: Features) -> Tensor:
        """There is nothing to decode with: this says so."""
        raise NoDecoder(PCL.name)


class Comparison(nn.Module):
    """The logit that two rows of features are neighbours in time."""

    begins_as_made = ("weight", "square", "offset")

    def __init__(self, latents: int, *, learns_square: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -1.0]).repeat(latents, 1))
        self.bias = nn.Parameter(torch.zeros(latents))
        self.square = nn.Parameter(torch.ones(())) if learns_square else None
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, later: Features, earlier: Features) -> Float[Tensor, " batch"]:
        apart = self.weight[:, 0] * later + self.weight[:, 1] * earlier + self.bias
        square = later.square().sum(-1)
        if self.square is not None:
            # a ≥ 0, with a gradient that could bring it back from 0
            square = (self.square + (self.square.clamp(min=0.0) - self.square).detach()) * square
        # −Σ |w₁ h(x_t) + w₂ h(x_{t−1}) + b| + a Σ h(x_t)² + m
        return square - apart.abs().sum(-1) + self.offset


def _certain(mean: Features) -> Code:
    return Deterministic().code({"mean": mean}, mean)
