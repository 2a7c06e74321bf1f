"""The fleet: many models trained in lockstep, each the model it would be alone.

All state has a leading ``model`` axis. The maths of a method stays that of one model: the losses of its phases are
mapped over the axis. A model whose loss is no longer finite is frozen; the others do not notice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import nn

from unweave.models import Autoencoder, Method
from unweave.models.initialise import initial_values
from unweave.models.kernels.aside import aside, in_turn
from unweave.models.kernels.chosen import Chosen
from unweave.models.kernels.stacked_code import Early, StackedCode, TotalLoss, Weighed
from unweave.models.objectives import MODEL, Batch, Context, Phase, Terms, new_networks
from unweave.models.objectives.objective import known_by_totals, known_by_weights, warmed
from unweave.models.optimisers import StackedUpdate, Tensors
from unweave.models.posteriors import Code
from unweave.shapes import Bool, Float, Int, Tensor
from unweave.training.batches import Draws, Source, chosen, images, stored
from unweave.training.engine import columns, summary
from unweave.training.experiment import Experiment, Form
from unweave.training.fleet.backend import Backend
from unweave.training.fleet.members import ALIKE, Members, group_key, scalars_of
from unweave.training.fleet.networks import StackedNetwork, stacked_network

MOST_TERMS = 16
"""Loss terms kept of a model that failed, so that the report can name the one to blame."""


@dataclass
class Group:
    """Neighbours in the stack with the same method (but for its scalars); ``latents`` of the largest code among them.

    ``networks`` are those beside the model, by name. ``doubles`` are added to the members only where their losses are
    computed, see :func:`unweave.training.fleet.members.arrange`. With ``totals`` the backend's kernels sum what the
    losses see, and members may differ in their latents. ``weights`` say what its terms
    are of these sums, where they are nothing but sums times numbers.
    """

    place: slice
    method: Method
    scalars: dict[str, Float[Tensor, " model"]]
    latents: int
    warmup: int
    networks: dict[str, StackedNetwork]
    failed_terms: Float[Tensor, "model term"]
    doubles: int = 0
    totals: bool = False
    weights: "Weights | None" = None
    terms: Tensors = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    row: Float[Tensor, "model column"] | None = None


class Weights(NamedTuple):
    """What every term is times the mean reconstruction loss, and times the total KL: NaN where it is not made of that.

    The first term is the loss.
    """

    terms: tuple[str, ...]
    values: Float[Tensor, "model term 2"]


@dataclass
class Fleet:
    """A stack of models in training.

    ``weights`` is what the backend reads: the parameters themselves, or a rounded copy that every update renews.
    ``failed_at`` is −1 for a healthy model, else the step that it did not survive. ``good`` are the parameters of the
    last recorded step ``good_at`` that gave a finite loss.
    """

    members: Members
    backend: Backend
    n_examples: int
    parameters: Float[Tensor, "model size"]
    weights: Float[Tensor, "model size"]
    optimiser_state: Tensors
    learning_rate: Float[Tensor, " model"]
    groups: list[Group]
    failed_at: Int[Tensor, " model"]
    good: Float[Tensor, "model size"]
    good_at: Int[Tensor, " model"]
    slopes: dict[int, tuple[Float[Tensor, "model batch"], Float[Tensor, " model"]]] = field(default_factory=dict)
    """Of weighed losses by every reconstruction loss and every KL, by the size of a batch."""
    shapes: dict[int, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    """Of the parameters of a member, by its latents."""

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def device(self) -> torch.device:
        return self.parameters.device

    @property
    def alive(self) -> Bool[Tensor, " model"]:
        """Which models are still healthy."""
        return self.failed_at < 0

    def advance(self, source: Source, draws: Draws, *, record: bool, step: int) -> None:
        """One step; see :func:`advance`."""
        advance(self, source, draws, record=record, step=step)

    def state_tensors(self) -> Tensors:
        """Every tensor of the fleet by name; writing into them changes it."""
        return state_tensors(self)

    def set_state(self, tensors: Tensors) -> None:
        """Bring the fleet to a state that :meth:`state_tensors` gave."""
        set_state(self, tensors)

    def weights_of(self, place: int, experiment: Experiment, form: Form, *, good: bool = False) -> Tensors:
        """A member's parameters in their own shapes, on the CPU: a code narrower than the stack's is cut out of it."""
        if experiment.latents not in self.shapes:
            with torch.device("meta"):
                own = Autoencoder(experiment.architecture(form.shape), None).named_parameters()
            self.shapes[experiment.latents] = {name: tuple(like.shape) for name, like in own}
        # a row at once is one copy from a GPU, and not one for each parameter
        row = (self.good if good else self.parameters)[place : place + 1].detach().cpu()
        views = self.backend.layout.views(row)
        shapes = self.shapes[experiment.latents].items()
        return {name: views[name][0][tuple(slice(0, n) for n in shape)] for name, shape in shapes}


def new_fleet(members: Members, backend: Backend, n_examples: int, shape: tuple[int, ...]) -> Fleet:
    """A fleet before its first step; every member starts as it would alone."""
    device = torch.device(members.experiments[0].plan.device)
    # on the device itself: counter-based draws are the same everywhere, and there they are quick
    with device:
        parameters, others = _drawn_together(members, backend, shape, device) or _drawn(members, backend, shape)
    optimiser = members.experiments[0].optimiser
    nowhere = torch.full((len(parameters),), -1, dtype=torch.int64, device=device)
    return Fleet(
        members,
        backend,
        n_examples,
        parameters,
        backend.weights(parameters),
        optimiser.start_stack(parameters, backend.layout),
        scalars_of([experiment.optimiser for experiment in members.experiments], device)["learning_rate"],
        [_group(members.experiments[place], place, others[place], backend, device) for place in members.groups],
        nowhere,
        parameters.clone(),
        nowhere.clone(),
    )


Others = list[dict[str, nn.Module]]
"""The networks beside each member's model, by name."""


