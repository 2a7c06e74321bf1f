"""One model in training: the engine that calls a method's phases as they are written."""

import math
from typing import TypeVar

import torch
from torch import nn

from unweave.data.world import Data
from unweave.models.layers import fresh_of, rectify_in_place
from unweave.models.objectives import MODEL, Context, Phase, Terms, kept_weights, new_networks
from unweave.models.optimisers import Optimiser, Tensors
from unweave.models.posteriors import Code
from unweave.shapes import Tensor
from unweave.training.batches import Drawing, batch_of_one, source_of
from unweave.training.engine import Failure, Rows, blame, columns, summary
from unweave.training.experiment import Experiment, form_of
from unweave.training.given import fill_given

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class Alone:
    """Networks, the states of their optimisers as plain tensors, and what the last step said."""

    name = "alone"

    def __init__(self, experiment: Experiment, data: Data) -> None:
        """Before the first step: a function of the experiment alone."""
        self.experiment, self.device = experiment, torch.device(experiment.plan.device)
        self.source = source_of([experiment], data.to(self.device))
        self.drawing = Drawing(self.source)
        self.method, self.form = experiment.objective, form_of(experiment.objective, data)
        architecture = experiment.architecture(self.form.shape, self.form.labels)
        networks = new_networks(self.method, architecture, experiment.init, experiment.seed)
        fill_given(self.method, networks)
        self.networks = {name: _placed(network, self.device) for name, network in networks.items()}
        self.phases = self.method.phases()
        self.parameters = {name: dict(network.named_parameters()) for name, network in self.networks.items()}
        self.states = {
            name: self.optimiser(phase).start(self.parameters[name]) for phase in self.phases for name in phase.updates
        }
        self.last_terms: Terms = {}
        self.last_code: Code | None = None
        self.failed: Failure | None = None
        self.good: tuple[int, Tensors] | None = None

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        return (self.experiment,)

    def optimiser(self, phase: Phase) -> Optimiser:
        """What updates the networks of a phase."""
        return phase.optimiser or self.experiment.optimiser

    def advance(self, step: int, *, record: bool) -> None:
        batch = batch_of_one(self.source, self.drawing(step))
        before = {name: tensor.clone() for name, tensor in self.weights(0).items()} if record else {}
        self.last_terms, code = {}, None
        for phase in self.phases:
            if phase.due(step):
                context = Context(step, len(self.source.data), self.experiment.warmup, self.networks, code)
                terms, made = phase.loss(batch, context)
                self.last_terms |= terms
                moved = {name: fresh_of(network) for name, network in self.networks.items()}
                code = self.last_code = made.detach() if made is not None else code
                if self._failed(step, terms[phase.minimises], record):
                    return
                self._update(phase, terms[phase.minimises])
                self._move(moved)
        if record:
            self.good = step, before

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def rows(self) -> list[Rows]:
        named = columns(self.last_terms, 0 if self.last_code is None else self.experiment.latents)
        return [Rows(named, summary(self.last_terms, self.last_code)[None])]

    def group_of(self, member: int) -> tuple[int, int]:
        return 0, 0

    def terms(self) -> list[dict[str, float]]:
        return [] if self.failed else [{name: value.item() for name, value in self.last_terms.items()}]

    def weights(self, member: int) -> Tensors:
        held = {}
        for phase in self.phases:
            for name in phase.updates:
                own = self.optimiser(phase).kept(self.parameters[name], self.states[name])
                held[name] = {**self.networks[name].state_dict(), **own}
        return {name: tensor.detach() for name, tensor in kept_weights(self.method, held).items()}

    def all_failed(self) -> bool:
        return self.failed is not None

    def failure(self, member: int) -> Failure | None:
        return self.failed

    def last_good(self, member: int) -> tuple[int, Tensors] | None:
        return self.good

    def tensors(self) -> Tensors:
        parts: dict[str, Tensors] = {}
        for name, network in self.networks.items():
            parts[name] = network.state_dict()
            parts["optimiser" if name == MODEL else f"{name}_optimiser"] = self.states.get(name, {})
        return {f"{part}/{name}": tensor for part, held in parts.items() for name, tensor in held.items()}

    def fitted(self, tensors: Tensors) -> Tensors:
        return tensors

    @torch.no_grad()
    def restore(self, tensors: Tensors) -> None:
        for name, target in self.tensors().items():
            target.copy_(tensors[name])

    def _update(self, phase: Phase, loss: Tensor) -> None:
        owned = [self.parameters[name] for name in phase.updates]
        wanted = [parameter for held in owned for parameter in held.values()]
        gradients = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for name, parameters in zip(phase.updates, owned):
                own, gradients = gradients[: len(parameters)], gradients[len(parameters) :]
                self.optimiser(phase).update(parameters, list(own), self.states[name])

    @torch.no_grad()
    def _move(self, fresh: dict[str, Tensors]) -> None:
        """Bring the moving state of layers (statistics, singular vectors) to what this phase made of it."""
        for name, tensors in fresh.items():
            for buffer, value in tensors.items():
                self.networks[name].get_buffer(buffer).copy_(value)

    def _failed(self, step: int, loss: Tensor, record: bool) -> bool:
        """Whether the loss is no number; a GPU is asked only where it has to be waited for anyway."""
        if (self.device.type == "cpu" or record) and not math.isfinite(loss.item()):
            self.failed = blame(step, {name: value.item() for name, value in self.last_terms.items()})
        return self.failed is not None


def _placed(module: AnyModule, device: torch.device) -> AnyModule:
    if device.type == "cpu":
        for layers in module.modules():
            if hasattr(layers, "rectify"):
                layers.rectify = rectify_in_place  # type: ignore[assignment]
    return module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
