"""What a worker does when things go wrong: failure is data, damage is repaired, a full disk stops the study."""

import contextlib
import errno
import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_studies import CONV, Raises, tiny, tiny_study

import unweave as uw
from unweave import files
from unweave.runs.folder import RunFolder
from unweave.studies import train_and_measure as working
from unweave.studies.failures import clear
from unweave.studies.leases import Holder
from unweave.studies.measures import Polarised
from unweave.studies.pack import Pack
from unweave.studies.record import read_record
from unweave.studies.run import run_study
from unweave.studies.status import status_of
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.sweep import sweep
from unweave.studies.train_and_measure import train_and_measure
from unweave.training.running import Interrupted, RunOptions


def test_a_run_that_diverges_fails_alone(tmp_path: Path) -> None:
    study = Study("bad", (tiny(0), tiny(1, optimiser=uw.Adam(1e30), steps=5), tiny(2)), (Polarised(32),))
    found = run_study(study, tmp_path)
    assert found.table["seed"].to_list() == [0, 2]
    assert found.failed["seed"].to_list() == [1]
    assert "became" in found.failed["failure"][0]


def test_an_exception_is_kept_with_its_traceback_and_can_be_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, before = tiny_study(3), working._train_together

    def poisoned(experiments: list[uw.Experiment], *rest: object) -> None:
        if any(experiment.seed == 1 for experiment in experiments):
            raise RuntimeError("the second one is bad\nin two lines")
        before(experiments, *rest)

    monkeypatch.setattr(working, "_train_together", poisoned)
    found = run_study(study, tmp_path)
    assert found.table["seed"].to_list() == [0, 2]
    store = Store(tmp_path)
    folder = store.folder(found.experiments[1].id)
    assert folder.read_json("failure.json") == {"kind": "exception", "reason": "RuntimeError: the second one is bad"}
    assert "in two lines" in folder.read("log.txt").decode()
    assert "poisoned" in folder.read("log.txt").decode()
    status = status_of(store, read_record(store.home))
    assert (status.done, status.failed, status.waiting, status.total) == (2, 1, 0, 3)
    monkeypatch.setattr(working, "_train_together", before)
    assert run_study(study, tmp_path).table.height == 2  # a failure stays until it is retried
    assert clear(folder)
    assert run_study(study, tmp_path).table["seed"].to_list() == [0, 1, 2]


def test_out_of_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(working, "_train_together", full)
    found = run_study(tiny_study(1), tmp_path)
    assert Store(tmp_path).folder(found.experiments[0].id).read_json("failure.json")["kind"] == "memory"


def test_a_measure_that_raises_fails_alone(tmp_path: Path) -> None:
    study = replace(tiny_study(2), measures=(Raises(1), Polarised(32)))
    found = run_study(study, tmp_path)
    assert found.table["state"].to_list() == ["done", "done"]
    assert found.table["raises.value"].to_list() == [1, None]
    assert found.table["raises.failure"].to_list() == [None, "ValueError: no measure of this one"]
    assert found.table["polarised.n_active"].null_count() == 0
    kept = Store(tmp_path).folder(found.experiments[1].id)
    assert "Traceback" in kept.read_json(kept.names("failures/")[0])["log"]
    assert clear(kept)
    assert not kept.names("failures/")


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_study(2)
    run_study(study, tmp_path)
    marks = {path: path.stat().st_mtime_ns for path in tmp_path.glob("micro-*/**/*") if path.is_file()}
    monkeypatch.setattr(working, "_train_together", None)
    monkeypatch.setattr(Polarised, "__call__", None)
    run_study(study, tmp_path)
    assert marks == {path: path.stat().st_mtime_ns for path in marks}


