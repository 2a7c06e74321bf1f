"""The fleet: many models trained in lockstep, each the model it would be alone.

All state has a leading ``model`` axis. The maths of an objective stays that of one model: `training.step.losses`
is mapped over the axis. A model whose loss is no longer finite is frozen; the others do not notice.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from unweave.models import VAE, Objective
from unweave.models.kernels.codes import Codes
from unweave.models.kernels.layout import Layout
from unweave.models.objectives import Context, Terms
from unweave.models.optimisers import StackedUpdate, Tensors
from unweave.models.posteriors import Code
from unweave.rng import Purpose
from unweave.shapes import Bool, Float, Int, Tensor
from unweave.training.batches import Batch
from unweave.training.experiment import Experiment
from unweave.training.fleet_batches import Source, images, stored
from unweave.training.fleet_discriminators import Discriminators, discriminators_of
from unweave.training.fleet_members import Members, scalars_of
from unweave.training.fleet_portable import Judge
from unweave.training.step import columns, losses, new_learner, summary

MOST_TERMS = 16
"""Loss terms kept of a model that failed, so that the report can name the one to blame."""


@runtime_checkable
class Engine(Protocol):
    """What computes the gradients of a stack: the portable one, or GPU kernels."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def reads_stored(self) -> bool: ...

    def weights(self, parameters: Tensor) -> Float[Tensor, "model size"]: ...

    def gradients(
        self, parameters: Tensor, weights: Tensor, examples: Tensor, noise: Tensor, judge: Judge
    ) -> tuple[Float[Tensor, "model size"], Codes]: ...

    def code(self, weights: Tensor, examples: Tensor, noise: Tensor) -> Codes: ...

    def discriminators(self, module: nn.Module) -> Any: ...


@dataclass
class Group:
    """Neighbours in the stack with the same objective (but for its scalars) and the same latent size."""

    place: slice
    objective: Objective
    scalars: dict[str, Float[Tensor, " model"]]
    latents: int
    warmup: int
    discriminators: Discriminators | None
    failed_terms: Float[Tensor, "model term"]
    terms: Tensors
    columns: list[str]
    row: Float[Tensor, "model column"] | None = None


@dataclass
class Fleet:
    """A stack of models in training.

    ``weights`` is what the engine reads: the parameters themselves, or a rounded copy that every update renews.
    ``failed_at`` is −1 for a healthy model, else the step that it did not survive.
    """

    members: Members
    engine: Engine
    n_examples: int
    parameters: Float[Tensor, "model size"]
    weights: Float[Tensor, "model size"]
    optimiser_state: Tensors
    learning_rate: Float[Tensor, " model"]
    groups: list[Group]
    failed_at: Int[Tensor, " model"]

    @property
    def alive(self) -> Bool[Tensor, " model"]:
        """Which models are still healthy."""
        return self.failed_at < 0


def new_fleet(members: Members, engine: Engine, n_examples: int, shape: tuple[int, ...]) -> Fleet:
    """A fleet before its first step; every member starts as it would alone."""
    device = torch.device(members.experiments[0].plan.device)
    rows, discriminators = [], []
    # on the device itself: counter-based draws are the same everywhere, and there they are quick
    with device:
        for experiment in members.experiments:
            learner = new_learner(experiment, shape, n_examples)
            rows.append(engine.layout.row(dict(learner.model.named_parameters())))
            discriminators.append(learner.discriminator)
    parameters = torch.stack(rows)
    optimiser = members.experiments[0].optimiser
    return Fleet(
        members,
        engine,
        n_examples,
        parameters,
        engine.weights(parameters),
        optimiser.start_stack(parameters),
        scalars_of([experiment.optimiser for experiment in members.experiments], device)["learning_rate"],
        [_group(members.experiments[place], place, discriminators[place], engine, device) for place in members.groups],
        torch.full((len(rows),), -1, dtype=torch.int64, device=device),
    )


def advance(fleet: Fleet, source: Source, draws: dict[str, Tensor], *, record: bool) -> None:
    """One update of every healthy model and its discriminator. With ``record``, groups keep a row for the history."""
    step = draws["steps"]
    examples = _examples(fleet, source, draws["places"], step, Purpose.NUISANCE)
    judge = judge_with(fleet, step)
    gradients, code = fleet.engine.gradients(fleet.parameters, fleet.weights, examples, draws["noise"], judge)
    with torch.no_grad():
        finite = torch.cat([torch.isfinite(group.terms["loss"]) for group in fleet.groups])
        good = fleet.alive & finite
        fleet.failed_at.copy_(torch.where(fleet.alive & ~finite, step, fleet.failed_at))
        rounded = None if fleet.weights is fleet.parameters else fleet.weights
        given = StackedUpdate(gradients, fleet.learning_rate, step + 1, good, rounded)
        fleet.members.experiments[0].optimiser.update_stack(fleet.parameters, fleet.optimiser_state, given)
    for group in fleet.groups:
        if group.discriminators is not None:
            _advance_discriminators(fleet, group, source, draws, code, good)
        _keep_failed(group, fleet.failed_at[group.place] == step)
        if record:
            _record(group, code)


def judge_with(fleet: Fleet, step: Int[Tensor, ""]) -> Judge:
    """What an engine asks for: from all codes and reconstruction losses to the sum of all losses."""

    def judge(code: Codes, reconstructions: Tensor) -> Tensor:
        return torch.stack([_judge(fleet, group, code, reconstructions, step) for group in fleet.groups]).sum()

    return judge


