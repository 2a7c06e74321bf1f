"""Layers that normalise: batch normalisation, spectral normalisation of weights, and rows of unit length."""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from unweave.models.layers import Convolution, Dense, Moving
from unweave.shapes import Float, Shaped, Tensor


class BatchNorm(Moving):
    """Every channel to mean 0 and variance 1 over the batch, then scaled and shifted (Ioffe & Szegedy, 2015).

    In use the running statistics stand for the batch's.
    """

    begins_as_made = ("weight", "bias")
    running_mean: Tensor
    running_variance: Tensor
    product: Callable[..., tuple[Tensor, Tensor, Tensor]] | None = None
    """Rectifier and norm at once, for a stack of models that are mapped: the result, the next running statistics."""

    def __init__(self, channels: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_variance", torch.ones(channels))
        self.momentum, self.epsilon = momentum, epsilon

    def forward(
        self, x: Float[Tensor, "batch channel *place"], *, leak: float = 1.0, groups: int = 1
    ) -> Float[Tensor, "batch channel *place"]:
        """The norm of x, or of what a rectifier with the slope ``leak`` below 0 makes of it; each group by itself."""
        held = (self.running_mean, self.running_variance)
        if self.training and self.product is not None:
            found, mean, variance = self.product(
                x, self.weight, self.bias, *held,
                leak=leak, momentum=self.momentum, epsilon=self.epsilon, groups=groups,
            )  # fmt: skip
            self.fresh = {"running_mean": mean, "running_variance": variance}
            return found
        if groups > 1:
            return torch.cat([self(part, leak=leak) for part in x.chunk(groups)])
        x = x if leak == 1 else functional.leaky_relu(x, leak) if leak else torch.relu(x)
        if not self.training:
            return functional.batch_norm(x, *held, self.weight, self.bias, eps=self.epsilon)
        found, mean, inverse = torch.native_batch_norm(
            x, self.weight, self.bias, None, None, True, self.momentum, self.epsilon
        )
        n = x.numel() // x.shape[1]
        variance = (inverse.detach() ** -2 - self.epsilon) * (n / max(1, n - 1))
        # running ← (1 − momentum) running + momentum · batch
        self.fresh = {
            "running_mean": torch.lerp(self.running_mean, mean.detach(), self.momentum),
            "running_variance": torch.lerp(self.running_variance, variance, self.momentum),
        }
        return found


class SpectralNorm(Moving):
    """A weight divided by its largest singular value, found by one power iteration a use (Miyato et al., 2018)."""

    u: Tensor
    v: Tensor
    product: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None = None
    """All of it at once, for a stack of models that are mapped: the weight, the next u, the next v."""

    def __init__(self, weight: Shaped[Tensor, "output ..."]) -> None:
        super().__init__()
        for name, size in (("u", weight.shape[0]), ("v", weight[0].numel())):
            self.register_buffer(name, torch.full((size,), 1.0 / math.sqrt(size)))

    def forward(self, weight: Float[Tensor, "output ..."]) -> Float[Tensor, "output ..."]:
        if self.training and self.product is not None:
            found, u, v = self.product(weight, self.u, self.v)
            self.fresh = {"u": u, "v": v}
            return found
        matrix, u, v = weight.flatten(1), self.u, self.v
        if self.training:
            held = matrix.detach()
            v = _unit(held.T @ u)
            u = _unit(held @ v)
            self.fresh = {"u": u, "v": v}
        # W / σ(W), σ(W) ≈ uᵀ W v
        return weight / (u @ matrix @ v)


class SpectralDense(Dense):
    """A linear layer of Lipschitz constant one, with or without a bias."""

    def __init__(self, n_inputs: int, n_outputs: int, *, biased: bool = True) -> None:
        super().__init__(n_inputs, n_outputs)
        if not biased:
            self.register_parameter("bias", None)
        self.norm = SpectralNorm(self.weight)

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self.multiplied(x, self.norm(self.weight))


class SpectralConvolution(Convolution):
    """A halving convolution whose kernel, as a matrix, has the largest singular value one."""

    def __init__(self, n_inputs: int, n_outputs: int, kernel: int = 4) -> None:
        super().__init__(n_inputs, n_outputs, kernel)
        self.norm = SpectralNorm(self.weight)

    def forward(self, x: Float[Tensor, "batch channel height width"]) -> Float[Tensor, "batch output h2 w2"]:
        return self.convolved(x, self.norm(self.weight))


class UnitRows(nn.Module):
    """A vector of about unit length for every value of a label: w / √(‖w‖² + ε)."""

    def __init__(self, n_values: int, n_outputs: int, epsilon: float = 1e-3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_values, n_outputs))
        self.epsilon = epsilon

    def forward(self, one_hot: Float[Tensor, "batch value"]) -> Float[Tensor, "batch output"]:
        return one_hot @ (self.weight * torch.rsqrt(self.weight.square().sum(-1, keepdim=True) + self.epsilon))


def _unit(x: Float[Tensor, " size"]) -> Float[Tensor, " size"]:
    return x * torch.rsqrt(x.square().sum().clamp(min=1e-12))
