"""Export: the hub's layout, and a model that comes back the same."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import unweave as uw
from unweave.data.micro import Micro
from unweave.models.likelihoods import LearnedGaussian
from unweave.models.networks.conv import Conv
from unweave.models.objectives.qlae import QLAE
from unweave.recipes.zoo import put
from unweave.runs.folder import DamagedFile
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run

TINY = Experiment(
    Micro(),
    network=Conv((4, 8), (4, 4), 16),
    latents=3,
    steps=3,
    batch_size=8,
    plan=Plan("cpu", 1),
)


@pytest.mark.parametrize(
    "changes",
    [{}, {"objective": uw.BetaVAEFull(2.0)}, {"likelihood": LearnedGaussian("sigmoid")}, {"objective": QLAE()}],
)
def test_a_model_comes_back_the_same(changes, tmp_path):
    run = Run(train(replace(TINY, **changes), tmp_path / "run"))
    target = uw.export(run, tmp_path / "out")
    assert {path.name for path in target.iterdir()} == {"config.json", "model.safetensors", "README.md", "SHA256SUMS"}
    unusual = changes.get("objective") == QLAE()
    assert ("method" in json.loads((target / "config.json").read_text())) == unusual
    assert ("A qlae model with" if unusual else "A variational autoencoder with") in (target / "README.md").read_text()
    model = uw.from_pretrained(target)
    images = run.images(4)
    assert torch.equal(model.encode(images).mean, run.encode(images).mean)
    assert torch.equal(model.decode(torch.zeros(1, 3)), run.decode(torch.zeros(1, 3)))


def test_it_can_be_read_without_the_list_of_checksums(tmp_path):
    run = Run(train(TINY, tmp_path / "run"))
    target = uw.export(run, tmp_path / "out")
    (target / "SHA256SUMS").unlink()
    assert torch.equal(uw.from_pretrained(target).log_noise or torch.zeros(1), torch.zeros(1))


def test_bad_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no config.json"):
        uw.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"library_name": "other"}')
    with pytest.raises(ValueError, match="not a model of this version"):
        uw.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is not empty"):
        uw.export(Run(train(TINY, tmp_path / "run")), tmp_path)


@pytest.mark.parametrize("left", [".writing", ".config.json.99999999-1.part", "config.json"])
def test_it_is_written_again_where_a_kill_came_before_the_first_file_was_listed(tmp_path, left):
    run = Run(train(TINY, tmp_path / "run"))
    whole = uw.export(run, tmp_path / "whole")
    (tmp_path / "out").mkdir()
    shutil.copy(whole / "config.json", tmp_path / "out" / left)
    again = uw.export(run, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


def test_scores_that_are_none_are_refused_before_anything_is_written(tmp_path):
    run, scores = uw.Run(train(TINY, tmp_path / "run")), {"mig": {"value": 0.5}}
    for bad in ({}, [], 3, None, {"mean": 3}, {"mean": {}}, {"mean": {"scores": [1]}}, {"mean": {"scores": scores}}):
        run.files.write_json("scores.json", bad)
        for write in (uw.export, put):
            with pytest.raises(DamagedFile, match=r"scores\.json holds no scores; write it again with: unweave eval"):
                write(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run.files.write_json("scores.json", {"n_samples": 9, "mean": {"scores": scores}})
    assert "| mig | 0.500 |" in (uw.export(run, tmp_path / "out") / "README.md").read_text()


def test_a_file_is_no_folder_for_a_model(tmp_path):
    run = Run(train(TINY, tmp_path / "run"))
    (tmp_path / "table.csv").write_text("a")
    with pytest.raises(ValueError, match=r"table\.csv is a file; give a folder for the model"):
        uw.export(run, tmp_path / "table.csv")