def _drawn(members: Members, backend: Backend, shape: tuple[int, ...]) -> tuple[Float[Tensor, "model size"], Others]:
    """Every member's first parameters, and the networks beside it."""
    rows, others = [], []
    for one in members.experiments:
        networks = new_networks(one.objective, one.architecture(shape), one.init, one.seed)
        rows.append(backend.layout.row(dict(networks.pop(MODEL).named_parameters())))
        others.append(networks)
    return torch.stack(rows), others


def _drawn_together(
    members: Members, backend: Backend, shape: tuple[int, ...], device: torch.device
) -> tuple[Float[Tensor, "model size"], Others] | None:
    """The same for all members of one structure at once; None where a method has other networks, or weights as made."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(members.experiments):
        kinds.setdefault((group_key(one), one.init), []).append(place)
    parameters = torch.zeros(len(members.experiments), backend.layout.size, device=device)
    views = backend.layout.views(parameters)
    for places in kinds.values():
        first = members.experiments[places[0]]
        with torch.device("meta"):
            networks = first.objective.networks(first.architecture(shape))
        seeds = torch.tensor([members.experiments[place].seed for place in places], device=device)
        values = initial_values(networks[MODEL], first.init, seeds) if list(networks) == [MODEL] else None
        if values is None:
            return None
        at = torch.tensor(places, device=device)
        for name, drawn in values.items():
            # a smaller one (fewer latents) fills the beginning of its axes
            own: tuple[Any, ...] = (at, *(slice(0, size) for size in drawn.shape[1:]))
            views[name][own] = drawn
    return parameters, [{} for _ in members.experiments]


def advance(fleet: Fleet, source: Source, draws: Draws, *, record: bool, step: int = 0) -> None:
    """One update of every healthy model and of the networks beside it. With ``record``, groups keep a row.

    ``step`` decides which phases are due; the same number on the device, for arithmetic, is among the draws.
    """
    now = draws["steps"]
    before = fleet.parameters.clone() if record else None
    examples = _examples(fleet, source, draws, "images")
    beside = _Beside(fleet, now)
    losses = beside.weighed(source.first.batch_size) or total_loss_of(fleet, draws, beside.judge)
    noise = fleet.groups[0].method.posterior_noise(draws)  # members share their posterior
    gradients, code = fleet.backend.gradients(
        fleet.parameters, fleet.weights, examples, noise, losses, Early(beside.early_update, beside.inside)
    )
    good = beside.join()
    with torch.no_grad():
        beside.update(gradients)
        if before is not None:
            fleet.good.copy_(torch.where(good[:, None], before, fleet.good))
            fleet.good_at.copy_(torch.where(good, now, fleet.good_at))
    for group in fleet.groups:
        for number, phase in enumerate(group.method.phases()):
            if MODEL not in phase.updates and phase.due(step):
                _advance_others(fleet, group, number, source, draws, code, good)
        if len(group.method.phases()) > 1:
            keep_failed(group, fleet.failed_at[group.place] == now)
        if record:
            record_row(group, code)


class _Beside:
    """What a step can do while its gradients are made: ask which losses are finite, prepare the update and begin it."""

    def __init__(self, fleet: Fleet, now: Tensor) -> None:
        self.fleet, self.now = fleet, now
        self.side = aside(len(fleet.parameters), fleet.device)
        self.optimiser = fleet.members.experiments[0].optimiser
        self.end = fleet.parameters.shape[1]
        """Columns from here on are updated already."""
        self._later(self._prepare)

    def weighed(self, n_batch: int) -> Weighed | None:
        """The slopes of all losses, where these are weighed totals."""
        fleet = self.fleet
        if any(group.weights is None for group in fleet.groups):
            return None
        if n_batch not in fleet.slopes:
            fleet.slopes[n_batch] = _slopes_of(fleet, n_batch)
        by_reconstruction, by_kl = fleet.slopes[n_batch]
        if any(group.warmup for group in fleet.groups):
            held = [(group, group.weights.values) for group in fleet.groups if group.weights is not None]
            by_kl = torch.cat([_share(group, self.now) * values[:, 0, 1] for group, values in held]) / n_batch
        return Weighed(by_kl, by_reconstruction, lambda *seen: self._later(self._weigh, *seen))

    def judge(self) -> None:
        """Once all losses are known."""
        self._later(self._judge)

    @torch.no_grad()
    def early_update(self, gradients: Float[Tensor, "model size"], begin: int) -> None:
        """Update all columns from some on."""
        if self.optimiser.by_columns:
            self.update(gradients, begin)

    @torch.no_grad()
    def inside(self) -> Any:
        """What a kernel needs that updates parameters where it makes their gradients."""
        fleet, good = self.fleet, self.join()
        found = self.optimiser.inside(
            fleet.parameters, fleet.optimiser_state, fleet.learning_rate, self.prepared, good,
            None if fleet.weights is fleet.parameters else fleet.weights,
        )  # fmt: skip
        self.end = self.end if found is None else 0
        return found

    def update(self, gradients: Float[Tensor, "model size"] | None, begin: int = 0) -> None:
        """Update the columns from some on that were not updated yet."""
        if self.end == begin:
            return
        assert gradients is not None
        fleet, own = self.fleet, slice(begin, self.end)
        rounded = None if fleet.weights is fleet.parameters else fleet.weights[:, own]
        given = StackedUpdate(
            gradients[:, own],
            fleet.learning_rate,
            self.count,
            self.good,
            rounded,
            self.prepared,
            fleet.name == "kernels",
        )
        whole = own == slice(0, fleet.parameters.shape[1])
        state = {name: part if whole else part[:, own] for name, part in fleet.optimiser_state.items()}
        self.optimiser.update_stack(fleet.parameters[:, own], state, given)
        self.end = begin

    def join(self) -> Bool[Tensor, " model"]:
        """Which models go on; from here on all is done that was done beside."""
        if self.side is not None:
            self.side.join()
        return self.good

    def _later(self, function: Callable[..., None], *given: Tensor) -> None:
        (self.side or in_turn)(function, *given)

    @torch.no_grad()
    def _prepare(self) -> None:
        self.count = self.now + 1
        self.prepared = self.optimiser.prepared(self.count)

    @torch.no_grad()
    def _judge(self) -> None:
        fleet, now = self.fleet, self.now
        finite = torch.cat([torch.isfinite(group.terms["loss"]) for group in fleet.groups])
        self.good = fleet.alive & finite
        fleet.failed_at.copy_(torch.where(fleet.alive & ~finite, now, fleet.failed_at))
        for group in fleet.groups:
            if len(group.method.phases()) == 1:
                keep_failed(group, fleet.failed_at[group.place] == now)

    @torch.no_grad()
    def _weigh(self, kl: Float[Tensor, "model batch latent"], reconstructions: Float[Tensor, "model batch"]) -> None:
        """The same where losses are weighed totals, and their terms."""
        from unweave.models.kernels.weighed import weigh

        fleet = self.fleet
        self.good = torch.empty_like(fleet.failed_at, dtype=torch.bool)
        for group in fleet.groups:
            own = group.place
            share = _share(group, self.now) if group.warmup else None
            assert group.weights is not None
            names, weights = group.weights
            terms = weigh(
                kl[own], reconstructions[own], weights, share, self.now, fleet.failed_at[own], group.failed_terms,
                self.good[own],
            )  # fmt: skip
            group.terms = dict(zip(names, terms.unbind(1)))


def _share(group: Group, now: Int[Tensor, ""]) -> Float[Tensor, ""]:
    """How much of a regulariser counts already."""
    if not group.warmup:
        return torch.ones((), device=now.device)
    return torch.as_tensor(warmed(now, group.warmup), device=now.device)


def _slopes_of(fleet: Fleet, n_batch: int) -> tuple[Float[Tensor, "model batch"], Float[Tensor, " model"]]:
    """The slopes of the losses by every reconstruction loss, and by every KL once all of it counts."""
    held = [group.weights.values for group in fleet.groups if group.weights is not None]
    by_reconstruction, by_kl = (torch.cat(held)[:, 0] / n_batch).nan_to_num().unbind(1)
    return by_reconstruction[:, None].expand(-1, n_batch).contiguous(), by_kl.contiguous()


def _weights(group: Group) -> Weights:
    """From the lines of the method itself: what a term makes of a one is its weight, and of NaN whether it has one."""
    one, names = torch.ones(_n(group), device=group.failed_terms.device), list[str]()

    def terms(reconstruction: Tensor, kl: Tensor) -> Float[Tensor, "model term"]:
        summed = {"reconstruction": reconstruction.expand_as(one), "kl": kl.expand_as(one)}
        found = _terms_of_totals(group, summed, Context())
        names[:] = found
        return torch.stack(list(found.values()), 1)

    nothing = torch.zeros_like(one)
    sides = ((one, nothing), (nothing, one))
    values = [
        torch.where(terms(a.where(a == 0, torch.nan), b.where(b == 0, torch.nan)).isnan(), terms(a, b), torch.nan)
        for a, b in sides
    ]
    return Weights(tuple(names), torch.stack(values, 2))


def _n(group: Group) -> int:
    return group.place.stop - group.place.start


def total_loss_of(fleet: Fleet, draws: Draws, known: Callable[[], None] = lambda: None) -> TotalLoss:
    """What a backend asks for: from all codes and reconstruction losses to the sum of all losses.

    ``known`` is called once every model's own loss is.
    """

    def total(code: StackedCode, reconstructions: Tensor) -> Tensor:
        summed = _totals(fleet, code, reconstructions)
        losses = [
            _loss_of_totals(fleet, group, summed, draws)
            if group.totals
            else _loss(fleet, group, code, reconstructions, draws)
            for group in fleet.groups
        ]
        known()
        return torch.stack(losses).sum() if len(losses) > 1 else losses[0]

    return total


@torch.no_grad()
def set_state(fleet: Fleet, tensors: Tensors) -> None:
    """Bring a fleet to a state that :func:`state_tensors` gave."""
    for name, target in state_tensors(fleet).items():
        if name in tensors:  # what version 0.1.0 did not keep begins anew
            target.copy_(tensors[name])
    if fleet.weights is not fleet.parameters:
        fleet.weights.copy_(fleet.parameters)
    for group in fleet.groups:
        for network in group.networks.values():
            network.renew()


def state_tensors(fleet: Fleet) -> Tensors:
    """Every tensor of a fleet by name; writing into them changes the fleet."""
    tensors = {"parameters": fleet.parameters, "failed_at": fleet.failed_at}
    tensors |= {"good": fleet.good, "good_at": fleet.good_at}
    tensors |= {f"optimiser/{name}": tensor for name, tensor in fleet.optimiser_state.items()}
    for number, group in enumerate(fleet.groups):
        tensors[f"group{number}/failed_terms"] = group.failed_terms
        for name, network in group.networks.items():
            tensors[f"group{number}/{name}"] = network.parameters
            tensors |= {f"group{number}/{name}_optimiser/{n}": tensor for n, tensor in network.state.items()}
    return tensors


def template_of(members: Members, shape: tuple[int, ...]) -> Autoencoder:
    """A model of the fleet's structure, wide enough for every member's code. Its weights are never used."""
    first = replace(members.experiments[0], latents=members.latents)
    with torch.device("meta"):
        template = first.objective.networks(first.architecture(shape))[MODEL]
    assert isinstance(template, Autoencoder)
    return template


def _group(
    experiments: tuple[Experiment, ...],
    place: slice,
    modules: list[dict[str, nn.Module]],
    backend: Backend,
    device: torch.device,
) -> Group:
    first, n_doubles = experiments[0], max(0, ALIKE - len(experiments)) if device.type == "cuda" else 0
    totals = backend.name == "kernels" and known_by_totals(first.objective)
    updated = {name: phase for phase in first.objective.phases() for name in phase.updates if name != MODEL}
    networks = {
        name: stacked_network([each[name] for each in modules], phase.optimiser or first.optimiser, backend.network)
        for name, phase in updated.items()
    }
    group = Group(
        place,
        first.objective,
        scalars_of([experiment.objective for experiment in experiments], device),
        max(experiment.latents for experiment in experiments),
        first.warmup,
        networks,
        torch.zeros(len(experiments), MOST_TERMS, device=device),
        0 if totals else n_doubles,  # numbers alone need no company
        totals,
    )
    group.weights = _weights(group) if totals and known_by_weights(first.objective) else None
    return group


def _examples(fleet: Fleet, source: Source, draws: Draws, part: str) -> Tensor | Chosen:
    if fleet.backend.reads_stored and source.data.comes_as_stored:
        return chosen(source, draws, part) if fleet.backend.gathers else stored(source, draws, part)
    return images(source, draws, part)


@dataclass(frozen=True)
class _Passed:
    """Stands for the model of one member in a loss: the passes were made for the whole stack already."""

    seen: tuple[Code, Tensor] | None = None
    encoded: Code | None = None

    def __call__(self, *_: Any) -> tuple[Code, Tensor]:
        assert self.seen is not None
        return self.seen

    def code(self, *_: Any) -> Code:
        assert self.encoded is not None
        return self.encoded


class _Parts(dict[str, Tensor]):
    """A member's batch in a loss; parts that went through the model already are not there any more."""

    def __missing__(self, part: str) -> None:
        return None


