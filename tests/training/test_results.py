"""What a run keeps in its folder, and which folders it does not take."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from unweave.data.micro import Micro
from unweave.models.networks import MLP
from unweave.runs.folder import RunFolder
from unweave.training import results
from unweave.training.experiment import Experiment, Plan, experiment_to
from unweave.training.results import claim, ended, environment, failure_words, for_all, kept_words, refuse_others

ONE = Experiment(Micro(), network=MLP((4,), (4,)), latents=2, steps=2, plan=Plan("cpu", 1))


def test_work_is_done_side_by_side_and_comes_back_in_order() -> None:
    together = threading.Barrier(2, timeout=5)

    def work(item: int) -> tuple[int, bool]:
        together.wait()  # passes only where two are at work at once
        return 10 * item, threading.current_thread() is threading.main_thread()

    assert for_all(work, [3, 1]) == [(30, False), (10, False)]
    assert for_all(lambda item: threading.current_thread() is threading.main_thread(), [1]) == [True]
    assert for_all(lambda item: item, []) == []


def test_no_more_than_sixteen_are_at_work_at_once() -> None:
    lock, now, most = threading.Lock(), [0], [0]
    gate = threading.Barrier(16, timeout=5)

    def work(item: int) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        gate.wait()
        with lock:
            now[0] -= 1

    for_all(work, range(32))
    assert most == [16]


def test_a_folder_of_other_things_is_refused_and_hidden_or_own_ones_are_not(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    refuse_others(folder, ONE)
    folder.path.mkdir()
    (folder.path / ".hidden").touch()
    (folder.path / "checkpoints").mkdir()
    refuse_others(folder, ONE)
    (folder.path / "cat.png").touch()
    with pytest.raises(ValueError, match=r"holds other things \(cat\.png\), and a run needs a folder of its own"):
        refuse_others(folder, ONE)
    (folder.path / "dog.png").touch()
    with pytest.raises(ValueError, match=r"holds other things \(cat\.png and 1 more\)"):
        claim(folder, ONE)
    (folder.path / "config.json").write_text(json.dumps(experiment_to(ONE)))  # a run that lost its list of files
    refuse_others(folder, ONE)


def test_a_config_of_another_size_is_nobodys(tmp_path: Path) -> None:
    folder, plain = RunFolder(tmp_path), json.dumps(experiment_to(ONE))
    (tmp_path / "notes.txt").touch()
    for n_bytes, is_run in ((1 << 20, True), ((1 << 20) + 1, False)):
        (tmp_path / "config.json").write_text(plain + " " * (n_bytes - len(plain)))
        assert results._was_a_run(folder) is is_run


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    claim(folder, ONE)
    before = (folder.path / "environment.json").read_bytes()
    claim(folder, ONE)
    assert (folder.path / "environment.json").read_bytes() == before
    with pytest.raises(ValueError, match=r"already holds another run: latents is 2 there and 3 here\. Choose another"):
        claim(folder, replace(ONE, latents=3))


def test_differences_are_named_by_their_place() -> None:
    assert results._difference({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}) == "a.c is 2 there and 3 here"
    assert results._difference({"a": 1}, {"a": 1, "b": 2}) == "b is None there and 2 here"


def test_what_is_said_of_a_failure(tmp_path: Path) -> None:
    folder, told = RunFolder(tmp_path), {"step": 7, "term": "kl", "value": "nan"}
    assert kept_words(folder, told) == "No weights were kept: no recorded step gave a finite loss."
    words = failure_words(folder, told | {"kept_step": 5})
    assert words.startswith(f"{tmp_path}: training stopped at step 7: kl became nan. Weights of step 5, whose loss was")
    assert words.endswith("Try a smaller learning rate, or look at the data.")


def test_a_run_has_ended_with_its_model_or_its_failure(tmp_path: Path) -> None:
    for name, over in (("model.safetensors", True), ("failure.json", True), ("history.csv", False)):
        folder = RunFolder(tmp_path / name)
        folder.write(name, b"{}")
        assert ended(folder) is over
    assert not ended(RunFolder(tmp_path / "none"))


def test_the_environment_tells_the_time_in_seconds() -> None:
    found = environment()
    assert found["gpu"] is None
    assert found["threads"] == 1
    assert len(found["started"]) == len("2026-01-01T00:00:00+00:00")
