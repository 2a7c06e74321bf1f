"""The discriminators of a fleet, one for each model of a group: mapped single ones, or GPU kernels for all of them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from unweave.models import Objective
from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.objectives.objective import Discriminator
from unweave.models.optimisers import Adam, StackedUpdate, Tensors
from unweave.shapes import Bool, Float, Shaped, Tensor
from unweave.training.fleet_members import ALIKE

ADAM = Adam(beta1=0.5, beta2=0.9)
"""The published settings of a discriminator's optimiser; its learning rate is the objective's."""


@dataclass
class Discriminators:
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

    def begin(self) -> Tensors:
        """A new step; what of the parameters is mapped over the models."""
        if self.stack is None:
            return self.layout.views(self.parameters)
        self.tape = self.stack.tape(self.weights)
        return {}

    def single(self, parameters: Tensors) -> Discriminator:
        """One model's discriminator, for the objective."""
        if self.tape is not None:
            called: Discriminator = self.tape.discriminator()[0]
            return called
        return lambda codes: functional_call(self.module, parameters, (codes,))

    def learn(
        self,
        objective: Objective,
        codes: tuple[Tensor, Tensor, Tensor],
        rate: Float[Tensor, " model"],
        count: Shaped[Tensor, ""],
        good: Bool[Tensor, " model"],
    ) -> Float[Tensor, " model"]:
        """One update of every good discriminator from (joint codes, other codes, permutation); their losses."""
        if self.tape is None:
            return self._learn_mapped(objective, codes, rate, count, good)
        called, anchor = self.tape.discriminator()
        found = torch.vmap(lambda *three: objective.discriminator_loss(called, *three))(*codes)
        torch.autograd.grad(found.sum(), anchor)
        with torch.no_grad():
            betas = (ADAM.beta1, ADAM.beta2)
            self.tape.update(self.parameters, self.state, rate, count, good, betas, ADAM.epsilon)
        self.tape = None
        return found.detach()

    def _learn_mapped(
        self, objective: Objective, codes: tuple[Tensor, ...], rate: Tensor, count: Tensor, good: Tensor
    ) -> Tensor:
        views = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.parameters).items()}

        def one(parameters: Tensors, joint: Tensor, other: Tensor, permutation: Tensor) -> Tensor:
            return objective.discriminator_loss(self.single(parameters), joint, other, permutation)

        found = torch.vmap(one, chunk_size=self.portion)(views, *codes)
        slopes = torch.autograd.grad(found.sum(), list(views.values()))
        with torch.no_grad():
            given = StackedUpdate(self.layout.rows(dict(zip(views, slopes))), rate, count, good)
            ADAM.update_stack(self.parameters, self.state, given)
        return found.detach()

    def renew(self) -> None:
        """Bring the rounded copy, if there is one, to the parameters."""
        if self.weights is not self.parameters:
            self.weights.copy_(self.parameters)


def discriminators_of(modules: Sequence[nn.Module], kernels: Callable[[nn.Module], Any]) -> Discriminators | None:
    """The discriminators of a group before their first step; None for objectives without one."""
    if not modules:
        return None
    stack = kernels(modules[0])
    layout = layout_of(modules[0]) if stack is None else stack.layout
    parameters = torch.stack([layout.row(dict(module.named_parameters())) for module in modules])
    weights = parameters if stack is None else stack.weights(parameters)
    portion = ALIKE if stack is None and parameters.device.type == "cuda" else None
    module = copy.deepcopy(modules[0]).requires_grad_(False)
    return Discriminators(module, layout, parameters, weights, ADAM.start_stack(parameters), portion, stack)
