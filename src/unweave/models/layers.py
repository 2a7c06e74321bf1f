"""The layers of every network. Images flow channels-last inside; weights keep PyTorch's shapes."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from unweave.shapes import Float, Tensor

Product = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A layer's own way to x ∗ w + b, for a stack of models that are mapped."""
Rectify = Callable[[Tensor], Tensor]
"""max(0, x) of what a convolution made, which nobody else reads."""


class Dense(nn.Module):
    """A linear layer whose parameters are set by :func:`unweave.models.initialise.initialise`."""

    apart: bool = False
    """Product and bias as two operations: one of both, for a stack of models that are mapped, would become three."""

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_outputs, n_inputs))
        self.bias = nn.Parameter(torch.zeros(n_outputs))

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self.multiplied(x, self.weight)

    def multiplied(self, x: Float[Tensor, "batch feature"], weight: Tensor) -> Float[Tensor, "batch output"]:
        """The layer with these weights: its own, or what it makes of them."""
        if self.apart and self.bias is not None:
            return functional.linear(x, weight) + self.bias
        return functional.linear(x, weight, self.bias)


class Convolution(nn.Module):
    """A convolution of stride 2 that halves height and width: kernel 4 with padding 1, or kernel 2 without."""

    product: Product | None = None

    def __init__(self, n_inputs: int, n_outputs: int, kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_outputs, n_inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(n_outputs))
        self.padding = (kernel - 2) // 2

    def forward(self, x: Float[Tensor, "batch channel height width"]) -> Float[Tensor, "batch output h2 w2"]:
        return self.convolved(x, self.weight)

    def convolved(self, x: Float[Tensor, "batch channel height width"], weight: Tensor) -> Tensor:
        """The layer with these weights: its own, or what it makes of them."""
        if self.product is not None:
            return self.product(x, weight, self.bias)
        return functional.conv2d(x, weight, self.bias, stride=2, padding=self.padding)


class Deconvolution(nn.Module):
    """A transposed 4×4 convolution of stride 2 that doubles height and width."""

    product: Product | None = None

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_inputs, n_outputs, 4, 4))
        self.bias = nn.Parameter(torch.zeros(n_outputs))

    def forward(self, x: Float[Tensor, "batch channel height width"]) -> Float[Tensor, "batch output h2 w2"]:
        if self.product is not None:
            return self.product(x, self.weight, self.bias)
        if self.weight.shape[1] == 1 and x.device.type == "cpu":
            return _deconvolve_to_one(x, self.weight, self.bias)
        return functional.conv_transpose2d(x, self.weight, self.bias, stride=2, padding=1)


def _deconvolve_to_one(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    # To one channel, a matrix product and a fold beat the CPU's transposed convolution (docs/performance.md).
    height, width = x.shape[2:]
    pieces = x.flatten(2).transpose(1, 2) @ weight.flatten(1)
    folded = functional.fold(pieces.transpose(1, 2), (2 * height, 2 * width), kernel_size=4, stride=2, padding=1)
    return folded + bias.view(1, 1, 1, 1)


def rectify_in_place(x: Tensor) -> Tensor:
    """max(0, x) in the memory of x, and its gradient in the memory of the gradient: the same bits in less time."""
    return _InPlace.apply(x)


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        y = x.relu_()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        if torch.is_grad_enabled() or gradient.stride() != y.stride():
            return torch.ops.aten.threshold_backward(gradient, y, 0)
        return torch.ops.aten.threshold_backward.grad_input(gradient, y, 0, grad_input=gradient)


def flatten(x: Float[Tensor, "batch channel height width"]) -> Float[Tensor, "batch feature"]:
    """Channels last, as the reference networks flatten; free for channels-last memory."""
    return x.permute(0, 2, 3, 1).flatten(1)


def unflatten(
    x: Float[Tensor, "batch feature"], channels: int, height: int, width: int
) -> Float[Tensor, "batch channel height width"]:
    """The inverse of :func:`flatten`."""
    return x.unflatten(1, (height, width, channels)).permute(0, 3, 1, 2)


class Moving(nn.Module):
    """A layer with a state that moves as it is used: running statistics, the singular vectors of a norm.

    The state is in buffers. ``forward`` never writes them: it leaves their next values in ``fresh``, and who trains
    brings the buffers there once a phase. So one layer serves a model alone and, mapped, a stack of models.
    """

    fresh: dict[str, Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.fresh = {}


def fresh_of(network: nn.Module) -> dict[str, Tensor]:
    """The next values of a network's buffers, by name, of the layers that were used since this was last asked."""
    found: dict[str, Tensor] = {}
    for place, layer in _moving(network):
        found |= {f"{place}.{name}" if place else name: value.detach() for name, value in layer.fresh.items()}
        layer.fresh = {}
    return found


def _moving(network: nn.Module) -> Iterator[tuple[str, Moving]]:
    return ((place, layer) for place, layer in network.named_modules() if isinstance(layer, Moving))
