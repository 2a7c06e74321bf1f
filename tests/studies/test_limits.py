"""Studies at their limits: sizes of packs, deaths that are forgiven, pauses and leases that end, words about time."""

import io
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import polars as pl
import pytest
import torch
from tiny_studies import tiny

import unweave as uw
from unweave.data.micro import Micro
from unweave.sealed import sealed
from unweave.studies import leases, outage, pack, train_and_measure
from unweave.studies import sweep as sweeping
from unweave.studies.cost import cost_of, words_of
from unweave.studies.executors import local
from unweave.studies.executors.local import Local
from unweave.studies.failures import how_it_died, is_full, record
from unweave.studies.leases import Holder, born
from unweave.studies.measures import Polarised
from unweave.studies.outage import Outage
from unweave.studies.pack import Pack, measuring
from unweave.studies.protocols import protocols_in_words, settings_in_words
from unweave.studies.record import Record
from unweave.studies.status import status_of
from unweave.studies.store import Store
from unweave.studies.sweep import sweep
from unweave.studies.train_and_measure import _single_threaded
from unweave.training.running import GpuFailed, RunOptions


def runs(n: int, device: str = "cpu") -> list[uw.Experiment]:
    first = tiny(0).resolve()
    return [replace(first, seed=seed, plan=replace(first.plan, device=device)) for seed in range(n)]


def sizes(packs: list[Pack]) -> list[int]:
    return [len(each.experiments) for each in packs]


@pytest.mark.parametrize(
    ("n", "given", "expected"),
    [
        (16, {"gpus": 2}, [16]),  # too few for two
        (17, {"gpus": 2}, [9, 8]),
        (40, {"gpus": 2}, [20, 20]),
        (20, {"gpus": 4}, [10, 10]),
        (40, {"gpus": 0, "workers": 2}, [20, 20]),
        (40, {"gpus": 1, "workers": 2}, [40]),
        (60, {}, [60]),
        (61, {}, [31, 30]),
    ],
)
def test_fleets_are_parted_where_there_is_enough_for_every_gpu(
    n: int, given: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "MOST_ON_GPU", 60)
    assert sizes(pack.pack(runs(n, "cuda"), **given)) == expected


def test_measuring_is_spread_over_the_workers() -> None:
    assert sizes(measuring(runs(9), (), workers=4)) == [3, 3, 3]
    assert sizes(measuring(runs(17), (), workers=2)) == [8, 8, 1]
    assert measuring([], (), workers=2) == []
    several = [replace(one, plan=replace(one.plan, threads=3)) for one in runs(2)]
    assert [measuring(several, ())[0].threads, Pack(tuple(several)).threads] == [1, 3]


@pytest.mark.parametrize(("n_parameters", "expected"), [(1_000_000, [2]), (1_000_001, [1, 1])])
def test_large_models_are_not_stacked(n_parameters: int, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "_n_parameters", lambda experiment: n_parameters)
    assert sizes(pack.pack(runs(2))) == expected


def test_a_pack_may_die_twice_and_a_run_three_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Pack(tuple(runs(2)))
    jobs = local._Queue([], Store(tmp_path).prepare().root, RunOptions())

    def die(over: Pack) -> list[int]:
        jobs.at_work, jobs.waiting = 1, []
        jobs.crashed(over, -9, "one\n" + "x" * 300)
        return sizes(jobs.waiting)

    assert [die(both), die(both)] == [[2], [1, 1]]
    alone = Pack(both.experiments[:1])
    assert [die(alone), die(alone)] == [[1], [1]]
    assert not list(tmp_path.glob("*/failure.json"))
    assert die(alone) == []
    assert len(list(tmp_path.glob("*/failure.json"))) == 1
    assert jobs.left(), "nobody has heard of its end yet"
    said = capsys.readouterr().err.splitlines()
    assert said[0] == (
        f"a worker was killed by SIGKILL, perhaps for want of memory over 2 models ({'x' * 200}); they go on"
    )


@pytest.mark.parametrize(("share", "n"), [(1.0, 1), (0.5, 2), (0.25, 4), (0.3, 3), (2.0, 1), (0.0, 1)])
def test_fleets_share_a_gpu(share: float, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.torch.cuda, "device_count", lambda: 2)
    assert Local(1, gpus=share).n_gpus() == 2 * n


