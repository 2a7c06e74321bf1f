"""A table of one's own through every command and through a notebook: columns in their own units, never pictures."""

import csv
import json
import shutil
from pathlib import Path

import matplotlib.figure
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import unweave as uw
from unweave.cli import main
from unweave.data.table import Table

SMALL = ["--network.encoder-widths", "8", "--network.decoder-widths", "8", "--latents", "3", "--quiet"]
SMALL += ["--plan.device", "cpu", "--plan.threads", "1", "--history-every", "10"]
LEARN = ["--steps", "60", "--optimiser.learning-rate", "1e-2"]
NAMES = ["width", "height", "weight"]


def people() -> pl.DataFrame:
    """Three columns of one number, in units as far apart as people's are, and what kind a row is."""
    size = np.random.default_rng(0).normal(size=300)
    noise = 0.05 * np.random.default_rng(1).normal(size=(300, 3))
    values = (size[:, None] + noise) * [0.01, 5.0, 8000.0] + [0.2, 170.0, 70_000.0]
    return pl.DataFrame(dict(zip(NAMES, values.T))).with_columns(kind=pl.Series(np.where(size > 0, "big", "small")))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run on it."""
    place = tmp_path_factory.mktemp("tables")
    people().write_csv(place / "people.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        patch.chdir(place)
        command = ["train", "people.csv", "--world.labels", "kind", *SMALL, *LEARN, "--folder", "runs/one"]
        assert main(command) == 0
    return place


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


@pytest.fixture
def run() -> uw.Run:
    return uw.load("runs/one")


def test_the_config_remembers_the_columns() -> None:
    plain = json.loads(Path("runs/one/config.json").read_text())
    assert (plain["network"]["name"], plain["network"]["encoder_widths"]) == ("mlp", [8])
    assert plain["likelihood"] == {"name": "gaussian", "variance": 0.025, "squash": "identity"}
    assert plain["world"]["names"] == NAMES
    assert np.allclose(plain["world"]["means"], people().select(NAMES).to_numpy().mean(axis=0))
    assert np.allclose(plain["world"]["deviations"], people().select(NAMES).to_numpy().std(axis=0))


def test_the_first_line_says_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    loud = [word for word in SMALL if word != "--quiet"]
    assert main(["train", "people.csv", "--world.labels", "kind", *loud, "--steps", "2"]) == 0
    assert "people: 300 rows of 3 columns; labels: kind" in capsys.readouterr().err


def test_rows_go_in_and_come_out_in_the_units_of_the_columns(run: uw.Run) -> None:
    frame = people()
    codes = run.encode(frame).mean
    for same in (pd.DataFrame(frame.to_dict(as_series=False)), run.data[:]):
        assert torch.allclose(run.encode(same).mean, codes, atol=1e-4)
    assert torch.equal(run.encode(frame.select(NAMES).to_numpy()).mean, codes)
    assert run.encode(frame.select(NAMES).row(0)).mean.shape == (1, 3)
    rebuilt = run.reconstruct(frame).numpy()
    values = frame.select(NAMES).to_numpy()
    # they are learned: what is left is a fraction of each column's spread
    assert (np.sqrt(np.square(rebuilt - values).mean(axis=0)) < 0.5 * values.std(axis=0)).all()
    assert run.sample(50).mean(0).numpy() == pytest.approx(values.mean(axis=0), rel=0.2)
    assert run.traverse(n=5).shape == (3, 5, 3)
    assert run.images(4)[:, 1].mean() == pytest.approx(170.0, rel=0.1)
    with pytest.raises(ValueError, match=r"rows of 3 columns \(width, height, weight\), one or many; given 2 × 4"):
        run.encode(np.zeros((2, 4)))


def test_measures_are_those_of_the_model_whatever_the_run_is_opened_as(run: uw.Run) -> None:
    bare = run.bare
    assert type(bare) is not uw.Run
    kinds = [one.diagnosis.latents for one in (run.diagnose(n_jacobians=4), uw.diagnose("runs/one", n_jacobians=4))]
    assert kinds[0] == kinds[1]
    mean, seen = run.encode(run.data[:]).mean, bare.encode(bare.data.examples(torch.arange(300))).mean
    assert torch.allclose(mean, seen, atol=1e-4)
    found = run.evaluate(metrics=["mig", "mcc"], seeds=0).scores["mean"]
    assert 0 <= float(found["mig"]) <= 1
    assert uw.intrinsic(run)["data"].score == pytest.approx(uw.intrinsic("runs/one")["data"].score)  # type: ignore[index]


def test_figures_and_pages_show_columns(run: uw.Run) -> None:
    figures = (run.plot_history(), run.plot_latents(), run.plot_reconstructions(), run.plot_traversals(n=3))
    assert all(isinstance(figure, matplotlib.figure.Figure) for figure in figures)
    assert "3 columns: width, height, weight" in run._repr_html_()
    page = run.report().read_text()
    assert "What latents do to columns" in page
    assert all(f">{name}<" in page for name in NAMES)
    assert "explained" in page
    assert "picture" not in page.partition("<body")[2].partition("How this was made")[0].replace("pictures, ", "")


@pytest.mark.parametrize("command", ["show", "evaluate", "intrinsic", "traverse"])
def test_commands_take_a_run_on_a_table(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = {"evaluate": ["--metrics", "mig", "--seeds", "0", "--no-pictures"], "intrinsic": ["--seeds", "1"]}.get(
        command, []
    )
    assert main([command, "runs/one", *few]) == 0
    assert "image" not in capsys.readouterr().out


def test_samples_are_a_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "runs/one", "-n", "5"]) == 0
    rows = list(csv.reader(Path("runs/one/samples.csv").read_text().splitlines()))
    assert rows[0] == NAMES
    assert len(rows) == 6
    assert 100 < float(rows[1][1]) < 250
    assert main(["sample", "runs/one", "-n", "2", "--out", str(tmp_path / "x.npz")]) == 0
    with np.load(tmp_path / "x.npz") as file:
        assert file["columns"].tolist() == NAMES
        assert file["x"].shape == (2, 3)
    assert main(["sample", "runs/one", "--out", str(tmp_path / "x.png")]) != 0
    assert "--out must end in .csv or .npz" in capsys.readouterr().err


def test_two_runs_are_compared_and_a_dimension_is_searched() -> None:
    other = ["train", "people.csv", "--world.labels", "kind", *SMALL, "--steps", "5", "--seed", "1"]
    assert main([*other, "--folder", "runs/two"]) == 0
    alike = uw.compare("runs/one", "runs/two", n=60, n_permutations=3)
    assert alike.comparisons[0].rows[0] == "input"
    few = {"network": uw.MLP((8,), (8,)), "steps": 5, "start": 2.0, "most": 2.0, "examples": 60, "quiet": True}
    found = uw.dimension(uw.world("people.csv", labels="kind"), "store", **few)  # type: ignore[arg-type]
    assert found.answer in (0, 1, 2)
    assert found.rows[0]["latents"] == 2


def test_fleets_and_studies_take_tables(tmp_path: Path) -> None:
    command = ["train", "people.csv", "--world.labels", "kind", *SMALL, "--steps", "3", "--seeds", "0:2"]
    assert main([*command, "--folder", str(tmp_path / "runs")]) == 0
    assert len(list((tmp_path / "runs").glob("table-*/model.safetensors"))) == 2
    table = Table("people.csv", labels=("kind",))
    plan = uw.Plan("cpu", 1)
    asked = uw.Experiment(table, network=uw.MLP((8,), (8,)), latents=2, steps=3, batch_size=8, plan=plan)
    assert asked.likelihood == uw.Gaussian(0.025)
    assert uw.Experiment(table).network == uw.MLP((128, 128), (128, 128))
    assert uw.Experiment(table, network=uw.Conv()).network == uw.Conv()
    study = uw.Study("tables", (asked,))
    results = uw.run_study(study, tmp_path / "store")
    assert len(results.table) == 1
    assert "1 of 1 model done" in results._repr_html_()
    assert "<tr><th>worlds</th><td>people</td></tr>" in study._repr_html_()


def test_an_export_says_how_rows_are_scaled(run: uw.Run, tmp_path: Path) -> None:
    target = uw.export(run, tmp_path / "model")
    text = (target / "README.md").read_text()
    assert "# columns: width, height, weight" in text
    frame = people().select(NAMES).to_numpy()
    assert run.columns is not None
    mean, deviation = np.array(run.columns.means), np.array(run.columns.deviations)
    code = uw.from_pretrained(target).encode(torch.from_numpy(((frame - mean) / deviation).astype(np.float32)))
    assert torch.allclose(code.mean, run.encode(frame).mean, atol=1e-5)


def test_a_run_is_used_without_its_table(run: uw.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run.encode(people()).mean
    shutil.copytree("runs/one", tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "empty"))
    lone = uw.load("elsewhere")
    assert torch.equal(lone.encode(people()).mean, before)
    assert lone.decode([0.0, 0.0, 0.0]).shape == (1, 3)


def test_what_does_not_fit_a_table_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--steps", "2", "--quiet", "--folder", "runs/bad"]
    for more, words in (
        (["--world.labels", "kind", "--network", "conv"], "the conv network needs images"),
        ([], "column 'kind' holds words ('big'), and a model learns from numbers: take it as a label, --world.labels"),
        (["--world.columns", "wdth"], "has no column 'wdth'; it has width, height, weight, kind"),
    ):
        assert main(["train", "people.csv", *more, *few]) != 0
        assert words in capsys.readouterr().err
        shutil.rmtree("runs/bad", ignore_errors=True)


def test_training_from_frames_and_arrays(tmp_path: Path) -> None:
    small = {"network": uw.MLP((8,), (8,)), "latents": 2, "steps": 3, "quiet": True, "plan": uw.Plan("cpu", 1)}
    frame = people()
    for name, given, more in (
        ("polars", frame, {"labels": "kind"}),
        ("array", frame.select(NAMES).to_numpy(), {"labels": frame["kind"].to_numpy(), "called": "people"}),
        ("data", uw.world("people.csv", labels="kind"), {}),
        ("table", "table", {"path": "people.csv", "labels": ["kind"]}),
        ("images", np.random.default_rng(0).random((20, 8, 8)), {}),
    ):
        found = uw.train(given, tmp_path / name, **small, **more)  # type: ignore[arg-type]
        assert found.state == "done"
        again = uw.load(tmp_path / name)
        assert len(again.data) == (20 if name == "images" else 300)
        assert again.encode(again.data[:3]).mean.shape == (3, 2)
    with pytest.raises(ValueError, match=r"unknown option 'latens'. Did you mean latents"):
        uw.train(frame, tmp_path / "bad", latens=3)  # type: ignore[call-arg]
