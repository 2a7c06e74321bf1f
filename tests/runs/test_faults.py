"""Each system call of the folder layer fails, tears or is lost, one at a time, all places: as before or as after."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from faults import CHANGES, ERRORS, Killed, after_power_loss, applied, failing, plant, recorded, tree

import unweave as uw
from unweave.cli import main
from unweave.data.micro import Micro
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.runs.state import state_of
from unweave.studies.index import read_index, refresh
from unweave.studies.record import Record, read_record, write_record
from unweave.training.checkpoint import Checkpoints
from unweave.training.engine import Engine, Failure, Rows
from unweave.training.experiment import Form
from unweave.training.history import Recording
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.results import keep_result
from unweave.training.running import Interrupted, RunOptions


@dataclass(frozen=True)
class Scenario:
    """A change of a folder: what is there before, the change, and what whoever opens it sees."""

    begin: Callable[[Path], object]
    act: Callable[[Path], object]
    see: Callable[[Path], object]


def files_of(path: Path) -> dict[str, bytes]:
    """Every file of a run folder that counts, checked."""
    folder = RunFolder(path / "run")
    return {name: folder.read(name) for name in folder.names()}


def begun(path: Path) -> RunFolder:
    folder = RunFolder(path / "run")
    folder.write("config.json", b"{}")
    folder.write("b/c.json", b"other")
    return folder


class Still:
    """An engine of one model that does not move."""

    name, experiments, form = "still", (None,), Form((3,))

    def __init__(self, failed: bool = False) -> None:
        self.failed = failed

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"weight": torch.ones(3)}

    def weights(self, member: int) -> dict[str, torch.Tensor]:
        return self.tensors()

    advance = wait = rows = terms = all_failed = fitted = restore = tensors

    def group_of(self, member: int) -> tuple[int, int]:
        return 0, 0

    def failure(self, member: int) -> Failure | None:
        return Failure(5, "kl", float("nan")) if self.failed else None

    def last_good(self, member: int) -> tuple[int, dict[str, torch.Tensor]] | None:
        return 4, self.tensors()


def recording() -> Recording:
    found = Recording()
    found.add(0, [Rows(["loss"], torch.ones(1, 1))])
    return found


def save(path: Path, step: int) -> None:
    Checkpoints(RunFolder(path / "run"), 0.0).save(cast(Engine, Still()), recording(), step)


def rotated(path: Path) -> None:
    begun(path)
    save(path, 1)
    save(path, 2)


def finish(path: Path, failed: bool = False) -> str:
    return keep_result(RunFolder(path / "run"), cast(Engine, Still(failed)), 0, recording())


FIRST, SECOND = Record("s", "old", ("a",), ("b",)), Record("s", "new", ("a", "c"), ("b",))


def stored(path: Path) -> None:
    for name in ("one", "two"):
        RunFolder(path / name).write_json("config.json", {"seed": len(name)})
    refresh(path, path / ".unweave")
    RunFolder(path / "two").write_json("cost.json", {"seconds": 1.0})


def table(path: Path) -> object:
    """The table itself must be right at all times; the index behind it is whole or not there."""
    read_index(path / ".unweave")
    return refresh(path, path / ".unweave").drop("signature").rows()


PLAN = uw.Plan("cpu", 1)
MEMBERS = [
    uw.Experiment(
        Micro(), network=uw.MLP((2,), (2,)), latents=2, steps=2, batch_size=2, seed=seed, plan=uw.Plan("cpu", 1)
    )
    for seed in (0, 1)
]


ALONE = replace(MEMBERS[0], network=uw.Conv((2,), (2,), 2), steps=4)


def fleet(path: Path) -> None:
    """Two models that train together, stopped before their last step."""
    asked = iter((False, True))
    with suppress(Interrupted):
        train_many(MEMBERS, path, how=RunOptions(stop=lambda: next(asked)))


def alone(path: Path, stop_at: int | None = None) -> None:
    """A model that trains alone and saves before each of its steps; stopped on the way, or to its end."""
    asked = itertools.count()
    with suppress(Interrupted):
        train(ALONE, path / "run", how=RunOptions((), 0.0, stop=lambda: next(asked) == stop_at))


def fleet_seen(path: Path) -> object:
    """How far each member is, and its weights."""
    members = [RunFolder(path / member.resolve().id) for member in MEMBERS]
    words = [str(state_of(one, thorough=True)).replace("training", "interrupted") for one in members]
    return [(word, one.read(WEIGHTS) if one.has(WEIGHTS) else b"") for word, one in zip(words, members)]


@cache
def finished() -> uw.Run:
    """A trained model whose files were read before anything fails."""
    with tempfile.TemporaryDirectory() as made:
        run = uw.Run(train(MEMBERS[0], Path(made) / "run"))
        assert run.model is not None
        assert run.history.steps
        return run


SCENARIOS = {
    "add": Scenario(begun, lambda path: RunFolder(path / "run").write("d/e.json", b"new"), files_of),
    "replace": Scenario(begun, lambda path: RunFolder(path / "run").write("b/c.json", b"new"), files_of),
    "remove": Scenario(begun, lambda path: RunFolder(path / "run").remove("b/c.json"), files_of),
    "first file": Scenario(lambda path: path.mkdir(exist_ok=True), begun, files_of),
    "leave weights": Scenario(
        lambda path: begun(path).write(WEIGHTS, b"w"), lambda path: RunFolder(path / "run").leave_weights(), files_of
    ),
    "list": Scenario(
        lambda path: (begun(path), (path / "run" / "t.csv").write_bytes(b"1")),
        lambda path: RunFolder(path / "run").list_file("t.csv"),
        files_of,
    ),
    "rotate": Scenario(rotated, lambda path: save(path, 3), files_of),
    "finish": Scenario(rotated, finish, files_of),
    "fail": Scenario(rotated, lambda path: finish(path, failed=True), files_of),
    "record": Scenario(
        lambda path: write_record(path / ".unweave", FIRST),
        lambda path: write_record(path / ".unweave", SECOND),
        lambda path: read_record(path / ".unweave", "s"),
    ),
    "export": Scenario(
        lambda path: path.mkdir(exist_ok=True), lambda path: uw.export(finished(), path / "run"), files_of
    ),
    "fleet": Scenario(fleet, lambda path: train_many(MEMBERS, path), fleet_seen),
    "index": Scenario(stored, lambda path: refresh(path, path / ".unweave"), table),
}


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether something was forced to the disk is recorded where it matters; waiting for the disk proves nothing."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def in_any_order(seen: list[object]) -> list[object]:
    """Members are written side by side: each is as before or as after, whichever comes first."""
    parts = [[*dict.fromkeys(states)] for states in zip(*seen)]  # type: ignore[call-overload]
    return [[*states] for states in itertools.product(*parts)]


def seen_undisturbed(scenario: Scenario, path: Path) -> list[object]:
    """What a reader sees at every instant of the change when nothing happens to it: the only things to see ever."""
    scenario.begin(path)
    seen: list[object] = [scenario.see(path)]
    with failing(0, Killed) as faults:

        def hit(name: str = "") -> None:
            faults.hit = lambda name="": None  # type: ignore[method-assign]
            now = scenario.see(path) if name in ("replace", "unlink", "mkdir", "rmdir") else seen[-1]
            if now not in seen:
                seen.append(now)
            faults.hit = hit  # type: ignore[method-assign]

        faults.hit = hit  # type: ignore[method-assign]
        scenario.act(path)
    last = scenario.see(path)
    return [*(one for one in seen if one != last), last]


def failed_everywhere(
    scenario: Scenario, folder: Path, error: Callable[[], BaseException], calls: tuple[str, ...] = ()
) -> Iterator[tuple[Path, tuple[int, str]]]:
    """The change with its first call failing, its second, and so on, the last time with none; where and which it was.

    It begins each time with a copy of ``folder / "before"``.
    """
    scenario.begin(folder / "before")
    path = folder / "tried"
    for place in itertools.count(1):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder / "before", path)
        with failing(place, error, calls) as faults, suppress(OSError, ValueError, Killed):
            scenario.act(path)
        yield path, (place, faults.called)
        if faults.count < place:
            return


DEFAULT: dict[str, tuple[str, ...]] = {"fleet": (), "export": ("killed",)}
"""Changes that take long, and the errors with which they are in the default suite."""


def _places() -> list[Any]:
    """Every change with every error; those that differ little from others are left out of the default suite."""
    return [
        pytest.param(
            name,
            error,
            marks=[pytest.mark.slow] if error not in DEFAULT.get(name, ("full", "killed", "vanished")) else [],
        )
        for name in SCENARIOS
        for error in ERRORS
    ]


@pytest.mark.parametrize(("name", "error"), _places())
def test_every_single_fault_leaves_what_was_or_what_comes(tmp_path: Path, name: str, error: str) -> None:
    scenario = SCENARIOS[name]
    allowed = seen_undisturbed(scenario, tmp_path / "undisturbed")
    if name == "fleet":
        allowed = in_any_order(allowed)
    where, wrong = (0, ""), []
    for path, where in failed_everywhere(scenario, tmp_path, ERRORS[error]):
        if scenario.see(path) not in allowed:
            wrong.append(where)
        scenario.act(path)
        assert scenario.see(path) == allowed[-1], where
    assert not wrong
    assert where[0] > 3


@pytest.mark.parametrize("name", [*sorted(SCENARIOS.keys() - {"fleet"}), pytest.param("fleet", marks=pytest.mark.slow)])
def test_a_pulled_plug_leaves_what_was_or_what_comes(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    allowed = seen_undisturbed(scenario, tmp_path / "undisturbed")
    if name == "fleet":
        allowed = in_any_order(allowed)
    scenario.begin(tmp_path / "before")
    shutil.copytree(tmp_path / "before", tmp_path / "tried")
    with recorded(tmp_path / "tried") as disk:
        scenario.act(tmp_path / "tried")
    n_trees, wrong = 0, []
    for how, found in after_power_loss(disk, tmp_path / "before"):
        path = plant(found, tmp_path / "plugged")
        n_trees += 1
        try:
            seen = scenario.see(path)
        except (OSError, ValueError) as error:
            seen = error
        if seen not in allowed:
            wrong.append((how, seen))
    assert n_trees > 3
    assert wrong == []
    lasting, _ = disk.moments[-1]
    synced = applied(tree(tmp_path / "before"), disk.root, lasting)
    assert scenario.see(plant(synced, tmp_path / "plugged")) == allowed[-1], "it returned before it was on the disk"


WHOLE = {
    "train": Scenario(lambda path: path.mkdir(exist_ok=True), alone, files_of),
    "train on": Scenario(partial(alone, stop_at=3), alone, files_of),
    "fleet": Scenario(lambda path: path.mkdir(exist_ok=True), lambda path: train_many(MEMBERS, path), fleet_seen),
    "fleet on": SCENARIOS["fleet"],
    "export": SCENARIOS["export"],
    "report": Scenario(alone, lambda path: main(["report", str(path / "run")]), files_of),
}
"""Commands from their beginning or their middle to their end."""


TAKE_LONG = ("fleet", "report")


def names_left(path: Path) -> list[str]:
    """All files but those of locks, listed or not."""
    return [name for name in tree(path) if not name.endswith((".lock", ".writing"))]


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in TAKE_LONG)) for one in WHOLE])
def test_a_kill_before_every_change_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    command = WHOLE[name]
    command.begin(tmp_path / "undisturbed")
    command.act(tmp_path / "undisturbed")
    wanted, wrong, where = names_left(tmp_path / "undisturbed"), [], (0, "")
    for path, where in failed_everywhere(command, tmp_path, Killed, CHANGES):
        command.act(path)
        if names_left(path) != wanted:
            wrong.append((where, sorted({*wanted} ^ {*names_left(path)})))
    assert wrong == []
    assert where[0] > 8
