"""An experiment that cannot be trained leaves nothing behind, whichever engine finds that out."""

from dataclasses import replace
from pathlib import Path

import pytest

from unweave.data.micro import Micro
from unweave.models.networks import MLP, Conv
from unweave.models.objectives.ws_gan import WSGAN
from unweave.runs.folder import RunFolder
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.many import train_many

PLAN = Plan("cpu", 1)
REFUSED = {
    "network.kernels": Experiment(Micro(), network=Conv((1,), (4, 4, 4, 4)), steps=1, plan=PLAN),
    "latents": Experiment(Micro(), objective=WSGAN(), steps=1, plan=PLAN),
    "holdout": Experiment(Micro(), network=MLP((4,), (4,)), holdout=0.9999999, steps=1, plan=PLAN),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_experiment_leaves_no_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=name):
        train(REFUSED[name], tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_refused_fleet_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holdout"):
        train_many([replace(REFUSED["holdout"], seed=seed) for seed in (0, 1)], tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holdout"):
        train(REFUSED["holdout"], tmp_path / "empty")
    failed = RunFolder(tmp_path / "failed")
    failed.write_json("failure.json", {"step": 3})
    with pytest.raises(ValueError, match="holdout"):
        train(REFUSED["holdout"], failed.path)
    assert (tmp_path / "empty").is_dir()
    assert failed.names() == ["failure.json"]
