"""Fleets of any method: all of its networks mapped over the model axis, every phase's loss as it is written.

Methods whose losses only pass a batch through the model have faster stacks (:mod:`unweave.training.fleet.fleet`).
"""

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.layers import fresh_of
from unweave.models.method import Beside
from unweave.models.objectives import Batch, Context, Phase, Terms, kept_weights, new_networks
from unweave.models.optimisers import Optimiser, StackedUpdate, Tensors
from unweave.models.posteriors import Code
from unweave.shapes import Bool, Float, Int, Tensor
from unweave.training.batches import Draws, Source, batch_of
from unweave.training.engine import columns, summary
from unweave.training.experiment import Experiment, Form
from unweave.training.fleet.fleet import MOST_TERMS, Group, keep_failed, rates_of
from unweave.training.fleet.members import Members, scalars_of
from unweave.training.given import fill_given

Held = dict[str, Tensors]
"""Tensors by name, of every network by name."""


@dataclass
class Stack:
    """One network of every model: parameters as rows, the optimiser's state, and buffers, those of fp32 as rows."""

    layout: Layout
    parameters: Float[Tensor, "model size"]
    state: Tensors
    moving: Layout
    moved: Float[Tensor, "model moving"]
    others: Tensors

    @property
    def buffers(self) -> Tensors:
        """The buffers by name; writing into them changes them."""
        return self.moving.views(self.moved) | self.others