def _loss(fleet: Fleet, group: Group, code: StackedCode, reconstructions: Tensor, draws: Draws) -> Tensor:
    """The summed loss of a group's models; its terms are kept aside."""
    number, phase = next((n, p) for n, p in enumerate(group.method.phases()) if MODEL in p.updates)
    own = {name: network.begin() for name, network in group.networks.items()}

    def one(fields: tuple[Tensor, ...], reconstruction: Tensor, scalars: Tensors, own: Any, parts: Batch) -> Terms:
        networks = _networks(group, own, _Passed(seen=(Code(*fields), reconstruction)))
        context = Context(draws["steps"], fleet.n_examples, group.warmup, networks)
        return _phase(group, number, scalars).loss(_Parts(parts), context)[0]

    mapped = (_own(group, code), reconstructions[group.place], group.scalars, own, _parts(group, phase, draws))
    terms = _each(group, one, mapped)
    group.terms = {name: term.detach() for name, term in terms.items()}
    total: Tensor = terms["loss"].sum()
    return total


def _totals(fleet: Fleet, code: StackedCode, reconstructions: Tensor) -> dict[str, Tensor]:
    """Every model's total KL and mean reconstruction loss, where some loss sees no more."""
    if not any(group.totals for group in fleet.groups):
        return {}
    from unweave.models.kernels.posterior import Totals

    kl, reconstruction = Totals.apply(code.kl, reconstructions)
    return {"kl": kl, "reconstruction": reconstruction}


