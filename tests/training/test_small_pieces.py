"""Runs that methods begin with, exports, freed memory, members side by side: one small piece each."""

import ctypes
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import unweave as uw
from unweave.data.micro import Micro
from unweave.models.networks import MLP
from unweave.models.objectives import IVAE, PCL, Perturbation
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.training import export, memory, processes
from unweave.training.experiment import Experiment, Plan
from unweave.training.given import check_given, fill_given, given_run
from unweave.training.loop import train
from unweave.training.run import Run
from unweave.training.running import StepReport

ONE = Experiment(Micro(), network=MLP((4,), (4,)), latents=2, steps=2, batch_size=3, plan=Plan("cpu", 1))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(train(ONE, tmp_path_factory.mktemp("run") / "one"))


def test_networks_begin_as_parts_of_finished_runs(run: Run, tmp_path: Path) -> None:
    given = given_run(str(run.path))
    assert given.checksum == run.files.sums()[WEIGHTS]
    method = Perturbation(foster=(given,), diminish=(given,))
    check_given(method)
    networks = method.networks(replace(ONE, objective=method).architecture((1, 32, 32), (8, 8, 4)))
    fill_given(method, networks)
    for part in ("encoder", "decoder"):
        for name, tensor in getattr(run.model, part).state_dict().items():
            assert torch.equal(networks[f"foster0_{part}"].state_dict()[name], tensor)
    wide = method.networks(replace(ONE, objective=method, latents=3).architecture((1, 32, 32), (8, 8, 4)))
    with pytest.raises(ValueError, match="has other layers than this experiment's network"):
        fill_given(method, wide)
    other = Perturbation(foster=(replace(given, checksum="0" * 64),), diminish=(given,))
    with pytest.raises(ValueError, match="is not the run that was named"):
        fill_given(other, networks)
    anyone = replace(given, checksum="")
    fill_given(Perturbation(foster=(anyone,), diminish=(anyone,)), networks)
    RunFolder(tmp_path).write("config.json", b"{}")
    for asked in (
        lambda: given_run(str(tmp_path)),
        lambda: check_given(Perturbation((replace(given, run=str(tmp_path)),))),
    ):
        with pytest.raises(FileNotFoundError, match="has no trained model"):
            asked()


def test_an_export_is_written_again_and_never_over_another(run: Run, tmp_path: Path) -> None:
    target = uw.export(run, tmp_path / "out")
    assert uw.export(run, target) == target
    other = Run(train(replace(ONE, seed=1), tmp_path / "other"))
    with pytest.raises(ValueError, match="holds another model: choose another folder"):
        uw.export(other, target)
    with pytest.raises(ValueError, match="is the folder of a run"):
        uw.export(other, run.path)
    config = json.loads((target / "config.json").read_text())
    assert config["format"] == 1
    assert "method" not in config
    assert uw.from_pretrained(run.path).architecture == run.model.architecture


@pytest.mark.parametrize(("version", "known"), [(0, True), (1, True), (2, False), ("1", False), (None, False)])
def test_formats_up_to_ours_are_read(version: Any, known: bool) -> None:
    config = {"library_name": "unweave", "format": version}
    if known:
        export._check_known(config, Path("config.json"))
    else:
        with pytest.raises(ValueError, match="known up to 1"):
            export._check_known(config, Path("config.json"))
    with pytest.raises(ValueError, match="not a model of this version"):
        export._check_known({"library_name": "other", "format": 1}, Path("config.json"))


def test_the_card_tells_the_last_batch_and_how_to_use_the_model(run: Run, tmp_path: Path) -> None:
    text = export.card(run)
    last = float(run.history.column("reconstruction")[-1])
    assert f"Reconstruction loss of the last recorded batch: {last:.2f}" in text
    assert "A variational autoencoder with 2 latents, trained for 2 steps with seed\n0." in text
    assert "code = model.encode(images)" in text
    assert "pictures = model.decode(code.mean)" in text
    told = export.card(Run(train(replace(ONE, objective=IVAE()), tmp_path / "told")))
    assert "A ivae model" in told
    assert "model.encode(images, labels)" in told
    alone = export.card(Run(train(replace(ONE, objective=PCL()), tmp_path / "alone")))
    assert "Loss of the last recorded batch" in alone
    assert "# an encoder alone: nothing can be decoded" in alone


