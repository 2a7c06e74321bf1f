"""A GPU that fails or cannot be reached is the machine's fault: pauses, then the end of the study, no failed models."""

import errno
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_studies import CONV, tiny, tiny_study

from unweave.runs.folder import RunFolder
from unweave.studies import outage, train_and_measure
from unweave.studies.executors import local, on_ray
from unweave.studies.executors.local import Local, _Worker
from unweave.studies.executors.on_ray import _heard
from unweave.studies.executors.on_slurm import _met_fault
from unweave.studies.outage import Outage, note_fault, noted_fault
from unweave.studies.pack import Pack, pack_to
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.training.many import is_gpu_fault
from unweave.training.running import GpuFailed, RunOptions

NOT_READY = "Unexpected error from cudaGetDeviceCount(). Error 807: MPS server is not ready to accept new clients"
WORDS = "the GPU failed (CUDA error: unknown error)"


def on_gpu(*seeds: int) -> Pack:
    given = [tiny(seed, network=CONV).resolve() for seed in seeds]
    return Pack(tuple(replace(one, plan=replace(one.plan, device="cuda")) for one in given))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PAUSES", (0.05, 0.05, 0.05))


def failing(monkeypatch: pytest.MonkeyPatch, faults: dict[int, int], *, answers: bool = True) -> list[int]:
    """Workers meet a fault over packs whose first seed is named, so many times; the seeds in the order of the work."""
    worked: list[int] = []

    def hand_over(self: _Worker, pack: Pack) -> None:
        seed = pack.experiments[0].seed
        worked.append(seed)
        if faults.get(seed, 0):
            faults[seed] -= 1
            note_fault(self.jobs.root / ".unweave", pack, WORDS)
            self._died_over(pack, 1, "Traceback\n")
            return
        self.jobs.outage.well(pack)
        self.jobs.back(pack, done=True)

    monkeypatch.setattr(_Worker, "_hand_over", hand_over)
    monkeypatch.setattr(local, "gpu_answers", lambda environment: answers)
    return worked


def failures(root: Path) -> set[str]:
    return {place.parent.name for place in root.glob("*/failure.json")}


@pytest.mark.parametrize("words", [NOT_READY, "No CUDA GPUs are available", "CUDA unknown error - this may be due to"])
def test_a_gpu_out_of_reach_is_a_fault_of_the_machine(words: str) -> None:
    assert is_gpu_fault(RuntimeError(words))
    assert not is_gpu_fault(ValueError(words))