def _loss_of_totals(fleet: Fleet, group: Group, summed: Tensors, draws: Draws) -> Tensor:
    """The same loss from two numbers a model."""
    context = Context(draws["steps"], fleet.n_examples, group.warmup)
    terms = _terms_of_totals(group, {name: each[group.place] for name, each in summed.items()}, context)
    group.terms = {name: term.detach() for name, term in terms.items()}
    total: Tensor = terms["loss"].sum()
    return total


def _terms_of_totals(group: Group, summed: Tensors, context: Context) -> Tensors:
    """Every member's terms from its total KL and mean reconstruction loss."""
    nothing = torch.empty(0)

    def one(summed: Tensors, scalars: Tensors) -> Terms:
        code = Code(nothing, nothing, nothing, summed["kl"])
        networks = {MODEL: _Passed(seen=(code, summed["reconstruction"]))}
        return _phase(group, 0, scalars).loss(_Parts({}), replace(context, networks=networks))[0]

    found: Tensors = torch.vmap(one)(summed, group.scalars)
    return found


def _each(group: Group, one: Callable[..., Terms], mapped: tuple[Any, ...]) -> Tensors:
    """The terms of every member; with doubles, in a stack that is long enough to give everyone's bits."""
    n = group.place.stop - group.place.start
    found = torch.vmap(one, chunk_size=_portion(group))(*(_filled(given, group.doubles) for given in mapped))
    return {name: term[:n] for name, term in found.items()} if group.doubles else found