def test_scores_are_tables_of_one_or_two_kinds_of_codes() -> None:
    one = {"value": 0.25, "low": 0.125, "high": 0.5}
    table = export._score_table({"n_samples": 1200, "mean": {"scores": {"mig": one, "dci": {"value": None}}}})
    assert "Of 1,200 examples, with intervals at 95 %" in table
    assert "| score | mean codes |\n|---|---|\n| mig | 0.250 (0.125 … 0.500) |\n| dci | None |" in table
    both = {"n_samples": 9, "mean": {"scores": {"mig": {"value": 1}}}, "sampled": {"scores": {"mig": {"value": 0.5}}}}
    assert "Of 9 examples.\n" in export._score_table(both)
    assert "| mig | 1.000 | 0.500 |" in export._score_table(both)
    assert export._with_interval(None) == ""
    for half in ({"low": 0.1}, {"high": 0.1}):
        assert export._with_interval({"value": 0.3} | half) == "0.300"


def test_names_with_one_stroke_are_the_hubs_and_others_are_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name in ("model", "a/b/c", "./model", "/model", "~/model", tmp_path, "here/model"):
        assert not export._is_on_hub(name), name
    assert export._is_on_hub("owner/model")


@pytest.mark.parametrize(("answers", "kept"), [((1, 1), True), ((1, 0), False), ((0, 1), False)])
def test_both_settings_of_the_c_library_must_be_taken(
    answers: tuple[int, int], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    given = dict(zip((-3, -1), answers))
    library = SimpleNamespace(mallopt=lambda name, value: asked.append((name, value)) or given[name])
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert memory.keep_freed_memory() is kept
    assert asked[0] == (-3, 2**30)
    assert asked[1:] == ([(-1, 2**31 - 1)] if answers[0] else [])


def test_a_member_tells_how_far_it_is_in_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [0.0] * 6
    monkeypatch.setattr(processes, "_HELD", {"data": Micro().load(), "seen": held})
    job = processes._Job(replace(ONE, history_every=1), tmp_path / "one", 30.0, (), tmp_path / "stop", 1)
    assert processes._train_one(job) == ""
    assert held[:2] == held[4:] == [0.0, 0.0]
    assert held[2] == 2.0
    assert held[3] == pytest.approx(float(Run(tmp_path / "one").history.column("loss")[-1]), rel=1e-5)
    (tmp_path / "stop").touch()
    waiting = replace(job, folder=tmp_path / "two", place=2)
    assert processes._train_one(waiting) == ""
    assert held[4:] == [0.0, 0.0]


def test_the_mean_loss_is_that_of_models_that_tell_one() -> None:
    class Told:
        def __init__(self, *terms: dict[str, float]) -> None:
            self.held = [*terms]

        def terms(self) -> list[dict[str, float]]:
            return self.held

    assert StepReport(1, 2, True, Told({"loss": 1.0}, {"gap": 9.0}, {"loss": 4.0})).mean_loss() == (2.5, 2)
    mean, n = StepReport(1, 2, True, Told()).mean_loss()
    assert mean != mean
    assert n == 0


def test_without_a_folder_a_run_lies_below_runs_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert train(ONE) == Path("runs") / ONE.resolve().id
    assert (tmp_path / "runs" / ONE.resolve().id / "model.safetensors").exists()


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    assert memory.keep_freed_memory() is False


def test_an_export_of_settings_that_nobody_knows_is_another_model(run: Run, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    folder.write_json("config.json", {"experiment": {"world": "none"}})
    with pytest.raises(ValueError, match="holds another model"):
        uw.export(run, folder.path)


def test_files_of_the_hub_may_be_links_with_or_without_checksums(run: Run, tmp_path: Path) -> None:
    target, linked = uw.export(run, tmp_path / "out"), tmp_path / "linked"
    linked.mkdir()
    for path in target.iterdir():
        (linked / path.name).symlink_to(path)
    for _ in range(2):
        assert uw.from_pretrained(linked).architecture == run.model.architecture
        (linked / "SHA256SUMS").unlink(missing_ok=True)
