"""How many models make a fleet and how many fleets, which errors are a GPU's, and who goes on after one."""

import inspect
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data.images import Images
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthNonLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import FactorVAE
from unweave.runs.folder import RunFolder
from unweave.training import checkpoint, many
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.stepper import Stepper
from unweave.training.loop import train
from unweave.training.many import fault_words, home_and_place, is_gpu_fault, train_many
from unweave.training.running import GpuFailed, Interrupted, RunOptions

BASE = Experiment(
    SynthNonLin(n_points=50), network=MLP((4,), (4,)), likelihood=Gaussian(), steps=6, batch_size=3, latents=2,
    history_every=2, plan=Plan("cpu", 1),
)  # fmt: skip


def pairs(n: int) -> list[Any]:
    return [(replace(BASE, seed=seed), RunFolder(f"nowhere/{seed}")) for seed in range(n)]


@pytest.mark.parametrize(
    ("n", "size", "fit", "parts"),
    [
        (50, None, 40, [25, 25]),
        (41, None, 40, [21, 20]),
        (40, None, 40, [40]),
        (7, None, 3, [3, 3, 1]),
        (7, 3, 100, [3, 3, 1]),
        (7, 6, 100, [6, 1]),
        (7, 6, 4, [4, 3]),
        (7, 9, 100, [7]),
        (1, None, 1, [1]),
        (0, None, 5, []),
    ],
)
def test_fleets_are_equal_or_as_large_as_was_said(
    n: int, size: int | None, fit: int, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "models_that_fit", lambda experiment, form: fit)
    data, given = BASE.world.load(), pairs(n)
    found = many._parts(given, size, data)
    assert [len(part) for part in found] == parts
    assert [pair for part in found for pair in part] == given


def test_what_is_said_of_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(many, "say", said.append)
    gpu = SimpleNamespace(store=SimpleNamespace(device=torch.device("cuda")))
    monkeypatch.setattr(many, "form_of", lambda method, data: None)
    for n, fit, place in ((4, 2, "cpu"), (4, 8, "cpu"), (4, 8, "cuda"), (4, 9999, "cuda"), (4, 10_000, "cuda")):
        monkeypatch.setattr(many, "models_that_fit", lambda experiment, form, fit=fit: fit)
        inspect.unwrap(many._parts)(pairs(n), None, gpu if place == "cuda" else BASE.world.load())
    assert said == [
        "4 models in 2 fleets of up to 2: 2 fit, so 100% of the memory is in use",
        "4 models in one fleet: 8 fit, so 50% of the memory is in use",
        "4 models in one fleet: 9,999 fit, so 0% of the memory is in use",
        "4 models in one fleet: thousands more would fit",
    ]


def test_the_largest_decides_how_many_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Experiment] = []
    monkeypatch.setattr(many, "models_that_fit", lambda experiment, form: asked.append(experiment) or 9)
    wide, two = replace(BASE, latents=5), replace(BASE, objective=FactorVAE())
    for given in ([BASE, wide, BASE], [wide, two, BASE]):
        many._parts([(one, RunFolder("nowhere")) for one in given], None, BASE.world.load())
    assert asked == [wide, two]


def test_which_errors_are_a_gpus() -> None:
    for words in ("CUDA error: unspecified launch failure\nmore", "CUBLAS_STATUS_EXECUTION_FAILED", "cuDNN error: x"):
        assert is_gpu_fault(RuntimeError(words))
    assert not is_gpu_fault(RuntimeError("shapes do not fit"))
    assert not is_gpu_fault(ValueError("CUDA error"))
    assert not is_gpu_fault(torch.cuda.OutOfMemoryError("CUDA error: out of memory"))
    assert fault_words(RuntimeError("CUDA error: gone\nmore")) == "the GPU failed (CUDA error: gone)"


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, at: int, times: int) -> list[int]:
    """Steppers that fail so many times at a step; the steps that are begun."""
    monkeypatch.setattr(checkpoint, "SAVING_SHARE", 1e9)
    plain, begun, left = Stepper.__call__, list[int](), [times]

    def step(self: Stepper, number: int, *, record: bool) -> None:
        begun.append(number)
        if number == at and left[0]:
            left[0] -= 1
            raise error
        plain(self, number, record=record)

    monkeypatch.setattr(Stepper, "__call__", step)
    return begun