def test_a_worker_sees_one_of_the_gpus_that_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [local._visible(place) for place in (0, 3)] == ["0", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    assert [local._visible(place) for place in (0, 1)] == ["5", "7"]


def test_words_for_how_a_process_ended() -> None:
    assert [how_it_died(status) for status in (0, 1, -9, -15)] == [
        "ended with status 0",
        "ended with status 1",
        "was killed by SIGKILL, perhaps for want of memory",
        "was killed by SIGTERM",
    ]


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (MemoryError(), "memory", "MemoryError"),
        (RuntimeError("CUDA out of memory. Tried"), "memory", "RuntimeError: CUDA out of memory. Tried"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "memory", None),
        (FloatingPointError("nan"), "not finite", "FloatingPointError: nan"),
        (ValueError("one\ntwo"), "exception", "ValueError: one"),
    ],
)
def test_kinds_of_failures(error: Exception, kind: str, reason: str | None, tmp_path: Path) -> None:
    (run,) = runs(1)
    folder = Store(tmp_path).prepare().folder(run.id)
    record(folder, run, error)
    found = folder.read_json("failure.json")
    assert found["kind"] == kind
    assert reason is None or found["reason"] == reason
    assert folder.has("config.json")
    assert not is_full(error)


def test_a_pause_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: clock[0])
    state = Outage()
    assert not state.pausing
    for pause in (5.0, 15.0, 60.0, 180.0):
        state.begin("it failed")
        assert state.pausing
        state.begin("it failed")  # others who meet the same fault do not count
        clock[0] += pause - 0.01
        assert state.pausing
        clock[0] += 0.01
        assert not state.pausing
    with pytest.raises(GpuFailed, match="it failed, 5 times in a row"):
        state.begin("it failed")
    state.well(Pack(tuple(runs(1, "cuda"))))
    assert (state.in_a_row, state.worked) == (0, 1)
    state.well(Pack(tuple(runs(1))))
    assert state.worked == 1


def test_a_fault_is_a_packs_own_once_others_have_worked_since() -> None:
    state, bad, good = Outage(), Pack(tuple(runs(1, "cuda"))), Pack(tuple(runs(2, "cuda")))
    assert not state.is_own(bad)
    assert not state.is_own(bad, lambda: True), "nobody has worked yet"
    state.well(good)
    assert state.is_own(bad)
    assert not state.is_own(bad), "nobody has worked since"
    assert [state.is_own(bad, lambda said=said: said) for said in (True, False)] == [True, False]
    assert state.concerns(bad)
    assert not state.concerns(Pack(tuple(runs(3)), trains=False))


def test_a_holder_elsewhere_is_dead_after_exactly_its_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(leases.time, "monotonic", lambda: clock[0])
    for folder in ("claims", "holders"):
        (tmp_path / folder).mkdir()
    (tmp_path / "claims" / "a~0").symlink_to("token")
    (tmp_path / "holders" / "token").write_text('{"host": "far", "place": "far/1", "pid": 7, "born": "1"}')
    with Holder(tmp_path, patience=60.0) as holder:
        assert not holder.take("a")
        clock[0] += 60
        assert holder.take("a")
        assert holder.held == {"a"}


@pytest.mark.skipif(not Path("/proc/uptime").exists(), reason="is about Linux")
def test_a_process_is_known_by_when_it_began() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = born(child.pid)
    assert began is not None
    ticks = os.sysconf("SC_CLK_TCK")
    up = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(int(began) / ticks - up) < 60, "in ticks since the machine's start"
    assert int(born(os.getpid()) or 0) <= int(began)
    child.kill()
    until = time.monotonic() + 20
    while born(child.pid) is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert born(child.pid) is None, "one that has ended, and was not asked for its status, is gone"
    child.communicate()


@pytest.mark.parametrize(
    ("changes", "per_day", "left"),
    [
        ({}, 172_800.0, 1.5),
        ({"host": "elsewhere"}, 172_800.0, 1.5),
        ({"born": "1"}, 172_800.0, None),  # it has ended
        ({"ended": 0}, None, None),
        ({"seconds": 0.0}, None, None),
    ],
)
def test_the_time_that_is_left(changes: Any, per_day: float | None, left: float | None, tmp_path: Path) -> None:
    store = Store(tmp_path).prepare()
    (store.home / "studies").mkdir()
    noted = {"ended": 3, "seconds": 1.5, "host": os.uname().nodename, "pid": os.getpid(), "born": born(os.getpid())}
    (store.home / "studies" / "one.progress.json").write_text(sealed(noted | changes))
    found = status_of(store, Record("one", experiments=("a", "b", "c")))
    assert (found.total, found.waiting, found.done, found.models_per_day) == (3, 3, 0, per_day)
    assert found.seconds_left == left
    assert found.active == ("born" not in changes)
    assert not status_of(store, Record("one")).active, "nothing is left to do"


@pytest.mark.parametrize(("seconds", "words"), [(360.0, "0.10 core-hours"), (359.0, "0.1 core-hours"), (36.0, "0.01 ")])
def test_short_times_are_said_in_two_digits(seconds: float, words: str) -> None:
    found = cost_of(pl.DataFrame({"cost.device": ["cpu"], "cost.seconds": [seconds]}))
    assert words_of(found).startswith(words)


