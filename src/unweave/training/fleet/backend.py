"""What computes the gradients of a stack of models: mapped PyTorch layers, batched products, or GPU kernels."""

from typing import Any, Protocol, runtime_checkable

from torch import nn

from unweave.models.kernels.layout import Layout
from unweave.models.kernels.stacked_code import Early, Losses, StackedCode
from unweave.shapes import Float, Tensor


@runtime_checkable
class Backend(Protocol):
    """The models' passes, forward and backward, for the whole stack."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def reads_stored(self) -> bool: ...

    @property
    def gathers(self) -> bool:
        """Whether it takes stored examples as places in their store."""

    def weights(self, parameters: Tensor) -> Float[Tensor, "model size"]: ...

    def gradients(
        self,
        parameters: Tensor,
        weights: Tensor,
        examples: Any,
        noise: Tensor,
        losses: Losses,
        early: Early | None = None,
    ) -> tuple[Float[Tensor, "model size"] | None, StackedCode]:
        """Every model's gradient, None where ``early`` handed over the whole update; and the codes it is of."""

    def code(self, weights: Tensor, examples: Any, noise: Tensor) -> StackedCode: ...

    def network(self, module: nn.Module) -> Any:
        """Kernels for a network beside the models; None where it is to be mapped."""
