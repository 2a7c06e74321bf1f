"""Directional derivatives pushed through a network beside its values: forward-mode differentiation, by hand.

A layer that is linear maps derivatives as it maps values, but for its bias; a non-linearity multiplies them by its
slope. So all directions of a batch are one larger batch of the same layers, and k derivatives cost k passes forwards
with the fast kernels that training uses. The operations that networks of linear layers and convolutions are made of
are known here; others raise ``NotImplementedError``, and ``decoder_jacobian`` goes on with PyTorch's general rules.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from unweave.shapes import Float, Tensor


def push(
    decode: Callable[[Tensor], Tensor],
    codes: Float[Tensor, "sample latent"],
    directions: Float[Tensor, "direction latent"],
) -> Float[Tensor, "direction sample feature"]:
    """The derivative of every output of ``decode`` at every code, along each direction."""
    n_directions, n_samples = len(directions), len(codes)
    moving = codes.detach().clone().as_subclass(Moving)
    moving.along = directions.repeat_interleave(n_samples, dim=0)
    outputs = decode(moving)
    if not isinstance(outputs, Moving):
        raise NotImplementedError("the outputs do not depend on the codes in a way that is known here")
    return outputs.along.flatten(1).view(n_directions, n_samples, -1)


class Moving(torch.Tensor):
    """Values, sample × …, that carry their derivatives ``along`` all directions, (direction · sample) × …."""

    along: Tensor

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            values = function(*map(_values, args), **options)
            if not isinstance(values, Tensor):
                return values
            if function not in RULES or not isinstance(args[0], Moving) or any(map(_moves, options.values())):
                raise NotImplementedError(f"no derivative is known here for {getattr(function, '__name__', function)}")
            along = RULES[function](function, values, args, options)
            # what mixes examples would not keep this shape for several directions
            if values.shape[:1] != args[0].shape[:1] or along.shape != (len(args[0].along), *values.shape[1:]):
                raise NotImplementedError("an operation changes the axis of the examples")
            values = values.as_subclass(Moving)
            values.along = along
            return values


def _values(given: Any) -> Any:
    return given.as_subclass(Tensor) if isinstance(given, Moving) else given


def _moves(given: Any) -> bool:
    return isinstance(given, Moving)


def _fixed(others: tuple[Any, ...]) -> None:
    if any(map(_moves, others)):
        raise NotImplementedError("a product of two things that move")


def _layer(function: Callable[..., Any], values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    # d(Wx + b) = W dx
    _fixed(args[1:])
    others = {name: value for name, value in options.items() if name != "bias"}
    along: Tensor = function(args[0].along, args[1], None, *args[3:], **others)
    return along


def _same(function: Callable[..., Any], values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """Rearranging, and products with what is fixed: the same for derivatives as for values."""
    _fixed(args[1:])
    along: Tensor = function(args[0].along, *args[1:], **options)
    return along


def _reshaped(function: Callable[..., Any], values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    # the number of examples may have been named, and there are more derivatives
    if len(values) != len(args[0]):
        raise NotImplementedError("an operation changes the axis of the examples")
    along: Tensor = args[0].along
    return along.reshape(-1, *values.shape[1:])


def _sum(function: Callable[..., Any], values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    if options:
        raise NotImplementedError("a sum with options")
    first, second = args[0], args[1]
    return function(first.along, second.along) if _moves(second) else first.along


def _scaled(function: Callable[..., Any], values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    if not isinstance(args[1], int | float):
        raise NotImplementedError("a product with something else than a number")
    along: Tensor = function(args[0].along, args[1])
    return along


def _slope(slope: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The rule of a non-linearity whose slope follows from its value."""

    def rule(function: Any, values: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        along: Tensor = args[0].along
        # f′(x) dx, the same slope for every direction
        return (along.unflatten(0, (-1, len(values))) * slope(values)).flatten(0, 1)

    return rule


_relu = _slope(lambda value: (value > 0).to(value.dtype))
_tanh = _slope(lambda value: 1.0 - value.square())
_sigmoid = _slope(lambda value: value * (1.0 - value))

RULES: dict[Any, Callable[..., Tensor]] = {
    function: rule
    for rule, functions in (
        (_layer, (functional.linear, functional.conv2d, functional.conv_transpose2d)),
        (_relu, (torch.relu, functional.relu, Tensor.relu)),
        (_tanh, (torch.tanh, functional.tanh, Tensor.tanh)),
        (_sigmoid, (torch.sigmoid, functional.sigmoid, Tensor.sigmoid)),
        (_sum, (torch.add, Tensor.add, Tensor.__add__)),
        (_scaled, (Tensor.mul, Tensor.__mul__, Tensor.div, Tensor.__truediv__)),
        (_reshaped, (torch.reshape, Tensor.reshape, Tensor.view)),
        (_same, (torch.flatten, torch.permute, torch.transpose, torch.matmul, functional.fold, functional.pad)),
        (_same, (Tensor.flatten, Tensor.unflatten, Tensor.permute, Tensor.transpose, Tensor.contiguous)),
        (_same, (Tensor.matmul, Tensor.__matmul__, Tensor.__getitem__)),
    )
    for function in functions
}
"""The derivative of every operation that is known."""