@pytest.mark.parametrize(
    "damage",
    ["edit model.safetensors", "delete model.safetensors", "edit history.parquet", "delete measures",
     "edit config.json", "delete environment.json", "delete SHA256SUMS",
     "edit SHA256SUMS", "edit measures", "delete all"],
)  # fmt: skip
def test_a_damaged_folder_is_stated_and_repaired(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tiny_study(1)
    (experiment,) = run_study(study, tmp_path).experiments
    folder = Store(tmp_path).folder(experiment.id)
    before = {name: (folder.path / name).read_bytes() for name in folder.names()}
    verb, _, what = damage.partition(" ")
    victims = [name for name in [*before, "SHA256SUMS"] if what == "all" or name.startswith(what)]
    for name in victims:
        path = folder.path / name
        path.unlink() if verb == "delete" else path.write_bytes(path.read_bytes()[:-3] + b"#!\n")
    found = run_study(study, tmp_path)
    assert found.table["state"].to_list() == ["done"]
    after = {name: (folder.path / name).read_bytes() for name in folder.names()}
    for name in ("model.safetensors", "history.parquet", "config.json", Polarised(32).file):
        assert after[name] == before[name]
    if "SHA256SUMS" not in victims:
        assert f"{experiment.id} was damaged" in capsys.readouterr().err


def test_a_full_disk_stops_the_study_and_tears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, replaced, left = tiny_study(4, network=CONV), os.replace, [12]

    def fills_up(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] < 0 and "micro-" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        replaced(source, target)

    monkeypatch.setattr(files.os, "replace", fills_up)
    with pytest.raises(OSError, match="No space left"):
        run_study(study, tmp_path)
    monkeypatch.setattr(files.os, "replace", replaced)
    assert not list(tmp_path.glob("micro-*/failure.json"))
    assert not list(tmp_path.glob("**/.*.part"))
    found = run_study(study, tmp_path)
    assert found.table["seed"].to_list() == [0, 1, 2, 3]


NOBODYS_FAULT = (OSError(errno.ENOSPC, "full"), OSError(errno.EROFS, "read-only"), BlockingIOError("held by another"))
ITS_OWN = (OSError(errno.ENOENT, "gone"), ValueError("wrong"))


@pytest.mark.parametrize("error", [*NOBODYS_FAULT, *ITS_OWN], ids=str)
def test_only_what_is_a_runs_own_fault_is_kept_as_its_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    store, experiment = Store(tmp_path).prepare(), tiny(0).resolve()
    folder, raised = (
        store.folder(experiment.id),
        pytest.raises(type(error)) if error in NOBODYS_FAULT else nullcontext(),
    )
    with monkeypatch.context() as patch:
        patch.setattr(working, "_train_together", fail)
        with raised:
            working._train([experiment], store, RunOptions())
    assert folder.has("failure.json") == (error in ITS_OWN)
    clear(folder)
    working._train([experiment], store, RunOptions())
    monkeypatch.setattr(Polarised, "__call__", fail)
    with raised:
        working.take_measures((Polarised(32),), experiment.id, store)
    assert bool(folder.names("failures/")) == (error in ITS_OWN)


def test_more_is_to_do_where_a_trained_run_has_other_measures(tmp_path: Path) -> None:
    store, (fresh, trained) = Store(tmp_path).prepare(), (tiny(seed).resolve() for seed in (0, 1))
    working._train([trained], store, RunOptions())
    two, one = (Polarised(32), Polarised(16)), (Polarised(8),)
    told = [
        working.give_up(Pack((run,), asked), tmp_path, "died", "") for run in (fresh, trained) for asked in (two, one)
    ]
    assert told == [False, False, True, False]
    assert len(store.folder(trained.id).names("failures/")) == 2


def test_stopping_saves_and_the_same_call_goes_on(tmp_path: Path) -> None:
    study, asked = tiny_study(2, steps=40), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 30

    with pytest.raises(Interrupted):
        run_study(study, tmp_path / "stopped", how=RunOptions(stop=stop))
    assert list((tmp_path / "stopped").glob("fleet-*/checkpoints/*"))
    for path in (tmp_path / "stopped").glob("micro-*"):
        RunFolder(path).write_json("cost.json", RunFolder(path).read_json("cost.json") | {"seconds": 1000.0})
    found = run_study(study, tmp_path / "stopped")
    assert (found.table["cost.seconds"] > 1000.0).all()  # the time before the stop counts too
    run_study(study, tmp_path / "whole")
    for path in (tmp_path / "whole").glob("micro-*/model.safetensors"):
        assert path.read_bytes() == (tmp_path / "stopped" / path.parent.name / path.name).read_bytes()
    assert not list((tmp_path / "stopped").glob("fleet-*"))


def test_two_studies_in_one_store_share_their_runs(tmp_path: Path) -> None:
    run_study(tiny_study(2, "one"), tmp_path)
    marks = {path: path.stat().st_mtime_ns for path in tmp_path.glob("micro-*/model.safetensors")}
    found = run_study(tiny_study(4, "two"), tmp_path)
    assert found.table.height == 4
    assert all(path.stat().st_mtime_ns == mark for path, mark in marks.items())
    home = Store(tmp_path).home
    assert len(read_record(home, "one").experiments) == 2
    assert len(read_record(home, "two").experiments) == 4
    with pytest.raises(ValueError, match="several studies"):
        read_record(home)


def test_a_run_held_by_another_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = tiny(0).resolve()
    waits = []
    other = Holder(Store(tmp_path).prepare().home)

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert not Store(tmp_path).folder(experiment.id).path.exists()
        if len(waits) == 3:
            other.__exit__()

    monkeypatch.setattr(working.time, "sleep", wait)
    other.__enter__()
    other.take(experiment.id)
    train_and_measure(Pack((experiment,)), tmp_path)
    assert len(waits) == 3
    assert Store(tmp_path).folder(experiment.id).has("model.safetensors")


def test_a_folder_that_another_command_writes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, waits = tiny(0, network=CONV).resolve(), list[float]()
    with contextlib.ExitStack() as stack:
        stack.enter_context(Store(tmp_path).folder(experiment.id).locked())

        def wait(seconds: float) -> None:
            waits.append(seconds)
            stack.close()

        monkeypatch.setattr(working.time, "sleep", wait)
        train_and_measure(Pack((experiment,)), tmp_path)
    assert waits
    assert Store(tmp_path).folder(experiment.id).has("model.safetensors")


def test_clearing_away_leaves_every_result(tmp_path: Path) -> None:
    study = tiny_study(2)
    run_study(study, tmp_path)
    store = Store(tmp_path)
    results = {path: path.read_bytes() for path in tmp_path.glob("micro-*/**/*") if path.is_file()}
    torn = next(tmp_path.glob("micro-*")) / ".model.safetensors.7.part"
    torn.write_text("torn")
    fleet = tmp_path / "fleet-000000000000"
    fleet.mkdir()
    (store.home / "claims" / "x~0").symlink_to("gone")
    assert {path.name for path in sweep(store, dry_run=True).paths} == {torn.name, "fleet-000000000000", "x~0"}
    assert torn.exists()
    sweep(store)
    assert not torn.exists()
    assert not fleet.exists()
    assert all(path.read_bytes() == content for path, content in results.items())
    assert json.loads((store.home / "version").read_text()) == 1
