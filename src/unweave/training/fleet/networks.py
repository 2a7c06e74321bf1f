"""The networks beside the models of a fleet, one for each model of a group: mapped single ones, or GPU kernels for all.

FactorVAE's discriminators are such networks. The models themselves are the backend's.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.optimisers import Adam, Optimiser, StackedUpdate, Tensors
from unweave.shapes import Bool, Float, Shaped, Tensor
from unweave.training.fleet.members import ALIKE

Called = Callable[[Tensor], Tensor]


@dataclass
class StackedNetwork:
    """Parameters and optimiser state with a leading model axis. ``stack`` holds the kernels, where they serve.

    ``portion`` is how many are mapped at a time, where a library's choice of algorithm would depend on their number.
    """

    module: nn.Module
    layout: Layout
    parameters: Float[Tensor, "model size"]
    weights: Float[Tensor, "model size"]
    state: Tensors
    portion: int | None
    stack: Any = None
    tape: Any = None
    called: Called | None = None

    def begin(self) -> Tensors:
        """A new step; what of the parameters is mapped over the models."""
        if self.stack is None:
            return self.layout.views(self.parameters)
        self.tape = self.stack.tape(self.weights)
        self.called = self.tape.discriminator()[0]
        return {}

    def single(self, parameters: Tensors) -> Called:
        """One model's network, for its losses."""
        if self.called is not None:
            return self.called
        return lambda given: functional_call(self.module, parameters, (given,))

    def learn(
        self,
        loss: Callable[[Tensors], Float[Tensor, " model"]],
        optimiser: Optimiser,
        rate: Float[Tensor, " model"],
        count: Shaped[Tensor, ""],
        good: Bool[Tensor, " model"],
    ) -> Float[Tensor, " model"]:
        """One update of every good network; ``loss`` maps what :meth:`single` takes to all models' losses."""
        if self.tape is not None:
            return self._learn_on_kernels(loss, optimiser, rate, count, good)
        views = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.parameters).items()}
        found = loss(views)
        slopes = torch.autograd.grad(found.sum(), list(views.values()))
        with torch.no_grad():
            given = StackedUpdate(self.layout.rows(dict(zip(views, slopes))), rate, count, good)
            optimiser.update_stack(self.parameters, self.state, given)
        return found.detach()

    def _learn_on_kernels(
        self,
        loss: Callable[[Tensors], Float[Tensor, " model"]],
        optimiser: Optimiser,
        rate: Tensor,
        count: Tensor,
        good: Tensor,
    ) -> Tensor:
        assert isinstance(optimiser, Adam)
        self.called, anchor = self.tape.discriminator()
        found = loss({})
        torch.autograd.grad(found.sum(), anchor)
        with torch.no_grad():
            betas = (optimiser.beta1, optimiser.beta2)
            self.tape.update(self.parameters, self.state, rate, count, good, betas, optimiser.epsilon)
        self.tape = self.called = None
        return found.detach()

    def renew(self) -> None:
        """Bring the rounded copy, if there is one, to the parameters."""
        if self.weights is not self.parameters:
            self.weights.copy_(self.parameters)


def stacked_network(
    modules: Sequence[nn.Module], optimiser: Optimiser, kernels: Callable[[nn.Module], Any]
) -> StackedNetwork:
    """One network of each model of a group, before their first step."""
    stack = kernels(modules[0]) if type(optimiser) is Adam else None
    layout = layout_of(modules[0]) if stack is None else stack.layout
    parameters = torch.stack([layout.row(dict(module.named_parameters())) for module in modules])
    weights = parameters if stack is None else stack.weights(parameters)
    portion = ALIKE if stack is None and parameters.device.type == "cuda" else None
    module = copy.deepcopy(modules[0]).requires_grad_(False)
    return StackedNetwork(
        module, layout, parameters, weights, optimiser.start_stack(parameters, layout), portion, stack
    )
