"""What a fleet leaves behind: every member an ordinary run folder, as if it had been trained alone."""

from typing import Any

import torch

from unweave.data.world import Data
from unweave.models.optimisers import Tensors
from unweave.runs.folder import RunFolder
from unweave.shapes import Float, Shaped, Tensor
from unweave.training.checkpoint import learner_tensors, save_checkpoint, to_bytes
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.fleet import Fleet, Group, template_of
from unweave.training.fleet_members import arrange
from unweave.training.history import History, write_history
from unweave.training.loop import environment
from unweave.training.step import new_learner

PENDING = 256
"""Rows of the history that stay on the device before they are fetched together."""


class FleetHistory:
    """Rows of every group over time: [row, model, column], fetched from the device rarely."""

    def __init__(self, n_groups: int) -> None:
        self.steps: list[int] = []
        self.columns: list[list[str]] = [[] for _ in range(n_groups)]
        self.pending: list[list[Tensor]] = [[] for _ in range(n_groups)]
        self.fetched: list[list[Float[Tensor, "row model column"]]] = [[] for _ in range(n_groups)]

    def add(self, step: int, fleet: Fleet) -> None:
        """Keep the rows that the groups hold now."""
        self.steps.append(step)
        for number, group in enumerate(fleet.groups):
            assert group.row is not None
            self.columns[number] = group.columns
            self.pending[number].append(group.row.clone())
        if len(self.pending[0]) >= PENDING:
            self._fetch()

    def rows(self, group: int) -> Float[Tensor, "row model column"]:
        """All rows of a group, on the CPU."""
        self._fetch()
        return torch.cat(self.fetched[group]) if self.fetched[group] else torch.zeros(0, 1, 1)

    def tensors(self) -> Tensors:
        """The history as tensors, for a checkpoint."""
        rows = {f"group{number}/history": self.rows(number) for number in range(len(self.columns))}
        return rows | {"history.steps": torch.tensor(self.steps, dtype=torch.int64)}

    def restore(self, tensors: Tensors, columns: list[list[str]]) -> None:
        """The inverse of :meth:`tensors`."""
        self.steps, self.columns = tensors["history.steps"].tolist(), columns
        self.fetched = [[tensors[f"group{number}/history"]] if self.steps else [] for number in range(len(columns))]

    def _fetch(self) -> None:
        for number, rows in enumerate(self.pending):
            if rows:
                self.fetched[number].append(torch.stack(rows).cpu())
                rows.clear()


def claim(folder: RunFolder, experiment: Experiment) -> None:
    """Write what a folder is for, once."""
    if folder.has("config.json"):
        if folder.read_json("config.json") != experiment_to(experiment):
            raise ValueError(f"{folder.path} already holds another run. Choose another folder.")
        return
    folder.write_json("config.json", experiment_to(experiment))


def finish_member(folder: RunFolder, fleet: Fleet, history: FleetHistory, stacked: int, data: Data) -> list[str]:
    """Write a member's results; for a member that failed, its failure and its last good weights, and a line on it."""
    if folder.has("model.safetensors") or folder.has("failure.json"):
        return []  # written already, before an interruption
    folder.write_json("environment.json", _environment(fleet, stacked))
    number, group = _group_of(fleet, stacked)
    failed_at = int(fleet.failed_at[stacked])
    own = _history(history, number, stacked - group.place.start, failed_at)
    if failed_at >= 0:
        return [_fail(folder, fleet, own, stacked, data)]
    write_history(folder, own)
    folder.write("model.safetensors", to_bytes(_weights(fleet, stacked, data.shape), _note(data.shape)))
    return []


def snapshot_member(folder: RunFolder, fleet: Fleet, stacked: int, shape: tuple[int, ...], step: int) -> None:
    """Keep a member's weights of this step."""
    content = to_bytes(_weights(fleet, stacked, shape), _note(shape))
    folder.write(f"snapshots/step-{step:09d}.safetensors", content)


def _history(history: FleetHistory, group: int, place: int, failed_at: int) -> History:
    rows = history.rows(group)[:, place]
    kept = [i for i, step in enumerate(history.steps) if failed_at < 0 or step < failed_at]
    return History(history.columns[group], [history.steps[i] for i in kept], [rows[i] for i in kept])


def _weights(fleet: Fleet, stacked: int, shape: tuple[int, ...]) -> Tensors:
    """A member's parameters in their own shapes: a code narrower than the stack's is cut out of it."""
    experiment = fleet.members.experiments[stacked]
    own = dict(template_of(arrange([experiment]), shape).named_parameters())
    return _cut(fleet.engine.layout.views(fleet.parameters[stacked : stacked + 1]), own)


def _cut(stacks: dict[str, Shaped[Tensor, "1 ..."]], own: dict[str, Any]) -> Tensors:
    return {name: stacks[name][0][tuple(slice(0, n) for n in like.shape)].detach() for name, like in own.items()}


def _fail(folder: RunFolder, fleet: Fleet, history: History, stacked: int, data: Data) -> str:
    _, group = _group_of(fleet, stacked)
    place, step = stacked - group.place.start, int(fleet.failed_at[stacked])
    names = list(group.terms)
    values = dict(zip(names, group.failed_terms[place].tolist()))
    bad = [name for name in names if not torch.isfinite(torch.tensor(values[name]))]
    term = ([name for name in bad if name not in ("loss", "regulariser")] or bad)[0]
    learner = new_learner(fleet.members.experiments[stacked], data.shape, len(data))
    targets = learner_tensors(learner)
    for name, value in _learner_values(fleet, group, stacked).items():
        target = targets[name]
        target.copy_(value[tuple(slice(0, n) for n in target.shape)])
    for name, target in targets.items():
        if "/count." in name:
            target.fill_(step)
    save_checkpoint(folder, learner, history, step)
    folder.write_json("failure.json", {"step": step, "term": term, "value": str(values[term])})
    return (
        f"{folder.path} stopped at step {step}: {term} became {values[term]}. Its last good weights are kept in"
        f" {folder.path / 'checkpoints'}. Try a smaller learning rate, or look at the data."
    )


def _learner_values(fleet: Fleet, group: Group, stacked: int) -> Tensors:
    place = stacked - group.place.start
    layout, own = fleet.engine.layout, slice(stacked, stacked + 1)
    values = {f"model/{name}": view[0] for name, view in layout.views(fleet.parameters[own]).items()}
    for part, state in fleet.optimiser_state.items():
        values |= {f"optimiser/{part}.{name}": view[0] for name, view in layout.views(state[own]).items()}
    others = group.discriminators
    if others is not None:
        own = slice(place, place + 1)
        views = others.layout.views(others.parameters[own])
        values |= {f"discriminator/{name}": view[0] for name, view in views.items()}
        for part, state in others.state.items():
            views = others.layout.views(state[own])
            values |= {f"discriminator_optimiser/{part}.{name}": view[0] for name, view in views.items()}
    return {name: value.detach() for name, value in values.items()}


def _group_of(fleet: Fleet, stacked: int) -> tuple[int, Group]:
    return next((n, g) for n, g in enumerate(fleet.groups) if g.place.start <= stacked < g.place.stop)


def _environment(fleet: Fleet, stacked: int) -> dict[str, Any]:
    return environment() | {"fleet": {"engine": fleet.engine.name, "size": len(fleet.parameters), "place": stacked}}


def _note(shape: tuple[int, ...]) -> dict[str, str]:
    return {"shape": ",".join(map(str, shape))}