def _filled(held: Any, doubles: int) -> Any:
    """Stacked tensors with so many doubles of their first rows."""
    if not doubles:
        return held
    if isinstance(held, Tensor):
        return torch.cat([held, held[:1].detach().expand(doubles, *held.shape[1:])])
    if isinstance(held, Mapping):
        return {name: _filled(part, doubles) for name, part in held.items()}
    return tuple(_filled(part, doubles) for part in held)


def _advance_others(
    fleet: Fleet,
    group: Group,
    number: int,
    source: Source,
    draws: Draws,
    code: StackedCode,
    good: Bool[Tensor, " model"],
) -> None:
    """One update of the network beside each model that a phase trains."""
    phase = group.method.phases()[number]
    (updated,) = phase.updates
    encoded = _encoded(fleet, group, phase, source, draws)

    def one(
        learning: Tensors, fields: tuple[Tensor, ...], encoded: tuple[Tensor, ...], scalars: Tensors, parts: Batch
    ) -> Terms:
        passed = _Passed(encoded=Code(*encoded) if encoded else None)
        networks = _networks(group, {updated: learning}, passed)
        context = Context(draws["steps"], fleet.n_examples, group.warmup, networks, Code(*fields))
        return _phase(group, number, scalars).loss(_Parts(parts), context)[0]

    def loss(learning: Tensors) -> Float[Tensor, " model"]:
        mapped = (learning, _own(group, code), encoded, group.scalars, _parts(group, phase, draws))
        terms = torch.vmap(one, chunk_size=_portion(group))(*mapped)
        group.terms = group.terms | {name: term.detach() for name, term in terms.items()}
        minimised: Tensor = terms[phase.minimises]
        return minimised

    optimiser = phase.optimiser or fleet.members.experiments[0].optimiser
    rate = rates_of(group, number, fleet.learning_rate[group.place])
    group.networks[updated].learn(loss, optimiser, rate, phase.count(draws["steps"]), good[group.place])


