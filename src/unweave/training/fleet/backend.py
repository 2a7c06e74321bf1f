"""What computes the gradients of a stack of models: mapped PyTorch layers, batched products, or GPU kernels."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from torch import nn

from unweave.models.kernels.layout import Layout
from unweave.models.kernels.stacked_code import StackedCode
from unweave.shapes import Float, Tensor

TotalLoss = Callable[[StackedCode, Float[Tensor, "model batch"]], Float[Tensor, ""]]
"""From the codes and reconstruction losses of all models to the sum of their losses."""


@runtime_checkable
class Backend(Protocol):
    """The models' passes, forward and backward, for the whole stack."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def reads_stored(self) -> bool: ...

    def weights(self, parameters: Tensor) -> Float[Tensor, "model size"]: ...

    def gradients(
        self, parameters: Tensor, weights: Tensor, examples: Tensor, noise: Tensor, total_loss: TotalLoss
    ) -> tuple[Float[Tensor, "model size"], StackedCode]: ...

    def code(self, weights: Tensor, examples: Tensor, noise: Tensor) -> StackedCode: ...

    def network(self, module: nn.Module) -> Any:
        """Kernels for a network beside the models; None where it is to be mapped."""
