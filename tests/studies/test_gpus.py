"""Several GPUs, and GPUs that fail, with devices that are not there: who gets what, and what is said and kept."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_local import results
from tiny_studies import CONV, tiny, tiny_study

from unweave.cli.study_look import tell_status
from unweave.data import DSprites
from unweave.models.method import Given
from unweave.models.objectives import WSGAN, Perturbation
from unweave.studies import train_and_measure
from unweave.studies.executors import on_ray
from unweave.studies.executors.here import Here
from unweave.studies.executors.local import Local, _Queue, _Worker
from unweave.studies.executors.on_ray import OnRay
from unweave.studies.executors.on_slurm import OnSlurm
from unweave.studies.pack import Pack, pack
from unweave.studies.record import Record, write_record
from unweave.studies.run import run_study
from unweave.studies.status import status_of
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, Form, Plan, experiment_to, form_of_card
from unweave.training.fleet.share import least_bytes
from unweave.training.fleet.stepper import Stepper
from unweave.training.many import is_gpu_fault, train_many
from unweave.training.running import GpuFailed, RunOptions

FAULT = "CUDA error: unspecified launch failure\nCUDA kernel errors might be asynchronously reported"
Step = Callable[..., None]


def on_gpu(seed: int, device: str = "cuda", **changes: Any) -> Any:
    one = tiny(seed, network=CONV, **changes).resolve()
    return replace(one, plan=replace(one.plan, device=device))


def test_a_study_is_spread_over_all_gpus() -> None:
    many = [on_gpu(seed) for seed in range(96)]
    assert [len(one.experiments) for one in pack(many, workers=16, gpus=3)] == [32, 32, 32]
    assert [len(one.experiments) for one in pack(many, workers=16, gpus=1)] == [96]


def test_small_groups_stay_whole_where_there_are_as_many_as_gpus() -> None:
    mixed = [on_gpu(seed, latents=2 + group) for group in range(4) for seed in range(8)]
    assert [len(one.experiments) for one in pack(mixed, workers=16, gpus=4)] == [8, 8, 8, 8]


def test_a_cluster_of_unknown_size_gets_a_pack_a_worker() -> None:
    many = [on_gpu(seed) for seed in range(96)]
    assert [len(one.experiments) for one in pack(many, workers=4, gpus=0)] == [24, 24, 24, 24]


def test_models_that_step_one_after_the_other_are_spread_over_all_places() -> None:
    given = (Given("runs/a", "a" * 64),)
    attacks = [on_gpu(seed, objective=Perturbation(given, given)) for seed in range(3)]
    gans = [on_gpu(seed, objective=WSGAN()) for seed in range(24)]
    assert [len(one.experiments) for one in pack(attacks, workers=16, gpus=4)] == [1, 1, 1]
    assert [len(one.experiments) for one in pack(attacks, workers=16, gpus=1)] == [3]
    assert [len(one.experiments) for one in pack(gans, workers=16, gpus=4)] == [8, 8, 8]


@pytest.mark.parametrize(("listed", "seen"), [("", {"0", "1", "2"}), ("GPU-a, GPU-b,5", {"GPU-a", "GPU-b", "5"})])
def test_every_worker_sees_a_gpu_of_its_own(
    listed: str, seen: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    given: dict[str, list[Pack]] = {}
    waiting = [Pack((on_gpu(seed),)) for seed in range(3)]

    def hand_over(self: _Worker, one: Pack) -> None:
        given.setdefault(self._environment()["CUDA_VISIBLE_DEVICES"], []).append(one)
        while len(given) < 3:  # nobody is through before all have begun
            torch.nn.functional.relu(torch.zeros(1))
        self.jobs.back(one, done=True)

    monkeypatch.setattr(_Worker, "_hand_over", hand_over)
    ended: list[Pack] = []
    Local(1)(waiting, tmp_path, RunOptions(), ended.append)
    assert {*given} == seen
    assert len(ended) == 3


def test_several_fleets_share_a_gpu_where_each_takes_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    given: list[str] = []

    def hand_over(self: _Worker, one: Pack) -> None:
        given.append(self._environment()["CUDA_VISIBLE_DEVICES"])
        while len(given) < 6:  # nobody is through before all have begun
            torch.nn.functional.relu(torch.zeros(1))
        self.jobs.back(one, done=True)

    monkeypatch.setattr(_Worker, "_hand_over", hand_over)
    assert Local(1).n_gpus() == Local(1, 0.0).n_gpus() == 2
    assert Local(1, 0.3).n_gpus() == 6
    Local(1, 0.3)([Pack((on_gpu(seed),)) for seed in range(6)], tmp_path, RunOptions(), lambda pack: None)
    assert sorted(given) == ["0", "0", "0", "1", "1", "1"]


def test_fleets_are_measured_on_the_cores_while_the_next_ones_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first fleet's measures are handed out before the second fleet has ended, to a worker without a GPU."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    study = replace(tiny_study(2), experiments=(on_gpu(0), on_gpu(1, latents=4)))
    monkeypatch.setattr("unweave.studies.run.plan", lambda asked, needs_data: {one.id: one for one in asked})
    handed: list[tuple[bool, int, bool]] = []

    def hand_over(self: _Worker, one: Pack) -> None:
        handed.append((one.trains, one.experiments[0].latents, self.gpu is not None))
        folder = Store(tmp_path).folder(one.experiments[0].id)
        if one.trains and one.experiments[0].latents == 4:
            while (False, 2, False) not in handed:
                torch.nn.functional.relu(torch.zeros(1))
        folder.write("model.safetensors" if one.trains else study.measures[0].file, "{}")
        self.jobs.back(one, done=True)

    monkeypatch.setattr(_Worker, "_hand_over", hand_over)
    told: list[tuple[int, int]] = []
    run_study(study, tmp_path, execute=Local(2), tell=lambda done, total: told.append((done, total)))
    assert [trains for trains, _, _ in handed] == [True, True, False, False]
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_gpu_that_is_named_by_number_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    seen: list[bool] = []

    def hand_over(self: _Worker, one: Pack) -> None:
        seen.append("CUDA_VISIBLE_DEVICES" in self._environment())
        self.jobs.back(one, done=True)

    monkeypatch.setattr(_Worker, "_hand_over", hand_over)
    Local(1)([Pack((on_gpu(0, "cuda:1"),))], tmp_path, RunOptions(), lambda one: None)
    assert seen == [False]


def test_ray_and_slurm_say_how_many_gpus_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    import contextlib

    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 64.0, "GPU": 8.0})
    monkeypatch.setattr(on_ray, "_cluster", lambda given: contextlib.nullcontext(ray))
    assert (OnRay().n_gpus(), OnRay(gpus=2.0).n_gpus(), OnRay(gpus=0.0).n_gpus()) == (8, 4, 0)
    assert OnSlurm(workers=5).n_gpus() == 5
    assert Here().n_gpus() == 1


def test_a_cluster_of_our_own_is_quiet_and_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda *places, **options: told.append((places, options)),
        shutdown=lambda: told.append("gone"),
        cluster_resources=dict,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert OnRay(workers=3).n_gpus() == 0
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    assert told == [(("local",), {"num_cpus": 3} | quiet), "gone"]


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, at: int, times: int) -> list[int]:
    """Steps raise an error at a step, so many times; how often is in the list."""
    plain, left = Stepper.__call__, [times]

    def step(self: Stepper, number: int, *, record: bool) -> None:
        if number == at and left[0]:
            left[0] -= 1
            raise error
        plain(self, number, record=record)

    monkeypatch.setattr(Stepper, "__call__", step)
    return left


def test_a_gpu_that_fails_is_no_fault_of_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, RuntimeError(FAULT), 3, 1)
    given = [tiny(seed) for seed in range(3)]
    with pytest.raises(GpuFailed, match=r"the GPU failed \(CUDA error: unspecified launch failure\)\. Nothing is lost"):
        train_many(given, tmp_path, how=RunOptions(save_every=0.0))
    assert not list(tmp_path.glob("*/failure.json"))
    assert list(tmp_path.glob("fleet-*/checkpoints/*"))
    assert all((path / "model.safetensors").exists() for path in train_many(given, tmp_path))


def test_a_study_goes_on_in_a_new_process_from_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_study(tiny_study(3), tmp_path / "well")
    failing(monkeypatch, RuntimeError(FAULT), 3, 1)
    found = run_study(tiny_study(3), tmp_path / "failed", how=RunOptions(save_every=0.0))
    assert found.table.height == 3
    assert results(tmp_path / "well") == results(tmp_path / "failed")
    assert "goes on in a new process" in capsys.readouterr().err


def test_a_worker_that_dies_is_spoken_of_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Pack((tiny(0), tiny(1)))
    jobs = _Queue([], tmp_path, RunOptions())
    jobs.at_work = 1
    jobs.crashed(one, 1, "Traceback\nunweave.training.running.GpuFailed: the GPU failed")
    assert jobs.waiting == [one]
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "a worker ended with status 1 over 2 models (unweave.training.running.GpuFailed: the GPU failed); they go on"
    ]


def test_memory_that_runs_out_in_the_middle_costs_the_steps_since_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [tiny(seed) for seed in range(3)]
    whole = train_many(given, tmp_path / "whole")
    steps: list[int] = []
    monkeypatch.setattr("unweave.training.checkpoint.SAVING_SHARE", 1e9)
    failing(monkeypatch, torch.cuda.OutOfMemoryError("CUDA out of memory"), 3, 1)
    counted = Stepper.__call__

    def step(self: Stepper, number: int, *, record: bool) -> None:
        steps.append(number)
        counted(self, number, record=record)

    monkeypatch.setattr(Stepper, "__call__", step)
    again = train_many(given, tmp_path / "again", how=RunOptions(save_every=0.0))
    assert steps == [0, 1, 2, 3, 3, 4]
    assert "GPU memory ran out; going on from the last checkpoint of 3 models" in capsys.readouterr().err
    for path, other in zip(whole, again):
        assert (path / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


def test_only_what_a_gpu_says_is_its_fault() -> None:
    assert is_gpu_fault(RuntimeError(FAULT))
    assert is_gpu_fault(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED when calling cublasGemmEx"))
    assert not is_gpu_fault(torch.cuda.OutOfMemoryError("CUDA error: out of memory"))
    assert not is_gpu_fault(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_gpu_fault(ValueError("CUDA error"))


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that copies a megabyte in a second."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA X1")
    monkeypatch.setattr("unweave.training.fleet.share.copy_rate", lambda _device: 1e6)


@pytest.mark.usefixtures("card")
def test_a_pack_says_how_much_of_the_card_it_used_and_notes_it_with_every_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, runs = Store(tmp_path).prepare(), [on_gpu(seed) for seed in range(4)]
    for run in runs:
        store.folder(run.id).write_json("config.json", experiment_to(run))
    moved = runs[0].n_updates * least_bytes(runs[0], form_of_card(runs[0].world.card())) / 1e6
    # interrupted once: the time before counts too
    train_and_measure._note_cost(runs, store, 10 * moved)
    train_and_measure._note_cost(runs, store, 6 * moved)
    train_and_measure._note_share(runs, store)
    assert "4 models × 5 steps in" in (said := capsys.readouterr().err)
    assert "25% of the card in use" in said
    noted = [store.folder(run.id).read_json("cost.json") for run in runs]
    assert all(cost["device"] == "NVIDIA X1" for cost in noted)
    assert all(cost["share"] == pytest.approx(0.25, rel=0.001) for cost in noted)
    record = Record("shared", experiments=tuple(run.id for run in runs))
    write_record(store.home, record)
    status = status_of(store, record)
    assert status.share == pytest.approx(0.25, rel=0.001)
    tell_status(status, store)
    assert "25% of the card in use" in capsys.readouterr().out


@pytest.mark.usefixtures("card")
def test_a_share_that_cannot_be_told_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_device: str) -> float:
        raise torch.cuda.OutOfMemoryError("no room for a copy")

    monkeypatch.setattr("unweave.training.fleet.share.copy_rate", full)
    store, run = Store(tmp_path).prepare(), on_gpu(0)
    store.folder(run.id).write_json("config.json", experiment_to(run))
    train_and_measure._note_cost([run], store, 1.0)
    train_and_measure._note_share([run], store)
    assert "not known (OutOfMemoryError)" in capsys.readouterr().err
    assert "share" not in store.folder(run.id).read_json("cost.json")


@pytest.mark.usefixtures("card")
def test_a_step_of_the_standard_model_moves_what_was_counted_by_hand() -> None:
    standard = Experiment(DSprites(), plan=Plan("cuda", 1, "bf16"))
    # 105 MB when every layer is fused with its neighbours, weights in bf16 (benchmarks/NOTES.md)
    assert least_bytes(standard, Form((1, 64, 64), ())) == pytest.approx(105e6, rel=0.05)


def test_a_worker_with_a_gpu_measures_only_where_nothing_waits_to_be_trained(tmp_path: Path) -> None:
    measured, trained = (Pack((on_gpu(seed),), trains=trains) for seed, trains in ((0, False), (1, True)))
    jobs = _Queue([measured, trained], tmp_path, RunOptions())
    assert [jobs.next(gpu=True), jobs.next(gpu=True), jobs.next(gpu=True)] == [trained, measured, None]
    jobs = _Queue([measured, trained], tmp_path, RunOptions())
    assert [jobs.next(gpu=False), jobs.next(gpu=False)] == [measured, None]
