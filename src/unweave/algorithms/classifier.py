"""A classifier with the encoder of a VAE: its trunk, and one linear head for every factor (Bonheme, 2023, App. C.3)."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from unweave import rng
from unweave.data.world import Data
from unweave.evaluation.activations import inputs_of_layers
from unweave.models.initialise import initialise
from unweave.models.layers import Dense
from unweave.models.networks.network import Network
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Lesson:
    """How a classifier is trained."""

    steps: int
    batch_size: int = 64
    learning_rate: float = 1e-4
    seed: int = 0
    init: str = "glorot"


class Classifier(nn.Module):
    """Class scores of every factor, side by side."""

    def __init__(self, network: Network, shape: tuple[int, ...], n_classes: tuple[int, ...]) -> None:
        super().__init__()
        self.trunk, n_features = network.trunk(shape)
        self.head = Dense(n_features, sum(n_classes))
        self.n_classes = n_classes

    def forward(self, images: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch class"]:
        return self.head(self.trunk(images))


def train_classifier(network: Network, data: Data, lesson: Lesson, device: str = "cpu") -> Classifier:
    """Learn all factors of a world at once, by the sum of their cross-entropies; a function of the seed alone."""
    if data.space is None:
        raise ValueError("a classifier needs a world with factors; this data set has none")
    model = Classifier(network, data.shape, tuple(data.space.sizes))
    initialise(model, "glorot" if lesson.init == "glorot" else "pytorch", lesson.seed)
    model = model.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lesson.learning_rate)
    for step in range(lesson.steps):
        words = rng.words(lesson.seed, rng.Purpose.BATCH, step, lesson.batch_size, 1)[:, 0]
        rows = words % len(data)
        scores = model(data.examples(rows, seed=lesson.seed, step=step).to(device))
        loss = _loss(scores, data.factors(rows).to(device), model.n_classes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval().requires_grad_(False)


@torch.no_grad()
def classifier_layers(model: Classifier, images: Float[Tensor, "sample ..."]) -> dict[str, Float[Tensor, "sample _"]]:
    """The input, every layer of the trunk after its non-linearity, and the class scores."""
    inputs, scores = inputs_of_layers(model, lambda: model(images))
    names = ["input", *(f"classifier {n}" for n in range(1, len(inputs))), "classes"]
    return {name: layer.flatten(1) for name, layer in zip(names, [*inputs, scores])}


def _loss(scores: Float[Tensor, "batch class"], factors: Tensor, n_classes: tuple[int, ...]) -> Float[Tensor, ""]:
    parts = scores.split(list(n_classes), dim=1)
    return torch.stack([functional.cross_entropy(part, factors[:, k].long()) for k, part in enumerate(parts)]).sum()