def test_settings_that_differ_are_told_two_at_most_and_short() -> None:
    files = {f"measures/m-{n}a.json": {"same": 1, "x": n, "y": n, "n_samples": n} for n in (1, 2)}
    assert settings_in_words(files) == {"1a": "1 samples, x 1", "2a": "2 samples, x 2"}
    for length in (38, 39):  # with "x " before it, forty letters or more
        word = "w" * length
        found = settings_in_words({"measures/m-1.json": {"x": word}, "measures/m-2.json": {"x": "v"}})["1"]
        assert found == (f"x {word}" if length == 38 else f"x {'w' * 37}…")
    assert settings_in_words({"measures/m-1.json": {"x": 1, "y": 2, "z": 3}})["1"] == "x 1, y 2"
    (told,) = protocols_in_words({"measures/m-1.json": {"x": "v" * 300, "on": True, "off": False, "none": []}})
    assert told.words == f"m: x {'v' * 200}; on; no off; none none"


def test_two_worlds_stay_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_and_measure, "_LOADED", {})
    worlds = [Micro(), Micro(correlated=("x=y:0.2",)), Micro(correlated=("x=y:0.3",))]
    first = [train_and_measure.loaded(world) for world in worlds[:2]]
    assert [train_and_measure.loaded(world) for world in worlds[:2]] == first
    train_and_measure.loaded(worlds[2])
    assert train_and_measure.loaded(worlds[1]) is first[1]
    assert train_and_measure.loaded(worlds[0]) is not first[0]


def test_runs_share_the_time_of_their_pack(tmp_path: Path) -> None:
    store, both = Store(tmp_path).prepare(), runs(2)
    for one in both:
        store.folder(one.id).write_json("config.json", {})
    train_and_measure._note_cost([*both, *runs(3)[2:]], store, 4.5)
    train_and_measure._note_cost(both, store, 0.0031)
    assert store.folder(both[0].id).read_json("cost.json") == {"seconds": 1.502, "device": "cpu", "models": 2}
    assert not store.folder(runs(3)[2].id).path.exists(), "one that did not begin has no folder"


def test_what_is_settled(tmp_path: Path) -> None:
    store, (run,) = Store(tmp_path).prepare(), runs(1)
    folder = store.folder(run.id)
    assert not train_and_measure.settled(folder, Pack((run,)))
    assert train_and_measure.settled(folder, Pack((run,), trains=False)), "there is nothing to measure"
    folder.write_json("failure.json", {"kind": "exception", "reason": "it failed"})
    assert train_and_measure.settled(folder, Pack((run,)))
    train_and_measure.train_and_measure(Pack((run,)), tmp_path / "other")
    trained = Store(tmp_path / "other").folder(run.id)
    assert train_and_measure.settled(trained, Pack((run,)))
    assert not train_and_measure.settled(trained, Pack((run,), (Polarised(32),)))
    assert [train_and_measure.words_without_weights(n).split(" ", 2)[:2] for n in (0, 1, 2)] == [
        ["0", "runs"], ["a", "run"], ["2", "runs"]
    ]  # fmt: skip


def test_what_is_swept_is_measured(tmp_path: Path) -> None:
    store = Store(tmp_path).prepare()
    logs = store.home / "logs"
    logs.mkdir()
    (logs / "worker-1.txt").write_text("x" * 70)
    (tmp_path / "fleet-000000000000").mkdir()
    (tmp_path / "fleet-000000000000" / "part").write_text("y" * 11)
    found = sweep(store, dry_run=True)
    assert found.n_bytes == 81
    assert (logs / "worker-1.txt").exists()
    with Holder(store.home) as holder:
        holder.take("a")
        assert (logs / "worker-1.txt") not in sweep(store).paths, "while somebody works, logs stay"
    sweep(store)
    assert not (logs / "worker-1.txt").exists()
    assert not (tmp_path / "fleet-000000000000").exists()


def test_what_leads_nowhere_has_its_own_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x" * 9)
    (tmp_path / "link").symlink_to("gone")
    assert [sweeping._size(tmp_path / name) for name in ("file", "link", "missing")] == [9, 4, 0]


@pytest.mark.parametrize("installed", [True, False])
def test_measures_are_taken_on_one_thread_and_the_others_come_back(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "threadpoolctl", None)  # type: ignore[arg-type]
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with _single_threaded():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("state", ["ended", "stopped"])
def test_only_a_pack_that_ended_tells_that_its_gpu_is_well(state: str) -> None:
    jobs, given = Mock(errors=[]), Mock(spec=Pack)
    worker = Mock(jobs=jobs)
    worker._running_process.return_value = Mock(stdout=io.StringIO(json.dumps({"state": state}) + "\n"))
    with patch.object(local, "pack_to", lambda pack: "{}"):
        local._Worker._hand_over(worker, given)
    assert jobs.outage.well.called == (state == "ended")
    jobs.back.assert_called_once_with(given, done=state == "ended")