@torch.no_grad()
def set_state(fleet: Fleet, tensors: Tensors) -> None:
    """Bring a fleet to a state that :func:`state_tensors` gave."""
    for name, target in state_tensors(fleet).items():
        target.copy_(tensors[name])
    if fleet.weights is not fleet.parameters:
        fleet.weights.copy_(fleet.parameters)
    for group in fleet.groups:
        if group.discriminators is not None:
            group.discriminators.renew()


def state_tensors(fleet: Fleet) -> Tensors:
    """Every tensor of a fleet by name; writing into them changes the fleet."""
    tensors = {"parameters": fleet.parameters, "failed_at": fleet.failed_at}
    tensors |= {f"optimiser/{name}": tensor for name, tensor in fleet.optimiser_state.items()}
    for number, group in enumerate(fleet.groups):
        tensors[f"group{number}/failed_terms"] = group.failed_terms
        if group.discriminators is not None:
            tensors[f"group{number}/discriminator"] = group.discriminators.parameters
            tensors |= {f"group{number}/optimiser/{n}": tensor for n, tensor in group.discriminators.state.items()}
    return tensors


def template_of(members: Members, shape: tuple[int, ...]) -> VAE:
    """A model of the fleet's structure, wide enough for every member's code. Its weights are never used."""
    first = members.experiments[0]
    with torch.device("meta"):
        return _structure(replace(first, latents=members.latents), shape)


def _structure(experiment: Experiment, shape: tuple[int, ...]) -> VAE:
    # the initial draws on the meta device cost nothing
    return VAE(experiment.architecture(shape), experiment.init, experiment.seed)


def _group(
    experiments: tuple[Experiment, ...],
    place: slice,
    modules: list[nn.Module | None],
    engine: Engine,
    device: torch.device,
) -> Group:
    first = experiments[0]
    return Group(
        place,
        first.objective,
        scalars_of([experiment.objective for experiment in experiments], device),
        first.latents,
        first.warmup,
        discriminators_of([module for module in modules if module is not None], engine.discriminators),
        torch.zeros(len(experiments), MOST_TERMS, device=device),
        {},
        [],
    )


def _examples(fleet: Fleet, source: Source, places: Tensor, step: Tensor, purpose: Purpose) -> Tensor:
    if fleet.engine.reads_stored and source.data.nuisance is None and source.data.composition is None:
        return stored(source, places)
    return images(source, places, step, purpose)


def _judge(fleet: Fleet, group: Group, code: Codes, reconstructions: Tensor, step: Tensor) -> Tensor:
    """The summed loss of a group; its terms are kept aside."""
    others = group.discriminators
    parameters = {} if others is None else others.begin()
    mapped = (_own(group, code), reconstructions[group.place], group.scalars, parameters)

    def one(fields: tuple[Tensor, ...], reconstruction: Tensor, scalars: Tensors, parameters: Tensors) -> Terms:
        objective = replace(group.objective, **scalars)  # type: ignore[type-var]
        context = Context(step, fleet.n_examples, None if others is None else others.single(parameters))
        batch = Batch(fields[0], fields[0])  # the forward pass was made for the whole stack already
        terms, _ = losses(objective, lambda *_: (Code(*fields), reconstruction), batch, context, group.warmup)
        return terms

    terms = torch.vmap(one, chunk_size=None if others is None else others.portion)(*mapped)
    group.terms = {name: term.detach() for name, term in terms.items()}
    total: Tensor = terms["loss"].sum()
    return total


def _advance_discriminators(
    fleet: Fleet, group: Group, source: Source, draws: dict[str, Tensor], code: Codes, good: Bool[Tensor, " model"]
) -> None:
    assert group.discriminators is not None
    place, objective = group.place, group.objective
    joint = other = code.sampled[place, :, : group.latents]
    if objective.needs_second_batch:
        second = _examples(fleet, source, draws["second_places"], draws["steps"], Purpose.SECOND_NUISANCE)
        second_code = fleet.engine.code(fleet.weights[place], second[place], draws["second_noise"][place])
        other = second_code.sampled[..., : group.latents]
    rate = group.scalars.get("learning_rate", torch.full_like(fleet.learning_rate[place], 1e-4)).detach()
    codes = (joint, other, draws["permutation"][place, :, : group.latents])
    found = group.discriminators.learn(objective, codes, rate, draws["steps"] + 1, good[place])
    group.terms = group.terms | {"discriminator": found}


@torch.no_grad()
def _keep_failed(group: Group, now: Bool[Tensor, " model"]) -> None:
    if now.device.type == "cpu" and not bool(now.any()):
        return
    terms = torch.stack(list(group.terms.values()), dim=1)[:, :MOST_TERMS]
    kept = group.failed_terms[:, : terms.shape[1]]
    kept.copy_(torch.where(now[:, None], terms, kept))


def _record(group: Group, code: Codes) -> None:
    def one(terms: Terms, fields: tuple[Tensor, ...]) -> Tensor:
        return summary(terms, Code(*fields))

    group.columns = columns({name: term[0] for name, term in group.terms.items()}, group.latents)
    group.row = torch.vmap(one)(group.terms, _own(group, code))


def _own(group: Group, code: Codes) -> tuple[Tensor, ...]:
    return tuple(field[group.place, :, : group.latents] for field in code)