class Stream(Beside):
    """A stream beside the main one. What it reads of the main one's stays alive until the end of a phase."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.read: list[Tensor] = []
        self.within: list[Any] = []

    def __call__(self, *read: Tensor) -> "Stream":
        self.read += read
        return self

    def __enter__(self) -> None:
        self.stream.wait_stream(torch.cuda.current_stream())
        self.within.append(torch.cuda.stream(self.stream))
        self.within[-1].__enter__()

    def __exit__(self, *raised: object) -> None:
        self.within.pop().__exit__(*raised)

    def join(self) -> None:
        if self.read:
            torch.cuda.current_stream().wait_stream(self.stream)

    def end(self) -> None:
        """The end of a phase: its gradients were made there too."""
        self.join()
        self.read.clear()


class Losses(nn.Module):
    """All networks of a method, called by its losses; so one member's tensors can take the place of theirs."""

    def __init__(self, networks: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleDict(copy.deepcopy(dict(networks))).requires_grad_(False)

    def forward(self, phase: Phase, batch: Batch, context: Context) -> tuple[Terms, Tensors, Held]:
        """Terms, the parts of the code where there is one, and the next values of buffers."""
        networks = dict(self.networks.items())
        terms, code = phase.loss(batch, replace(context, networks=networks))
        parts = {} if code is None else _parts_of(code)
        return terms, parts, {name: fresh_of(network) for name, network in networks.items()}


@dataclass
class MappedFleet:
    """A stack of models of one method in training; ``failed_at``, ``good`` and ``good_at`` as in any fleet."""

    members: Members
    n_examples: int
    losses: Losses
    stacks: dict[str, Stack]
    groups: list[Group]
    failed_at: Int[Tensor, " model"]
    good: Held
    good_at: Int[Tensor, " model"]
    learning_rate: Float[Tensor, " model"]
    name: str = "mapped"
    stream: Stream | None = None

    @property
    def device(self) -> torch.device:
        return self.failed_at.device

    @property
    def alive(self) -> Bool[Tensor, " model"]:
        """Which models are still healthy."""
        return self.failed_at < 0

    def advance(self, source: Source, draws: Draws, *, record: bool, step: int) -> None:
        """One step of every healthy model: its phases in their order. With ``record``, the group keeps a row."""
        group, now, batch = self.groups[0], draws["steps"], batch_of(source, draws)
        before = _copied(self._kept()) if record else {}
        code: Tensors = {}
        group.terms = {}
        for number, phase in enumerate(group.method.phases()):
            if phase.due(step):
                code = self._advance_phase(number, batch, now, code)
        keep_failed(group, self.failed_at == now)
        if record:
            self._keep_good(before, now)
            _record(group, code)

    def state_tensors(self) -> Tensors:
        """Every tensor of the fleet by name; writing into them changes it."""
        tensors = {"failed_at": self.failed_at, "good_at": self.good_at}
        tensors["group0/failed_terms"] = self.groups[0].failed_terms
        for name, stack in self.stacks.items():
            tensors[f"{name}/parameters"] = stack.parameters
            tensors |= {f"{name}/optimiser/{part}": tensor for part, tensor in stack.state.items()}
            tensors |= {f"{name}/buffers/{part}": tensor for part, tensor in stack.buffers.items()}
        return tensors | {f"good/{net}/{name}": t for net, held in self.good.items() for name, t in held.items()}

    @torch.no_grad()
    def set_state(self, tensors: Tensors) -> None:
        """Bring the fleet to a state that :meth:`state_tensors` gave."""
        for name, target in self.state_tensors().items():
            if name in tensors:
                target.copy_(tensors[name])

    def weights_of(self, place: int, experiment: Experiment, form: Form, *, good: bool = False) -> Tensors:
        """What is kept of a member: its weights, or those of its last recorded step with a finite loss."""
        held = self.good if good else self._kept()
        own = {net: {name: tensor[place].detach() for name, tensor in parts.items()} for net, parts in held.items()}
        return kept_weights(experiment.objective, own)

    def _kept(self) -> Held:
        """The tensors of all members that stay: views that change as the fleet goes on."""
        method = self.groups[0].method
        held = {}
        for phase in method.phases():
            for name in phase.updates:
                if name in method.kept:
                    stack, optimiser = self.stacks[name], self._optimiser(phase)
                    views = stack.layout.views(optimiser.kept_stack(stack.parameters, stack.state))
                    held[name] = {**views, **stack.buffers}
        return held

    @torch.no_grad()
    def _keep_good(self, before: Held, now: Tensor) -> None:
        for name, held in before.items():
            for part, tensor in held.items():
                kept = self.good[name][part]
                kept.copy_(torch.where(_along(self.alive, kept), tensor, kept))
        self.good_at.copy_(torch.where(self.alive, now, self.good_at))

    def _advance_phase(self, number: int, batch: Batch, now: Tensor, code: Tensors) -> Tensors:
        """One update of what a phase trains; the code that later phases know."""
        group = self.groups[0]
        phase = group.method.phases()[number]
        views = {name: stack.layout.views(stack.parameters) for name, stack in self.stacks.items()}
        for name in phase.updates:
            views[name] = {part: view.detach().requires_grad_() for part, view in views[name].items()}
        held = {name: {**views[name], **stack.buffers} for name, stack in self.stacks.items()}

        def one(held: Held, scalars: Tensors, batch: Batch, code: Tensors) -> tuple[Terms, Tensors, Held]:
            known = Code(**code) if code else None
            context = Context(now, self.n_examples, group.warmup, {}, known, beside or Beside())
            flat = {f"networks.{net}.{name}": tensor for net, parts in held.items() for name, tensor in parts.items()}
            own = replace(group.method, **scalars).phases()[number]  # type: ignore[type-var]
            found: tuple[Terms, Tensors, Held] = functional_call(self.losses, flat, (own, batch, context))
            return found

        beside = self._beside()
        # of a single portion PyTorch would still copy every result
        portions = self.device.type == "cuda" and len(self.alive) > group.method.at_once
        portion = group.method.at_once if portions else None
        terms, made, fresh = torch.vmap(one, chunk_size=portion)(held, group.scalars, dict(batch), code)
        group.terms |= {name: term.detach() for name, term in terms.items()}
        loss = terms[phase.minimises]
        leaves = [leaf for name in phase.updates for leaf in views[name].values()]
        slopes = iter(torch.autograd.grad(loss.sum(), leaves, allow_unused=True, materialize_grads=True))
        if beside is not None:
            beside.end()
        with torch.no_grad():
            failed = self.alive & ~torch.isfinite(loss)
            self.failed_at.copy_(torch.where(failed, now, self.failed_at))
            for name in phase.updates:
                self._update(name, phase, number, {part: next(slopes) for part in views[name]}, now)
            self._move(fresh)
        return {name: part.detach() for name, part in made.items()} or code

    def _beside(self) -> Stream | None:
        if self.device.type != "cuda":
            return None
        if self.stream is None:
            self.stream = Stream(self.device)
        return self.stream

    def _update(self, name: str, phase: Phase, number: int, slopes: Tensors, now: Tensor) -> None:
        stack, rate = self.stacks[name], rates_of(self.groups[0], number, self.learning_rate)
        given = StackedUpdate(stack.layout.rows(slopes), rate, phase.count(now), self.alive)
        self._optimiser(phase).update_stack(stack.parameters, stack.state, given)

    def _move(self, fresh: Held) -> None:
        alive = self.alive[:, None]
        for name, tensors in fresh.items():
            stack = self.stacks[name]
            if tensors and stack.moving.names:
                moved = stack.moving.rows({**stack.buffers, **tensors})
                stack.moved.copy_(torch.where(alive, moved, stack.moved))
            for part in stack.others.keys() & tensors.keys():
                buffer = stack.others[part]
                buffer.copy_(torch.where(_along(self.alive, buffer), tensors[part], buffer))

    def _optimiser(self, phase: Phase) -> Optimiser:
        return phase.optimiser or self.members.experiments[0].optimiser


def new_mapped_fleet(members: Members, n_examples: int, form: Form) -> MappedFleet:
    """A fleet before its first step; every member starts as it would alone."""
    first, n = members.experiments[0], len(members.experiments)
    device = torch.device(first.plan.device)
    with device:
        made = [
            new_networks(one.objective, one.architecture(form.shape, form.labels), one.init, one.seed)
            for one in members.experiments
        ]
    for one, networks in zip(members.experiments, made):
        fill_given(one.objective, networks)
    phases = first.objective.phases()
    optimisers = {name: phase.optimiser or first.optimiser for phase in phases for name in phase.updates}
    stacks = {name: _stack([networks[name] for networks in made], optimisers.get(name)) for name in made[0]}
    scalars = scalars_of([experiment.objective for experiment in members.experiments], device)
    failed_terms = torch.zeros(n, MOST_TERMS, device=device)
    group = Group(slice(0, n), first.objective, scalars, first.latents, first.warmup, {}, failed_terms)
    nowhere = torch.full((n,), -1, dtype=torch.int64, device=device)
    rates = scalars_of([experiment.optimiser for experiment in members.experiments], device)["learning_rate"]
    fleet = MappedFleet(members, n_examples, Losses(made[0]), stacks, [group], nowhere, {}, nowhere.clone(), rates)
    fleet.good = _copied(fleet._kept())
    return fleet


def _stack(networks: list[nn.Module], optimiser: Optimiser | None) -> Stack:
    # libraries choose a product by where its numbers begin: that must not depend on a model's place in the stack
    layout = layout_of(networks[0], aligned=True)
    parameters = torch.stack([layout.row(dict(network.named_parameters())) for network in networks])
    moving = layout_of(networks[0], aligned=True, buffers=True)
    held = [dict(network.named_buffers()) for network in networks]
    rows = [moving.row(buffers) for buffers in held] if moving.names else []
    moved = torch.stack(rows) if rows else parameters.new_zeros(len(networks), 0)
    others = {name: torch.stack([one[name] for one in held]) for name in held[0].keys() - set(moving.names)}
    state = optimiser.start_stack(parameters, layout) if optimiser else {}
    return Stack(layout, parameters, state, moving, moved, others)


def _copied(held: Held) -> Held:
    return {name: {part: tensor.clone() for part, tensor in parts.items()} for name, parts in held.items()}


def _parts_of(code: Code) -> Tensors:
    held = {field.name: getattr(code, field.name) for field in dataclasses.fields(code)}
    return {name: value for name, value in held.items() if value is not None}


def _record(group: Group, code: Tensors) -> None:
    def one(terms: Terms, code: Tensors) -> Tensor:
        return summary(terms, Code(**code) if code else None)

    group.columns = columns({name: term[0] for name, term in group.terms.items()}, group.latents if code else 0)
    group.row = torch.vmap(one)(group.terms, code)


def _along(alive: Bool[Tensor, " model"], like: Tensor) -> Any:
    return alive.view(-1, *(1 for _ in range(like.dim() - 1)))
