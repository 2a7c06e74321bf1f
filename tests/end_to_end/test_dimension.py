"""unweave dimension as a person would type it, on models far too small to learn anything."""

import json
from dataclasses import replace

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main
from unweave.data.micro import Micro
from unweave.metrics.polarised.traces import traces
from unweave.models.networks.conv import Conv
from unweave.models.objectives import AE, BetaVAE
from unweave.models.optimisers import Adam
from unweave.plots.dimension import ElbowTable, SearchTable, criterion, elbow_curves, search_path
from unweave.plots.save import to_png
from unweave.recipes.dimension import dimension, words_of_search
from unweave.recipes.dimension_search import DimensionSearch, bounds, steps_of
from unweave.recipes.dimension_study import DimensionQuestion, intrinsic_dimension
from unweave.runs.folder import RunFolder
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.record import read_record
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, Plan
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions
from unweave.web.catalogue import Catalogue
from unweave.web.searches import search_answer, search_names
from unweave.web.store import ReadOnlyStore

MODEL = "--network conv --network.channels 4,4 --network.kernels 4,4 --network.hidden 8 --batch-size 8 --steps 3"
MANNER = "--plan.threads 1 --plan.device cpu --examples 120 --most 6 --quiet"
SMALL = f"dimension micro {MODEL} {MANNER}".split()
TINY = Experiment(Micro(), BetaVAE(4.0), Conv((4, 4), (4, 4), 8), batch_size=8, plan=Plan("cpu", 1))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def answered(capsys, *words):
    assert main([*SMALL, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_search_its_page_and_its_runs(tmp_path, capsys):
    # 4.5 lies between the readings of these untrained models, whose every latent has a variance near 1
    found = answered(capsys, "--threshold", "4.5", "--start", "2")
    path = found["path"]
    assert found["answer"] == max(row["latents"] for row in path if row["passes"])
    assert found["models_trained_now"] == len(path) == len({row["latents"] for row in path})
    assert all(row["lower"] <= row["latents"] <= row["upper"] <= 7 for row in path)
    assert [row["passes"] for row in path] == [row["difference"] <= 4.5 for row in path]
    for row in path:
        run = Run(tmp_path / found["folder"] / row["run"])
        assert run.experiment.id == row["run"]
        assert (run.state, run.experiment.latents, run.experiment.steps) == ("done", row["latents"], 3)
        code = run.encode(run.data.examples(rows := run.rows(120)))
        assert traces(code.mean, code.variance).score == pytest.approx(row["difference"], rel=1e-4)
        assert len(rows) == 120
        assert row["active"] + row["mixed"] + row["passive"] == row["latents"]
    page = (tmp_path / found["page"]).read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "Every model that was trained" in page
    assert (tmp_path / found["page"]).with_name("figures").joinpath("fondue-path.png").read_bytes()[:4] == b"\x89PNG"
    # a study like any other: its record lists its runs, its table has what decided
    record = read_record(Store("runs").home, found["study"])
    assert record.experiments == tuple(row["run"] for row in path)
    table = Store("runs").table(record.experiments)
    assert table["fondue.trace.first"].to_list() == [row["Tr Var[Z]"] for row in path]
    assert main(["study", "status", found["study"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == len(path)


def test_nothing_is_trained_twice(tmp_path, capsys):
    first = answered(capsys, "--threshold", "4.5", "--start", "2")
    weights = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("model.safetensors")}
    again = answered(capsys, "--threshold", "4.5", "--start", "2")
    assert again["models_trained_now"] == 0
    assert again["path"] == first["path"]
    # other starts, thresholds and methods ask the same models
    other = answered(capsys, "--threshold", "4.5", "--start", "6")
    assert other["answer"] == first["answer"]
    assert other["models_trained_now"] == len(
        {r["latents"] for r in other["path"]} - {r["latents"] for r in first["path"]}
    )
    assert other["study"] == first["study"]
    assert {p: p.stat().st_mtime_ns for p in weights} == weights


@pytest.mark.parametrize("method", ["fondue_ide", "fondue_ib", "bs_fondue", "ib"])
def test_every_method(method, capsys):
    found = answered(capsys, "--method", method)
    assert found["method"] == method
    assert 0 <= found["answer"] <= 6
    assert found["threshold"] == {"bs_fondue": 1.0, "fondue_ide": 1.0}.get(method, -0.01)
    expected = [row["difference"] <= found["threshold"] + 1e-9 for row in found["path"]]
    assert [row["passes"] for row in found["path"]] == expected
    assert all(np.isfinite(row["difference"]) for row in found["path"])


def test_over_beta(capsys):
    found = answered(capsys, "--over", "beta", "--latents", "3", "--threshold", "100", "--resolution", "2")
    assert found["start"] == 6.0  # micro's own 12 is out of bounds
    assert (found["answer"], found["limited"]) == (6.0, True)
    assert [row["beta"] for row in found["path"]] == [6.0]


@pytest.mark.slow
def test_elbow_curves_beside_a_search_and_alone(capsys):
    found = answered(capsys, "--elbow", "3,1,2")
    assert found["elbow"]["sizes"] == [1, 2, 3]
    assert set(found["elbow"]["values"]) == {"reconstruction loss", "downstream accuracy"}
    assert all(0 <= value <= 1 for value in found["elbow"]["values"]["downstream accuracy"])
    alone = answered(capsys, "--method", "elbow", "--elbow", "1,2,3")
    assert alone["answer"] is None
    assert alone["elbow"] == found["elbow"]
    assert alone["models_trained_now"] == 0
    assert main([*SMALL, "--method", "elbow", "--elbow", "1,2,3"]) == 0
    assert "elbow" in capsys.readouterr().out


def test_people_read_a_table(capsys):
    assert main([*SMALL, "--start", "2"]) == 0
    text = capsys.readouterr().out
    assert "begun at 2: given" in text
    assert "page: runs" in text


def test_an_interrupted_search_goes_on(tmp_path):
    search = DimensionSearch(steps=6, examples=60, start=2.0, threshold=1.5, most=4.0)
    whole = dimension(TINY, search, tmp_path / "whole")
    steps = []

    def watch(report):
        steps.append(report.done)

    # in the middle of the second model
    with pytest.raises(Interrupted):
        dimension(TINY, search, tmp_path / "broken", how=RunOptions((watch,), 0.0, lambda: len(steps) >= 6 + 3))
    resumed = dimension(TINY, search, tmp_path / "broken", how=RunOptions((watch,), 0.0))
    assert resumed.rows == whole.rows
    # the first model was not trained again, the second went on
    assert steps == [*range(1, 7)] * len(whole.rows)
    assert resumed.n_trained == whole.n_trained - 1
    for path in (tmp_path / "whole").rglob("model.safetensors"):
        assert (tmp_path / "broken" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def test_training_is_doubled_until_the_answer_stays():
    answers = {10: 0, 20: 0, 40: 5, 80: 4, 160: 4, 320: 9}

    def pretend(experiment, measure):
        passes = experiment.latents <= answers[experiment.steps]
        return {"trace": {"first": 0.5 if passes else 2.0, "second": 0.0, "active": 1, "mixed": 1, "passive": 1}}

    search = DimensionSearch(start=1.0, steps=10, until_stable=True)
    found = DimensionQuestion(TINY, search, 1, 1, 100, 10)(pretend)
    # twice nothing is not an answer
    assert found.rounds == ((10, 0), (20, 0), (40, 5), (80, 4), (160, 4))
    assert found.fondue.n == 4
    words = words_of_search(search, found, lambda n: pretend(replace(TINY, latents=n, steps=160), None)["trace"])
    assert any("stayed" in sentence for sentence in words)


def test_a_model_that_fails_is_named(tmp_path):
    wild = replace(TINY, optimiser=Adam(1e30), steps=6)
    with pytest.raises(ValueError, match=r"a model is missing: .*\(run micro-beta_vae-"):
        dimension(wild, DimensionSearch(steps=6, examples=60, start=2.0, most=4.0), tmp_path)


@pytest.mark.slow
def test_workers_find_the_same(capsys):
    here = answered(capsys, "--threshold", "4.5", "--start", "2", "--folder", "here")
    there = answered(capsys, "--threshold", "4.5", "--start", "2", "--folder", "there", "--workers", "1")
    # convolutions on a CPU are trained alone anyway
    assert there["path"] == here["path"]


def old_search(new, folder):
    """A search as version 0.1.0 kept it, from one of today."""
    folder.mkdir()
    for row in new.rows:
        run = RunFolder(new.folder / row["run"])
        reading = run.read_json(FondueReading("trace", 60).file)["trace"]
        run.remove(*run.names("measures/"))
        run.write_json("dimension/trace-60.json", reading)
        run.path.rename(folder / f"latents-{row['latents']}-steps-{new.steps}")
    plain = {name: value for name, value in new.to_plain().items() if name != "study"}
    (folder / "fondue.json").write_text(json.dumps(plain))
    (folder / "fondue.html").write_text("the page")
    (folder / "search.json").write_text(json.dumps({"method": "fondue", "over": "latents", "threshold": 1.5}))


def test_a_search_of_version_0_1_0_is_converted(tmp_path, capsys):
    search = DimensionSearch(steps=3, examples=60, start=2.0, threshold=1.5, most=4.0)
    new = dimension(TINY, search, tmp_path / "new")
    (tmp_path / "runs").mkdir()
    old_search(new, tmp_path / "runs" / "dimension-old")
    assert main(["dimension", "--convert", "runs/dimension-old"]) == 0
    said = capsys.readouterr().out
    assert all(row["run"] in said for row in new.rows)
    assert new.name in said
    again = dimension(TINY, search, tmp_path / "runs")
    assert again.n_trained == 0
    assert (again.answer, again.rows, again.findings) == (new.answer, new.rows, new.findings)
    # the explorer shows it, with the answer that the old search had written
    shelf = ReadOnlyStore(tmp_path / "runs")
    assert search_names(shelf) == [new.name]
    found = search_answer(shelf, Catalogue(shelf), new.name)
    assert found.answer == new.answer
    assert [one.passes for one in found.visits] == [row["passes"] for row in new.rows]
    assert main(["dimension", "--convert", "runs"]) == 2
    assert "no models of a dimension search" in capsys.readouterr().err


def test_steps_bounds_and_start():
    data = Micro().load()
    assert steps_of(DimensionSearch(), TINY, data) == 2000
    assert steps_of(DimensionSearch(least_steps=1, epochs=2), TINY, data) == 2 * 2048 // 8
    assert bounds(DimensionSearch(), (1, 4, 4)) == (1, 16)
    assert bounds(DimensionSearch(), (1, 64, 64)) == (1, 1024)
    assert bounds(DimensionSearch(method="ib"), (1, 64, 64)) == (1, 200)
    assert bounds(DimensionSearch(over="beta", resolution=0.25, least=1.0, most=10.0), (1, 64, 64)) == (4, 40)
    assert 2 < intrinsic_dimension(data, 2048, 0) < 9


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_three_factors_of_the_micro_world_are_found_from_two_starts(seed, tmp_path):
    """All seeds from 0 to 9 and four starts: benchmarks/dimension_micro.py."""
    for start in (1.0, 5.0):
        found = uw.dimension("micro", tmp_path, quiet=True, start=start, seed=seed)
        assert found.answer == 3
        assert found.fondue is not None
        assert found.fondue.threshold == 1.0  # as published
        assert min(abs(row["difference"] - 1.0) for row in found.rows) > 0.05
    assert found.n_trained < len(found.rows)  # some models were there from the first start


def test_a_search_in_a_notebook(tmp_path):
    settings = {"network": Conv((4, 4), (4, 4), 8), "batch_size": 8, "plan": Plan("cpu", 1)}
    told = {"steps": 3, "examples": 60, "most": 3.0, "start": 1.0, "threshold": 100.0}
    found = uw.dimension("micro", tmp_path, quiet=True, **settings, **told)
    assert (found.answer, found.start, found.steps) == (3, 1, 3)
    assert found.search.method == "fondue"
    with pytest.raises(ValueError, match="Did you mean network"):
        uw.dimension("micro", tmp_path, networkk="mlp")


def test_bad_input(capsys):
    for words, said in {
        ("--latents", "4"): "leave out --latents",
        ("--over", "betta"): "Did you mean beta",
        ("--method", "fondu"): "Did you mean fondue",
        ("--start", "0"): "start must be positive",
        ("--objective", "ae"): "no noise",
        ("--objective", "pcl"): "pcl has no noise",
        ("--objective", "qlae"): "qlae has no noise",
        ("--over", "beta", "--elbow", "1,2,3"): "leave out --elbow",
        ("--elbow", "1,2"): "three numbers of latents",
        ("--examples", "3"): "examples must be at least 4",
    }.items():
        assert main([*SMALL, *words]) == 2, words
        assert said in capsys.readouterr().err
    assert main(["dimension"]) == 2
    assert "unweave dimension WORLD" in capsys.readouterr().err
    with pytest.raises(ValueError, match="every number of latents passes"):
        dimension(Experiment(Micro(), AE()), DimensionSearch())


def test_figures_of_a_search():
    visited = SearchTable([6, 3, 4], [0, 0, 3], [7, 6, 6], [6.3, 3.0, 4.1], [1.0, 2.8, 3.0], [False, True, False])
    drawn = ElbowTable([1, 2, 4], {"loss": [3.0, 1.0, 1.0], "accuracy": [0.1, 0.2, 0.9]}, {"loss": 2})
    for figure in (search_path(visited, 3), criterion(visited, 1.0, 3), elbow_curves(drawn, 2), elbow_curves(drawn)):
        assert to_png(figure).startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="must have 2 entries along visit"):
        search_path(SearchTable([6, 3], [0], [7, 6], [1.0, 1.0], [1.0, 1.0], [True, True]), 3)
    with pytest.raises(ValueError, match="curves is empty"):
        elbow_curves(ElbowTable([1, 2], {}, {}))