def rates_of(group: Group, number: int, usual: Float[Tensor, " model"]) -> Float[Tensor, " model"]:
    """Every member's learning rate in a phase: that of the phase's own optimiser, or the usual one."""
    # with all members' scalars at once, the optimiser's learning rate is all members' too
    own = _phase(group, number, group.scalars).optimiser
    if own is None:
        return usual
    return torch.as_tensor(own.learning_rate, device=usual.device).detach().expand(usual.shape)


def _encoded(fleet: Fleet, group: Group, phase: Phase, source: Source, draws: Draws) -> tuple[Tensor, ...]:
    """The codes of what a phase only encodes."""
    if phase.encodes is None:
        return ()
    pictures, noise = phase.encodes
    seen = _examples(fleet, source, draws, pictures)
    own = Chosen(seen.store, seen.places[group.place]) if isinstance(seen, Chosen) else seen[group.place]
    code = fleet.backend.code(fleet.weights[group.place], own, draws[noise][group.place])
    return tuple(field[..., : group.latents] for field in code)


def _phase(group: Group, number: int, scalars: Mapping[str, Tensor]) -> Phase:
    """A phase of the group's method with these scalars: one member's inside a map, all members' outside."""
    return replace(group.method, **scalars).phases()[number]  # type: ignore[type-var]


