"""The axis words of the project, as types.

Axes are named by one word everywhere: model, batch, sample, latent, factor, channel, height, width, feature, layer.
``Float[Tensor, "batch latent"]`` is a float tensor with those two axes; the types are checked under pytest.
"""

from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor

Scalar = float | int | Tensor
"""A hyperparameter that may differ between the models of one fleet: a number, or a tensor with one axis less."""

__all__ = ["Bool", "Float", "Int", "Scalar", "Shaped", "Tensor", "UInt8"]
