"""The manipulation network of Zietlow et al. (2021): from factors, through one number, to a change of an image."""

from typing import Any

import torch
from torch import nn

from unweave.config import from_plain
from unweave.data.altered import fold
from unweave.models.autoencoder import Architecture
from unweave.models.labels import centred_labels
from unweave.models.layers import Dense
from unweave.models.networks import NETWORKS, Network
from unweave.shapes import Float, Tensor


class ManipulationNetwork(nn.Module):
    """m(w): the factors squeezed into one number, and a decoder that draws what it stands for, all pixels in [−1, 1].

    The architecture's labels say how many values each factor has. The number is a linear combination of the factors;
    with two ``hidden`` layers of some width before it, any function of them.
    """

    def __init__(self, architecture: Architecture, hidden: int = 0) -> None:
        super().__init__()
        self.architecture = architecture
        self.squeeze = _squeeze(len(architecture.labels), hidden)
        self.draw = architecture.network.decoder(1, architecture.shape)

    def forward(self, factors: Float[Tensor, "batch factor"]) -> Float[Tensor, "batch channel height width"]:
        return torch.tanh(self.draw(self.squeeze(self.scaled(factors))))

    def scaled(self, factors: Float[Tensor, "batch factor"]) -> Float[Tensor, "batch factor"]:
        """Every factor on [−1, 1]."""
        return centred_labels(factors, self.architecture.labels)


def _squeeze(n_factors: int, hidden: int) -> nn.Module:
    if not hidden:
        return Dense(n_factors, 1)
    first, second = Dense(n_factors, hidden), Dense(hidden, hidden)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), Dense(hidden, 1))


def manipulation_for(
    tensors: dict[str, Tensor], network: Any, shape: tuple[int, ...], labels: tuple[int, ...], place: str
) -> ManipulationNetwork:
    """The network with these weights, ready to use; ``network`` is its description, or the plain form of one."""
    kind: Network = from_plain(Network, network, {Network: NETWORKS}, "network")
    architecture = Architecture(shape, 1, kind, labels=labels)
    hidden = len(tensors["squeeze.0.bias"]) if "squeeze.0.bias" in tensors else 0
    with torch.device("meta"):
        wanted = ManipulationNetwork(architecture, hidden).state_dict()
    if {name: held.shape for name, held in wanted.items()} != {name: held.shape for name, held in tensors.items()}:
        raise ValueError(f"{place} is not a manipulation of images of {shape} with {len(labels)} factors")
    found = ManipulationNetwork(architecture, hidden)
    found.load_state_dict(tensors)
    return found.eval().requires_grad_(False)


def altered(
    images: Float[Tensor, "batch ..."], change: Float[Tensor, "batch ..."], epsilon: float | Tensor
) -> Float[Tensor, "batch ..."]:
    """x′ = fold(x + ε m): what leaves [0, 1] is reflected back into it, so no pixel moves by more than ε."""
    return fold(images + epsilon * change)
