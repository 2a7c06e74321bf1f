"""What version 0.1.0 left on a disk: its runs open, its interrupted ones go on, its stores are judged as before.

The folders were written by that version on one machine; another may round otherwise, so what goes on is compared with
a whole run up to roundings.
"""

import shutil
from pathlib import Path

import polars
import pytest
import torch

from unweave.studies.store import Store
from unweave.training.experiment import experiment_from
from unweave.training.loop import resume, train
from unweave.training.many import train_many
from unweave.training.run import Run
from unweave.training.running import RunOptions

WRITTEN = Path(__file__).parents[1] / "reference" / "version_0_1_0"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(WRITTEN, tmp_path / "written"))


def agree(one: Path, other: Path) -> None:
    assert Run(one).history.columns == Run(other).history.columns
    assert Run(one).history.steps == Run(other).history.steps
    torch.testing.assert_close(Run(one).history.values(), Run(other).history.values(), rtol=1e-4, atol=1e-5)
    for name, weight in Run(other).model.state_dict().items():
        torch.testing.assert_close(Run(one).model.state_dict()[name], weight, rtol=1e-4, atol=1e-5)


def test_a_finished_run_opens(written: Path, tmp_path: Path) -> None:
    run = Run(written / "done")
    assert run.state == "done"
    agree(run.path, train(run.experiment, tmp_path / "again"))


@pytest.mark.parametrize("name", ["interrupted-beta_vae", "interrupted-factor_vae"])
def test_an_interrupted_run_goes_on(written: Path, tmp_path: Path, name: str) -> None:
    experiment, seen = Run(written / name).experiment, []
    path = resume(written / name, how=RunOptions((lambda report: seen.append(report.done),)))
    assert seen[0] == 24
    agree(path, train(experiment, tmp_path / "whole"))


def test_an_interrupted_fleet_goes_on(written: Path, tmp_path: Path) -> None:
    folders = sorted(path for path in (written / "fleet").iterdir() if path.name.startswith("synth_lin"))
    experiments = [experiment_from(Run(folder).files.read_json("config.json")) for folder in folders]
    whole = train_many(experiments, tmp_path / "whole")
    for path, other in zip(train_many(experiments, written / "fleet"), whole):
        agree(path, other)
    assert not list((written / "fleet").glob("fleet-*"))


def test_a_failed_run_says_why(written: Path) -> None:
    run = Run(written / "failed")
    assert run.state == "failed"
    assert run.files.read_json("failure.json")["term"] == "reconstruction"


def test_a_store_has_the_table_it_had(written: Path) -> None:
    before = polars.read_csv(written / "store.csv")
    for rebuild in (False, True):
        now = Store(written / "store").table(rebuild=rebuild).select(before.columns)
        for column in before.columns:
            if now[column].dtype.is_float():
                assert now[column].to_list() == pytest.approx(before[column].cast(float).to_list(), nan_ok=True), column
            else:
                assert now[column].to_list() == before[column].to_list(), column