def test_memory_that_was_enough_for_a_while_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = train_many([BASE], tmp_path / "plain")[0]
    begun = failing(monkeypatch, torch.cuda.OutOfMemoryError("CUDA out of memory"), 3, 1)
    (path,) = train_many([BASE], tmp_path / "again", how=RunOptions(save_every=0.0))
    assert begun == [0, 1, 2, 3, 3, 4, 5]
    assert "GPU memory ran out; going on from the last checkpoint of 1 model" in capsys.readouterr().err
    assert (path / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()


def test_memory_that_never_suffices_ends_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = failing(monkeypatch, torch.cuda.OutOfMemoryError("CUDA out of memory"), 3, 9)
    with pytest.raises(torch.cuda.OutOfMemoryError, match="CUDA out of memory"):
        train_many([BASE], tmp_path / "begun", how=RunOptions(save_every=0.0))
    assert begun == [0, 1, 2, 3, 3]
    begun = failing(monkeypatch, torch.cuda.OutOfMemoryError("CUDA out of memory"), 0, 9)
    with pytest.raises(torch.cuda.OutOfMemoryError, match="one model alone does not fit in GPU memory"):
        train_many([BASE], tmp_path / "new")


def test_a_broken_gpu_ends_everything_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = failing(monkeypatch, RuntimeError("CUDA error: gone"), 2, 9)
    with pytest.raises(GpuFailed, match=r"the GPU failed \(CUDA error: gone\)\. Nothing is lost"):
        train_many([BASE], tmp_path)
    assert begun == [0, 1, 2]


def test_a_fleet_is_named_by_its_members(tmp_path: Path) -> None:
    names = [many._home(pairs(n)).path.name for n in (1, 2, 2)]
    assert names[1] == names[2] != names[0]
    assert all(name.startswith("fleet-") and len(name) == len("fleet-") + 12 for name in names)


def test_a_run_is_found_in_its_own_folder_or_in_its_fleets(tmp_path: Path) -> None:
    stops = RunOptions(stop=lambda: True)
    with pytest.raises(Interrupted):
        train_many([replace(BASE, seed=seed) for seed in range(3)], tmp_path, how=stops)
    members = sorted(path for path in tmp_path.iterdir() if not path.name.startswith("fleet-"))
    places = {home_and_place(RunFolder(path))[1] for path in members}
    (home,) = {home_and_place(RunFolder(path))[0].path for path in members}
    assert (places, home.name[:6]) == ({0, 1, 2}, "fleet-")
    (alone,) = train_many([BASE], tmp_path / "alone")
    found, place = home_and_place(RunFolder(alone))
    assert (found.path, place) == (alone, 0)
    assert many.resume_fleet(RunFolder(members[0]), None, RunOptions()) is True
    assert all((path / "model.safetensors").exists() for path in members)
    assert many.resume_fleet(RunFolder(alone), None, RunOptions()) is False


def test_members_in_processes_are_those_that_have_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = list[str](), list[list[str]]()
    monkeypatch.setattr(many, "say", said.append)
    monkeypatch.setattr(many, "usable_cores", lambda: 2)
    given = [(replace(BASE, seed=seed), RunFolder(tmp_path / str(seed))) for seed in range(4)]
    given[1][1].write("model.safetensors", b"")

    def work(experiments: Any, folders: list[Path], *, data: Any, how: Any) -> list[str]:
        asked.append([path.name for path in folders])
        for path in folders if len(asked) == 1 else ():
            RunFolder(path).write("failure.json", b"{}")
        return ["one failed"]

    monkeypatch.setattr(many, "train_side_by_side", work)
    many._in_processes(given, BASE.world.load(), RunOptions())
    assert asked == [["0", "2", "3"]]
    assert said == ["3 models, 2 at a time in single-threaded processes", "one failed"]
    later = [(BASE, RunFolder(tmp_path / "later"))]
    with pytest.raises(Interrupted, match="stopped; the same command goes on"):
        many._in_processes(later, BASE.world.load(), RunOptions())
    assert said[2] == "1 model, 1 at a time in single-threaded processes"


def test_models_in_processes_side_by_side_have_a_thread_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(many, "_in_processes", lambda pairs, data, how: begun.extend(pairs))
    conv = replace(BASE, world=Micro(), network=Conv((2, 2), (2, 2), 4), plan=Plan("cpu", 2))
    train_many([conv, replace(conv, seed=1)], tmp_path)
    assert [experiment.plan.threads for experiment, _ in begun] == [1, 1]


def test_what_a_kill_left_after_the_last_result_goes_with_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [replace(BASE, seed=seed) for seed in range(2)]
    with monkeypatch.context() as killed:
        killed.setattr(many, "_disband", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train_many(members, tmp_path)
    assert [path.name for path in tmp_path.glob("*/member.json")] == ["member.json"] * 2
    weights = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")}
    paths = train_many(members, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")} == weights
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert not [*tmp_path.glob("*/member.json")]


def test_finished_models_beside_a_damaged_fleet_return_at_once(tmp_path: Path) -> None:
    members = [replace(BASE, seed=seed) for seed in range(2)]
    paths = train_many(members, tmp_path)
    for number, text in enumerate(("no list", "")):
        RunFolder(tmp_path / f"fleet-{number:012d}").write("fleet.json", '["../away"]')
        (tmp_path / f"fleet-{number:012d}" / "SHA256SUMS").write_text(text)
    assert train_many(members, tmp_path) == paths
    left = [path.name for path in tmp_path.glob("fleet-*")]
    assert left == ["fleet-000000000000"], "a damaged one is left alone, one without a list was killed while it went"


@pytest.mark.parametrize("refused", ["kernels", "file", "pictures", "files"])
def test_what_is_refused_leaves_no_folder(refused: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, place, words = [BASE], tmp_path / "runs", "network.kernels must be 1 number, each 2 or 4"
    if refused == "kernels":
        given = [replace(BASE, world=Micro(), network=Conv((3,)), seed=seed) for seed in (0, 1)]
    elif refused == "file":
        place.write_text("x")
        words = "runs is a file; give a folder, to which each model adds one of its own"
    elif refused == "pictures":
        for folder, value in (("cat", 0), ("dog", 200)):
            (place / folder).mkdir(parents=True)
            Image.fromarray(np.full((8, 8), value, np.uint8)).save(place / folder / "a.png")
        given = [replace(BASE, world=Images(str(place)))]
        words = r"runs holds other things \(cat\), and models get a folder of their own"
    else:
        place.mkdir()
        (place / "notes.txt").write_text("x")
        words = r"runs holds other things \(notes.txt\), and models get a folder of their own"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=words):
        train_many(given, place)
    assert sorted(tmp_path.rglob("*")) == before
    assert capsys.readouterr().err == ""


def test_a_store_with_models_may_hold_other_things(tmp_path: Path) -> None:
    (path,) = train_many([BASE], tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    assert train_many([BASE, replace(BASE, seed=1)], tmp_path)[0] == path


def test_one_model_has_a_folder_too(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"notes\.txt is a file; give a folder for the run"):
        train(BASE, tmp_path / "notes.txt")