@pytest.mark.parametrize("place", ["train_many", "load_together"])
def test_what_a_worker_meets_before_it_trains_is_counted_against_no_model(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_reach(*_: Any, **__: Any) -> None:
        raise RuntimeError(NOT_READY)

    monkeypatch.setattr(train_and_measure, place, out_of_reach)
    pack = Pack((tiny(0), tiny(1)))
    with pytest.raises(GpuFailed, match="MPS server is not ready"):
        train_and_measure.train_and_measure(pack, tmp_path)
    assert not failures(tmp_path)
    assert "MPS server" in noted_fault(tmp_path / ".unweave", pack)
    assert noted_fault(tmp_path / ".unweave", pack) == "", "a note is read once"


def test_a_measure_that_meets_a_fault_has_not_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_study(1)

    def faulty(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA error: unknown error")

    for measure in study.measures:
        monkeypatch.setattr(type(measure), "__call__", faulty)
    with pytest.raises(GpuFailed):
        train_and_measure.train_and_measure(Pack((study.experiments[0].resolve(),), study.measures), tmp_path)
    assert not list(tmp_path.glob("*/failures/*"))


def test_an_outage_is_waited_for_and_spoken_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worked, ended = failing(monkeypatch, {0: 2, 2: 1}), []
    Local(1)([on_gpu(0, 1), on_gpu(2, 3)], tmp_path, RunOptions(), ended.append)
    assert len(ended) == 2
    assert sorted(worked) == [0, 0, 0, 2, 2]
    assert not failures(tmp_path)
    told = capsys.readouterr().err.splitlines()
    assert told == [f"{WORDS}; that is no fault of the models, which are tried again after a pause"]


@pytest.mark.parametrize("before", [0, 1])
def test_an_outage_that_lasts_ends_the_study_and_fails_no_model(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked, begin = failing(monkeypatch, {0: 99, 2: 99}, answers=False), time.monotonic()
    packs = [on_gpu(9)] * before + [on_gpu(0, 1), on_gpu(2, 3)]
    ended: list[Pack] = []
    with pytest.raises(GpuFailed, match=r"unknown error\), 4 times in a row: once it works again, the same command"):
        Local(1)(packs, tmp_path, RunOptions(), ended.append)
    assert time.monotonic() - begin >= 0.15, "every pause was made"
    assert len(worked) == before + 4
    assert len(ended) == before
    assert not failures(tmp_path)


def test_a_fault_that_comes_back_for_one_pack_while_others_work_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked, ended = failing(monkeypatch, {0: 99, 1: 99}), []
    bad = on_gpu(0, 1)
    Local(1)([on_gpu(5), bad, on_gpu(6)], tmp_path, RunOptions(), ended.append)
    assert failures(tmp_path) == {one.id for one in bad.experiments}
    assert {one.seed for pack in ended for one in pack.experiments} == {0, 1, 5, 6}
    assert worked.count(5) == worked.count(6) == 1


def test_a_stop_does_not_wait_for_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PAUSES", (60.0,))
    worked, begin = failing(monkeypatch, {0: 99}), time.monotonic()
    from unweave.training.running import Interrupted

    with pytest.raises(Interrupted):
        Local(1)([on_gpu(0)], tmp_path, RunOptions(stop=lambda: bool(worked)), lambda pack: None)
    assert time.monotonic() - begin < 10
    assert not failures(tmp_path)


class _Crashed(Exception):
    pass


@pytest.fixture
def ray() -> Any:
    def get(reference: Any) -> str:
        if reference == "died":
            raise _Crashed("the worker died")
        return "ended"

    other = type("Other", (Exception,), {})
    kinds = {"WorkerCrashedError": _Crashed, "TaskCancelledError": other, "NodeDiedError": other}
    return SimpleNamespace(get=get, exceptions=SimpleNamespace(**kinds, OutOfMemoryError=other))


def test_ray_and_slurm_tell_a_fault_of_the_machine_from_a_packs(
    ray: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, state, pack = Store(tmp_path).prepare().home, Outage(), on_gpu(0, 1)
    note_fault(home, pack, WORDS)
    assert _heard(ray, "died", pack, tmp_path, lambda one: None, state) == [pack], "whole, and after a pause"
    assert state.pausing
    assert _heard(ray, "done", on_gpu(5), tmp_path, lambda one: None, state) == []
    note_fault(home, pack, WORDS)
    assert len(_heard(ray, "died", pack, tmp_path, lambda one: None, state)) == 2, "others have worked since"
    note_fault(home, pack, WORDS)
    left = [pack, on_gpu(7)]
    assert _met_fault(left, tmp_path, Outage(), RunOptions()) == ([pack], [left[1]])
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert not failures(tmp_path)


def test_ray_gives_a_model_up_whose_worker_died_and_tells_which_error_a_disk_gave(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).prepare()
    alone, ended = on_gpu(0), list[Pack]()
    assert _heard(ray, "died", alone, tmp_path, ended.append, Outage()) == []
    assert (ended, failures(tmp_path)) == ([alone], {alone.experiments[0].id})

    def refuse(*given: Any) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(on_ray, "train_and_measure", refuse)
    assert on_ray._task(pack_to(Pack((tiny(),))), str(tmp_path), 1.0, str(tmp_path / "stop")) == errno.EROFS


def test_what_earlier_versions_kept_as_a_models_failure_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tiny_study(2)
    for one, reason in zip(study.experiments, (f"RuntimeError: {NOT_READY}", "RuntimeError: mat1 and mat2")):
        folder = RunFolder(tmp_path / one.resolve().id)
        folder.write_json("failure.json", {"kind": "exception", "reason": reason})
    found = run_study(study, tmp_path)
    assert found.table.height == 1
    assert failures(tmp_path) == {study.experiments[1].resolve().id}
    assert "a run failed because of a GPU alone, and is tried again" in capsys.readouterr().err
