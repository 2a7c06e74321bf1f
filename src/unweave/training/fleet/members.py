"""Who may train together: members share a structure; their scalars, seeds and latent sizes are their own."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from unweave.config import hints, to_plain
from unweave.data.world import World
from unweave.models.method import Given
from unweave.models.objectives import MODEL, Method
from unweave.models.objectives.objective import known_by_totals
from unweave.models.posteriors import Deterministic, Diagonal
from unweave.shapes import Float, Scalar, Tensor
from unweave.training.experiment import Experiment

PLAIN = {"images", "noise", "second_images", "second_noise", "permutation"}
"""Parts of a batch that need nothing of a world but its examples."""

OWN = ("objective", "latents", "seed", "init", "warmup", "snapshots", "holdout")
"""Fields of an experiment in which members may differ freely; of the objective, only the posterior must agree."""


ALIKE = 16
"""On a GPU, models whose small matrix products are computed together."""


@dataclass(frozen=True)
class Members:
    """The experiments of a fleet in stacking order: like objectives and latent sizes side by side.

    ``given`` is the place of each stacked member in the caller's list; doubles (see :func:`arrange`) have −1.
    """

    experiments: tuple[Experiment, ...]
    given: tuple[int, ...]
    groups: tuple[slice, ...]

    @property
    def latents(self) -> int:
        """The width of the stack: the largest code among the members."""
        return max(experiment.latents for experiment in self.experiments)


def arrange(experiments: Sequence[Experiment], *, least: int = 2, totals: bool = False) -> Members:
    """Sort members into groups that one call of an objective can serve.

    A stack of one takes other routes through the libraries than a stack of several, with other last bits. So a
    group smaller than ``least`` is filled up with doubles of its first member, whose results are thrown away. GPU
    kernels give every model its own bits in any company, and then only small products of matrices, and losses, need
    doubles: with ``least=1`` members that make no such products get none here. With ``totals``, neighbours whose
    losses see no single latent are one group, however many latents each has.
    """
    check_structure(experiments)
    keyed: dict[str, list[int]] = {}
    for place, experiment in enumerate(experiments):
        keyed.setdefault(group_key(experiment), []).append(place)
    chosen: list[Experiment] = []
    given: list[int] = []
    groups: list[slice] = []
    for places in keyed.values():
        first = experiments[places[0]]
        doubles = _doubles(first, len(places), least)
        start, stop = len(chosen), len(chosen) + len(places) + doubles
        if totals and groups and not doubles and _one_loss(chosen[-1], first):
            start = groups.pop().start
        groups.append(slice(start, stop))
        chosen += [experiments[place] for place in places] + [experiments[places[0]]] * doubles
        given += places + [-1] * doubles
    return Members(tuple(chosen), tuple(given), tuple(groups))


def _doubles(experiment: Experiment, n: int, least: int) -> int:
    objective, on_gpu = experiment.objective, experiment.plan.device.startswith("cuda")
    products = (
        len(objective.phases()) > 1
        or is_mapped(objective)
        or not isinstance(objective.posterior, Diagonal | Deterministic)
    )
    if not (products and on_gpu):
        return max(0, least - n)
    return -n % (objective.at_once if is_mapped(objective) else ALIKE)


def check_structure(experiments: Sequence[Experiment]) -> None:
    """Raise ValueError that names the first field in which two members of a fleet must not differ."""
    if not experiments:
        raise ValueError("a fleet needs at least one experiment")
    first = structure(experiments[0])
    for place, experiment in enumerate(experiments):
        for field, value in structure(experiment).items():
            if value != first[field]:
                raise ValueError(
                    f"models of one fleet must agree in {field}: the first has {first[field]}, number {place + 1} has"
                    f" {value}. Train them as two fleets."
                )


def structure(experiment: Experiment) -> dict[str, Any]:
    """Everything that the members of a fleet must share, by the name of the field."""
    shared: dict[str, Any] = {}
    for field in dataclasses.fields(experiment):
        value = getattr(experiment, field.name)
        if field.name in OWN:
            continue
        if dataclasses.is_dataclass(value):
            shared |= {f"{field.name}.{name}": part for name, part in _fixed(value).items()}
        else:
            shared[field.name] = value
    method = experiment.objective
    shared["objective.posterior"] = getattr(method, "training_posterior", method.posterior).name
    shared["objective.pairing"] = str(method.pairing)
    if is_mapped(method):
        shared |= {"latents": experiment.latents, "warmup": experiment.warmup}
        shared |= {f"objective.{name}": part for name, part in _fixed(method).items()}
    if _mixes_worlds(experiment):
        shared = {name: value for name, value in shared.items() if not name.startswith("world.")}
        shared |= {"world.name": type(experiment.world).__qualname__, "world": str(_size_of(experiment.world))}
    shared["number of updates"] = experiment.n_updates
    del shared["steps"]
    return shared


def _mixes_worlds(experiment: Experiment) -> bool:
    """Whether members may learn from different worlds: each then has rows of its own in one store."""
    method, world = experiment.objective, experiment.world
    return world.mixes and not is_mapped(method) and method.pairing is None and {*method.batch} <= PLAIN


def _size_of(world: World) -> str:
    card = world.card()
    return f"{'×'.join(map(str, card.shape))}, {card.n_examples} examples"


def is_mapped(method: Method) -> bool:
    """Whether a method is mapped as a whole: some loss does more than to pass its batch through the model."""
    phases = method.phases()
    return not any(MODEL in phase.updates for phase in phases) or any(
        phase.forward is None for phase in phases if MODEL in phase.updates
    )


def scalars_of(components: Sequence[Any], device: torch.device | str) -> dict[str, Float[Tensor, " model"]]:
    """The fields typed Scalar of equal components, stacked."""
    names = [name for name, kind in hints(type(components[0])).items() if kind == Scalar]
    return {
        name: torch.tensor([float(getattr(component, name)) for component in components], device=device)
        for name in names
    }


def _fixed(component: Any) -> dict[str, Any]:
    kinds, plain = hints(type(component)), to_plain(component)
    fixed = {name: plain[name] for name in plain if kinds.get(name) != Scalar}
    # members may begin with different runs, but all with as many
    fixed |= {name: len(plain[name]) for name, kind in kinds.items() if kind == tuple[Given, ...]}
    return {"name": type(component).__qualname__} | fixed


def group_key(experiment: Experiment) -> str:
    """What members have in common that one call of an objective can serve."""
    return str((_fixed(experiment.objective), experiment.latents, experiment.warmup))


def _one_loss(one: Experiment, other: Experiment) -> bool:
    """Whether the losses of two members are the same lines for both, though their codes differ in size."""
    return known_by_totals(one.objective) and group_key(one) == group_key(replace(other, latents=one.latents))
