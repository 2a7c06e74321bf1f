"""Where the parameters of a network lie in one flat row: a fleet is a stack of such rows, ``[model, size]``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch

from unweave.shapes import Float, Shaped, Tensor

Order = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Names, shapes and places of the parameters. ``orders`` says in which order a parameter's axes lie in memory."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    orders: tuple[Order, ...]
    align: int = 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Values each parameter takes, its padding included."""
        return tuple(-(-math.prod(shape) // self.align) * self.align for shape in self.shapes)

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each parameter begins."""
        return dict(zip(self.names, accumulate(self.sizes, initial=0)))

    @property
    def size(self) -> int:
        """Values in a row."""
        return sum(self.sizes)

    def views(self, flat: Shaped[Tensor, "model size"]) -> dict[str, Shaped[Tensor, "model ..."]]:
        """Every parameter of the whole stack in its own shape; writing into one changes the row."""
        places = zip(self.names, self.shapes, self.orders, self.offsets.values())
        return {name: _view(flat, offset, shape, order) for name, shape, order, offset in places}

    def row(self, tensors: Mapping[str, Tensor]) -> Float[Tensor, " size"]:
        """One model's parameters as a row; a smaller one (fewer latents) fills the beginning of its axes."""
        row = torch.zeros(1, self.size, device=next(iter(tensors.values())).device)
        for name, view in self.views(row).items():
            given = tensors[name].detach()
            view[0][tuple(slice(0, size) for size in given.shape)] = given
        return row[0]

    def rows(self, tensors: Mapping[str, Shaped[Tensor, "model ..."]]) -> Shaped[Tensor, "model size"]:
        """Stacked parameters (or their gradients) as rows."""
        parts, nothing = [], next(iter(tensors.values())).new_zeros(1).expand(self.align)
        for name, order, size in zip(self.names, self.orders, self.sizes):
            stacked = tensors[name]
            moved = stacked if order == tuple(range(len(order))) else stacked.permute(0, *(axis + 1 for axis in order))
            part = moved.reshape(stacked.shape[0], -1)
            parts += [part, nothing[: size - part.shape[1]].expand(len(part), -1)]
        return torch.cat(parts, dim=1)

    def fitted(self, flat: Tensor) -> Tensor:
        """Rows of the same parameters, laid one after the other as they are, in this layout; others stay."""
        plain = Layout(self.names, self.shapes, tuple(tuple(range(len(shape))) for shape in self.shapes))
        if flat.dim() not in (1, 2) or plain.size == self.size or flat.shape[-1] != plain.size:
            return flat
        found = self.rows(plain.views(flat.reshape(-1, plain.size)))
        return found.reshape(*flat.shape[:-1], self.size)


ALIGNED = 64
"""Values that a row and each of its parameters begin at a multiple of, where that matters: 256 bytes."""


def layout_of(
    module: torch.nn.Module, *, kernels: bool = False, aligned: bool = False, buffers: bool = False
) -> Layout:
    """The layout of a module's parameters, or of those of its buffers that are fp32.

    For kernels, convolution weights lie as [row, column, big, small].
    """
    held = module.named_buffers() if buffers else module.named_parameters()
    named = {name: tuple(tensor.shape) for name, tensor in held if not buffers or tensor.dtype == torch.float32}
    orders = tuple(_order(shape, kernels) for shape in named.values())
    return Layout(tuple(named), tuple(named.values()), orders, ALIGNED if kernels or aligned else 1)


def _order(shape: tuple[int, ...], kernels: bool) -> Order:
    return (2, 3, 1, 0) if kernels and len(shape) == 4 else tuple(range(len(shape)))


def _view(flat: Tensor, offset: int, shape: tuple[int, ...], order: Order) -> Tensor:
    in_memory = [shape[axis] for axis in order]
    stored = flat[:, offset : offset + math.prod(shape)].unflatten(1, in_memory) if shape else flat[:, offset]
    back = sorted(range(len(order)), key=order.__getitem__)
    return stored.permute(0, *(axis + 1 for axis in back))