def _networks(group: Group, own: Mapping[str, Tensors], model: _Passed) -> dict[str, Any]:
    return {MODEL: model} | {name: network.single(own.get(name, {})) for name, network in group.networks.items()}


def _parts(group: Group, phase: Phase, draws: Draws) -> dict[str, Tensor]:
    """The parts of the batch that a loss sees itself, of this group's members."""
    passed = {*(phase.forward or ()), *(phase.encodes or ())}
    latent = ("permutation",)
    return {
        part: draws[part][group.place, ..., : group.latents] if part in latent else draws[part][group.place]
        for part in group.method.batch
        if part in draws and part not in passed
    }


def _portion(group: Group) -> int | None:
    return next((network.portion for network in group.networks.values()), None)


@torch.no_grad()
def keep_failed(group: Group, now: Bool[Tensor, " model"]) -> None:
    """Keep the terms of models that failed in this step."""
    if now.device.type == "cpu" and not bool(now.any()):
        return
    terms = torch.stack(list(group.terms.values()), dim=1)[:, :MOST_TERMS]
    kept = group.failed_terms[:, : terms.shape[1]]
    kept.copy_(torch.where(now[:, None], terms, kept))


def record_row(group: Group, code: StackedCode) -> None:
    """Keep a row for the history: every member's terms of this step, and the statistics of its code."""
    group.columns = columns({name: term[0] for name, term in group.terms.items()}, group.latents)
    if group.totals:
        from unweave.models.kernels.posterior import latent_statistics

        found = latent_statistics(StackedCode(*_own(group, code)))
        group.row = torch.cat([torch.stack(list(group.terms.values()), 1), found.flatten(1)], 1)
        return

    def one(terms: Terms, fields: tuple[Tensor, ...]) -> Tensor:
        return summary(terms, Code(*fields))

    rows = torch.vmap(one)(*(_filled(given, group.doubles) for given in (group.terms, _own(group, code))))
    group.row = rows[: group.place.stop - group.place.start]


def _own(group: Group, code: StackedCode) -> tuple[Tensor, ...]:
    return tuple(field[group.place, :, : group.latents] for field in code)
