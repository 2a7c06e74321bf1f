"""From a list of experiments to finished run folders: one fleet, through any number of interruptions."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from unweave.data.world import Data
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.training.checkpoint import KEPT, from_bytes, to_bytes
from unweave.training.experiment import Experiment, experiment_to, usable_cores
from unweave.training.fleet import Fleet, new_fleet, set_state, state_tensors
from unweave.training.fleet_batches import source_of
from unweave.training.fleet_engine import choose_engine, least_group, models_that_fit, side_by_side
from unweave.training.fleet_finish import FleetHistory, claim, finish_member, snapshot_member
from unweave.training.fleet_members import arrange, check_structure
from unweave.training.fleet_processes import train_side_by_side
from unweave.training.fleet_progress import say
from unweave.training.fleet_stepper import Stepper
from unweave.training.loop import Interrupted, Manner

SAVING_SHARE = 0.05
"""Saving a large fleet takes seconds; it may take this share of the time, however often one asks for it."""

Pair = tuple[Experiment, RunFolder]


@dataclass(frozen=True)
class Voyage:
    """One fleet on its way: where it is kept, who is in it, and how to run."""

    home: RunFolder
    experiments: tuple[Experiment, ...]
    folders: tuple[RunFolder, ...]
    how: Manner


def train_fleet(
    experiments: Sequence[Experiment],
    root: Path | str = "runs",
    *,
    data: Data | None = None,
    how: Manner = Manner(),
    folders: Sequence[Path | str] | None = None,
    size: int | None = None,
) -> list[Path]:
    """Train all experiments together and return their run folders. The same call twice resumes, or returns at once.

    Members that are finished already are left alone. ``size`` bounds how many are trained at a time. A member whose
    loss stops being a number is frozen and gets a ``failure.json``; the others go on undisturbed.
    """
    resolved = [experiment.resolve() for experiment in experiments]
    check_structure(resolved)
    alone = side_by_side(resolved[0])
    if alone:
        resolved = [replace(e, plan=replace(e.plan, threads=1)) for e in resolved]
    paths = [Path(folder) for folder in folders] if folders else [Path(root) / e.id for e in resolved]
    pairs = [(e, RunFolder(path)) for e, path in zip(resolved, paths)]
    if all(_done(folder) for _, folder in pairs):
        return paths
    data = (data or resolved[0].world.load()).to(resolved[0].plan.device)
    if alone:
        _alone(pairs, data, how)
        return paths
    for _, begun in _begun(pairs, Path(root)):
        _together(begun, Path(root), data, how)
    todo = [pair for pair in pairs if not _done(pair[1])]
    for part in _parts(todo, size, data):
        _together(part, Path(root), data, how)
    return paths


def _parts(todo: list[Pair], size: int | None, data: Data) -> list[list[Pair]]:
    """The models in fleets that fit into free memory, and a line that says so; with a ``size``, in fleets of that."""
    if not todo:
        return []
    largest = max((experiment for experiment, _ in todo), key=lambda e: (e.objective.has_discriminator, e.latents))
    fitting = models_that_fit(largest, data.shape)
    chosen = min(size or len(todo), fitting)
    # equal fleets: 50 that fit by 40 are 25 and 25
    count = -(-len(todo) // chosen)
    chosen = -(-len(todo) // count) if size is None else chosen
    if count > 1 or data.store.device.type == "cuda":
        fleets = "one fleet" if count == 1 else f"{count} fleets of up to {chosen}"
        say(f"{len(todo)} models in {fleets}: {f'{fitting:,}' if fitting < 10_000 else 'thousands more would'} fit")
    return [todo[begin : begin + chosen] for begin in range(0, len(todo), chosen)]


def _alone(pairs: Sequence[Pair], data: Data, how: Manner) -> None:
    todo = [pair for pair in pairs if not _done(pair[1])]
    folders = [folder.path for _, folder in todo]

    total = todo[0][0].n_updates
    say(f"{len(todo)} models, {min(len(todo), usable_cores())} at a time in single-threaded processes")

    def reached(steps: float, loss: float) -> None:
        terms = {"loss": torch.tensor(loss), "models": torch.tensor(len(todo))}
        for watch in how.watchers:
            watch(int(steps), total, terms, True)

    given = {"data": data, "save_every": how.save_every, "stop": how.stop, "reached": reached}
    for words in train_side_by_side([e for e, _ in todo], folders, **given):  # type: ignore[arg-type]
        say(words)
    if any(not _done(folder) for _, folder in todo):
        raise Interrupted("stopped; the same command goes on")


def _begun(pairs: Sequence[Pair], root: Path) -> list[tuple[RunFolder, list[Pair]]]:
    """Fleets that were interrupted, with all their members: also those whose results were written before the end."""
    known = {os.path.relpath(folder.path, root): (experiment, folder) for experiment, folder in pairs}
    found = []
    for path in sorted(root.glob("fleet-*")):
        home = RunFolder(path)
        names = home.read_json("fleet.json") if home.has("fleet.json") else ["unknown"]
        if all(name in known for name in names):
            found.append((home, [known[name] for name in names]))
    return found


def _together(pairs: Sequence[Pair], root: Path, data: Data, how: Manner) -> None:
    """Train as one fleet, or as two halves one after the other where memory does not suffice."""
    names = json.dumps([experiment_to(experiment) for experiment, _ in pairs], sort_keys=True)
    home = RunFolder(root / f"fleet-{hashlib.sha256(names.encode()).hexdigest()[:12]}")
    voyage = Voyage(home, tuple(e for e, _ in pairs), tuple(folder for _, folder in pairs), how)
    try:
        with home.locked():
            _train(voyage, data)
            shutil.rmtree(home.path)
        return
    except torch.cuda.OutOfMemoryError:
        if len(pairs) == 1:
            raise
        shutil.rmtree(home.path, ignore_errors=True)
    torch.cuda.empty_cache()
    half = len(pairs) // 2
    say(f"{len(pairs)} models do not fit in GPU memory; going on with {half} at a time")
    _together(pairs[:half], root, data, how)
    _together(pairs[half:], root, data, how)


def _train(voyage: Voyage, data: Data) -> None:
    first, how = voyage.experiments[0], voyage.how
    for experiment, folder in zip(voyage.experiments, voyage.folders):
        claim(folder, experiment)
    # relative: the same folder may have another path on another machine
    names = [os.path.relpath(folder.path, voyage.home.path.parent) for folder in voyage.folders]
    voyage.home.write_json("fleet.json", names)
    torch.set_num_threads(first.plan.threads)
    members = arrange(voyage.experiments, least=least_group(first))
    fleet = new_fleet(members, choose_engine(members, data, say), len(data), data.shape)
    history = FleetHistory(len(fleet.groups))
    begin = _load(voyage.home, fleet, history)
    stepper = Stepper(fleet, source_of(members, data), say)
    saving = _Saving(voyage.home, how.save_every)
    kept = {step for experiment in voyage.experiments for step in experiment.snapshots}
    for step in range(begin, first.n_updates):
        if step in kept:
            _snapshot(voyage, fleet, data.shape, step)
        stopping = how.stop()
        if stopping or saving.due():
            saving.save(fleet, history, step)
        if stopping:
            raise Interrupted(f"stopped before step {step}; the same command goes on from {voyage.home.path}")
        recorded = step % first.history_every == 0 or step == first.n_updates - 1
        stepper(step, record=recorded)
        if recorded:
            history.add(step, fleet)
            _watch(how, fleet, step + 1, first.n_updates)
    _finish(voyage, fleet, history, data)


def _watch(how: Manner, fleet: Fleet, done: int, total: int) -> None:
    if fleet.parameters.device.type == "cuda":
        torch.cuda.synchronize()  # or the host runs ahead by minutes, and neither saving nor stopping comes in time
    loss = torch.cat([group.terms["loss"] for group in fleet.groups])
    mean = torch.where(fleet.alive, loss, 0.0).sum() / fleet.alive.sum()
    for watch in how.watchers:
        watch(done, total, {"loss": mean, "models": fleet.alive.sum()}, True)


def _snapshot(voyage: Voyage, fleet: Fleet, shape: tuple[int, ...], step: int) -> None:
    for stacked, given in enumerate(fleet.members.given):
        wanted = given >= 0 and step in voyage.experiments[given].snapshots
        if wanted and bool(fleet.failed_at[stacked] < 0):
            snapshot_member(voyage.folders[given], fleet, stacked, shape, step)


def _finish(voyage: Voyage, fleet: Fleet, history: FleetHistory, data: Data) -> None:
    _snapshot(voyage, fleet, data.shape, voyage.experiments[0].n_updates)
    for stacked, given in enumerate(fleet.members.given):
        if given >= 0:
            for failure in finish_member(voyage.folders[given], fleet, history, stacked, data):
                say(failure)


class _Saving:
    def __init__(self, home: RunFolder, every: float) -> None:
        self.home, self.every, self.saved = home, every, time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self.saved >= self.every

    def save(self, fleet: Fleet, history: FleetHistory, step: int) -> None:
        begin = time.monotonic()
        metadata = {"step": str(step), "columns": json.dumps(history.columns)}
        name = f"checkpoints/step-{step:09d}.safetensors"
        self.home.write(name, to_bytes(state_tensors(fleet) | history.tensors(), metadata))
        self.home.remove(*self.home.names("checkpoints/")[:-KEPT])
        self.saved = time.monotonic()
        self.every = max(self.every, (self.saved - begin) / SAVING_SHARE)


def _load(home: RunFolder, fleet: Fleet, history: FleetHistory) -> int:
    """Bring a fleet to its newest whole checkpoint, and return the step to go on with."""
    for name in reversed(home.names("checkpoints/")):
        try:
            tensors, metadata = from_bytes(home.read(name))
        except (DamagedFile, FileNotFoundError) as error:
            say(f"{error}; going on from the one before")
            continue
        set_state(fleet, tensors)
        history.restore(tensors, json.loads(metadata["columns"]))
        return int(metadata["step"])
    return 0


def _done(folder: RunFolder) -> bool:
    return folder.has("model.safetensors") or folder.has("failure.json")
