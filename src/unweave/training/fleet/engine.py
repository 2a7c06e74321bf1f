"""A fleet as the training loop sees it: members in the caller's order, each the run it would be alone."""

from collections.abc import Callable, Sequence

import torch

from unweave.data.world import Data
from unweave.models.optimisers import Tensors
from unweave.training.batches import source_of
from unweave.training.engine import LATENT_STATISTICS, Failure, Rows, blame
from unweave.training.experiment import Experiment, form_of
from unweave.training.fleet.choice import arranged, least_group, use_kernels
from unweave.training.fleet.fleet import Fleet, Group, new_fleet
from unweave.training.fleet.mapped import MappedFleet, new_mapped_fleet
from unweave.training.fleet.members import Members, arrange, is_mapped
from unweave.training.fleet.stepper import Stepper
from unweave.training.fleet.whole_steps import WholeSteps, whole_steps


class FleetEngine:
    """Many models in one stack, on whatever backend is fastest here."""

    def __init__(self, experiments: Sequence[Experiment], data: Data, say: Callable[[str], None]) -> None:
        self.experiments, self.form = tuple(experiments), form_of(experiments[0].objective, data)
        self.stepper: Stepper | WholeSteps
        if is_mapped(experiments[0].objective):
            members = arrange(experiments, least=least_group(experiments[0]))
            mapped = new_mapped_fleet(members, len(data), self.form)
            use_kernels(mapped.losses, experiments[0], say)
            self.stepper = Stepper(mapped, source_of(members.experiments, data), say)
        else:
            members, backend = arranged(experiments, data, say)
            fleet = new_fleet(members, backend, data.n_of_each, data.shape)
            source = source_of(members.experiments, data)
            self.stepper = whole_steps(fleet, source, say) or Stepper(fleet, source, say)
        self.none_left = False
        self.stacked = {given: place for place, given in enumerate(members.given) if given >= 0}
        self.recorded = recorded_together(members)

    @property
    def fleet(self) -> Fleet | MappedFleet:
        """The models as they are after every step so far."""
        self.stepper.catch_up()
        return self.stepper.fleet

    @property
    def name(self) -> str:
        return self.stepper.fleet.name

    def advance(self, step: int, *, record: bool) -> None:
        self.stepper(step, record=record)

    def wait(self) -> None:
        # the answer comes once everything before it is done
        self.none_left = not bool(self.fleet.alive.any())

    def all_failed(self) -> bool:
        return self.none_left

    def rows(self) -> list[Rows]:
        groups = self.fleet.groups
        return [_rows_of(groups[number], part, latents) for number, part, latents in self.recorded]

    def group_of(self, member: int) -> tuple[int, int]:
        number, place = self._place_of(member)
        return next(
            (row, place - part.start)
            for row, (group, part, _) in enumerate(self.recorded)
            if group == number and part.start <= place < part.stop
        )

    def _place_of(self, member: int) -> tuple[int, int]:
        """The group of a member in the stack, and its place there."""
        stacked = self.stacked[member]
        number, group = next((n, g) for n, g in enumerate(self.fleet.groups) if stacked < g.place.stop)
        return number, stacked - group.place.start

    def terms(self) -> list[dict[str, float]]:
        alive = self.fleet.alive.tolist()
        told = [_told(group) for group in self.fleet.groups]
        members = [self._place_of(member) for member in range(len(self.experiments)) if alive[self.stacked[member]]]
        return [told[group][place] for group, place in members]

    def weights(self, member: int) -> Tensors:
        return self.fleet.weights_of(self.stacked[member], self.experiments[member], self.form)

    def failure(self, member: int) -> Failure | None:
        step = int(self.fleet.failed_at[self.stacked[member]])
        if step < 0:
            return None
        number, place = self._place_of(member)
        group = self.fleet.groups[number]
        return blame(step, dict(zip(group.terms, group.failed_terms[place].tolist())))

    def last_good(self, member: int) -> tuple[int, Tensors] | None:
        place = self.stacked[member]
        step = int(self.fleet.good_at[place])
        if step < 0:
            return None
        return step, self.fleet.weights_of(place, self.experiments[member], self.form, good=True)

    def tensors(self) -> Tensors:
        # the last good weights are renewed by the next recorded step: a third of a checkpoint is not written for them
        return {name: tensor for name, tensor in self.fleet.state_tensors().items() if not name.startswith("good")}

    def fitted(self, tensors: Tensors) -> Tensors:
        # rows of an older checkpoint, or of mapped models that go on in kernels, may lie closer together
        fleet = self.stepper.fleet
        if isinstance(fleet, MappedFleet):
            layouts = {f"{name}/": stack.layout for name, stack in fleet.stacks.items()}
        else:
            layouts = {"": fleet.backend.layout}
        tensors = _regrouped(tensors, [group.place for group in fleet.groups])
        for start, layout in layouts.items():
            kinds = f"{start}parameters", f"{start}optimiser/"
            tensors = {n: layout.fitted(t) if n.startswith(kinds) else t for n, t in tensors.items()}
        return tensors

    def restore(self, tensors: Tensors) -> None:
        self.fleet.set_state(tensors)

    def close(self) -> None:
        """The end of the fleet, while its data is still there."""
        self.stepper.close()


def recorded_together(members: Members) -> list[tuple[int, slice, int]]:
    """Neighbours with one method and codes of one size, which have the same columns: group, places there, latents."""
    found: list[tuple[int, slice, int]] = []
    for number, group in enumerate(members.groups):
        for place, experiment in enumerate(members.experiments[group]):
            if found and (found[-1][0], found[-1][2]) == (number, experiment.latents):
                found[-1] = number, slice(found[-1][1].start, place + 1), experiment.latents
            else:
                found.append((number, slice(place, place + 1), experiment.latents))
    return found


def _rows_of(group: Group, part: slice, latents: int) -> Rows:
    """What some members of a group recorded: of a code narrower than the group's, its own latents."""
    assert group.row is not None
    row = group.row[part]
    if latents == group.latents:
        return Rows(group.columns, row.clone())
    terms, statistics = row[:, : len(group.terms)], row[:, len(group.terms) :].unflatten(1, (-1, group.latents))
    columns = [name for name in group.columns if not _is_beyond(name, latents)]
    return Rows(columns, torch.cat([terms, statistics[..., :latents].flatten(1)], 1))


def _is_beyond(column: str, latents: int) -> bool:
    statistic, _, number = column.rpartition("_")
    return statistic in LATENT_STATISTICS and int(number) >= latents


def _regrouped(tensors: Tensors, places: Sequence[slice]) -> Tensors:
    """Terms of models that failed, in these groups: neighbours may have been more groups, or fewer, when saved."""
    count = sum(name.endswith("/failed_terms") for name in tensors)
    if not count or count == len(places):
        return tensors
    whole = torch.cat([tensors[f"group{number}/failed_terms"] for number in range(count)])
    if len(whole) != places[-1].stop:
        return tensors  # another fleet's: it is refused by its shapes
    return tensors | {f"group{number}/failed_terms": whole[place] for number, place in enumerate(places)}


def _told(group: Group) -> list[dict[str, float]]:
    values = torch.stack(list(group.terms.values()), dim=1).tolist()
    return [dict(zip(group.terms, row)) for row in values]
