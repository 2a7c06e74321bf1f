"""The portable backend of a fleet: PyTorch's own layers, mapped over the model axis. Runs wherever PyTorch does."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.func import functional_call

from unweave.models import Autoencoder
from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.kernels.stacked_code import Early, Losses, StackedCode, Weighed
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Portable:
    """Gradients by automatic differentiation of the mapped model. ``template`` lends its structure, not its weights."""

    template: Autoencoder
    layout: Layout
    leaves: dict[tuple[int, tuple[int, ...]], dict[str, Tensor]] = field(default_factory=dict)
    name: str = "portable"
    reads_stored: bool = False
    gathers: bool = False

    def gradients(
        self,
        parameters: Float[Tensor, "model size"],
        weights: Float[Tensor, "model size"],
        examples: Float[Tensor, "model batch ..."],
        noise: Float[Tensor, "model batch latent"],
        losses: Losses,
        early: Early | None = None,
    ) -> tuple[Float[Tensor, "model size"], StackedCode]:
        """The gradient of every model's loss, and the codes it was computed from."""
        assert not isinstance(losses, Weighed), "only kernels sum what is weighed"
        leaves = self._leaves_of(weights)
        *fields, reconstructions = torch.vmap(self._forward)(leaves, examples, noise)
        codes = StackedCode(*fields)
        # models do not meet, so the gradient of the summed loss is every model's own
        found = torch.autograd.grad(losses(codes, reconstructions), list(leaves.values()))
        return self.layout.rows(dict(zip(leaves, found))), codes.detach()

    @torch.no_grad()
    def code(
        self,
        weights: Float[Tensor, "model size"],
        examples: Float[Tensor, "model batch ..."],
        noise: Float[Tensor, "model batch latent"],
    ) -> StackedCode:
        """The codes of some models (rows of the stack) for a batch each."""
        return StackedCode(*torch.vmap(self._code)(self.layout.views(weights), examples, noise))

    def network(self, module: nn.Module) -> None:
        """No kernels: networks beside the models are mapped like everything else."""

    def _leaves_of(self, weights: Tensor) -> dict[str, Tensor]:
        """Views by which gradients are taken, made once: updates in place show through them."""
        key = (weights.data_ptr(), tuple(weights.shape))
        if key not in self.leaves:
            views = self.layout.views(weights).items()
            self.leaves.clear()
            self.leaves[key] = {name: view.detach().requires_grad_() for name, view in views}
        return self.leaves[key]

    def weights(self, parameters: Float[Tensor, "model size"]) -> Float[Tensor, "model size"]:
        """What this backend reads: the parameters themselves."""
        return parameters

    def _forward(self, parameters: dict[str, Tensor], examples: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        code, reconstructions = functional_call(self.template, parameters, (examples, noise))
        return code.mean, code.log_variance, code.sampled, code.kl, reconstructions

    def _code(self, parameters: dict[str, Tensor], examples: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        return self._forward(parameters, examples, noise)[:4]


def portable(template: Autoencoder) -> Portable:
    """The portable backend for models of this structure."""
    return Portable(template, layout_of(template))
