"""unweave dimension as a person would type it, on models far too small to learn anything."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main
from unweave.data.micro import Micro
from unweave.metrics.polarised.traces import traces
from unweave.models.networks.conv import Conv
from unweave.models.objectives import AE, BetaVAE
from unweave.plots.dimension import ElbowTable, SearchTable, criterion, elbow_curves, search_path
from unweave.plots.save import to_png
from unweave.recipes import dimension as recipe
from unweave.recipes.dimension import dimension
from unweave.recipes.dimension_models import intrinsic_dimension
from unweave.recipes.dimension_search import DimensionSearch, bounds, steps_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import Interrupted, Manner
from unweave.training.run import Run

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
        run = Run(tmp_path / found["folder"] / f"latents-{row['latents']}-steps-3")
        assert (run.state, run.experiment.latents, run.experiment.steps) == ("done", row["latents"], 3)
        code = run.encode(run.data.examples(rows := run.rows(120)))
        assert traces(code.mean, code.variance).score == pytest.approx(row["difference"], rel=1e-4)
        assert len(rows) == 120
        assert row["active"] + row["mixed"] + row["passive"] == row["latents"]
    page = (tmp_path / found["page"]).read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "Every model that was trained" in page
    assert (tmp_path / found["folder"] / "figures" / "fondue-path.png").read_bytes().startswith(b"\x89PNG")


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
    assert other["folder"] == first["folder"]
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
    calls = []

    def stop_early(words):
        calls.append(words)
        seen = iter(range(100))
        return nullcontext(Manner((), 0.0, lambda: len(calls) == 2 and next(seen) > 4))

    with pytest.raises(Interrupted):
        dimension(TINY, search, tmp_path / "broken", prepare=stop_early)
    resumed = dimension(TINY, search, tmp_path / "broken", prepare=stop_early)
    assert resumed.rows == whole.rows
    # the first model was not trained again, the second went on
    assert calls[1] == calls[2]
    assert calls.count(calls[0]) == 1
    for path in (tmp_path / "whole").rglob("model.safetensors"):
        assert (tmp_path / "broken" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def test_training_is_doubled_until_the_answer_stays(monkeypatch, tmp_path):
    answers = iter([0, 0, 5, 4, 4, 9])

    def pretend(models, start):
        n = next(answers)
        return recipe.Fondue(n, "fondue", 1.0, recipe_found(n), {})

    def recipe_found(n):
        from unweave.algorithms.search import Found

        return Found(n, (), False)

    monkeypatch.setattr(recipe, "_search", pretend)
    monkeypatch.setattr(recipe.Models, "judged", lambda self, n: dict.fromkeys(("active", "mixed", "passive"), 1))
    found = dimension(TINY, DimensionSearch(start=1.0, steps=10, until_stable=True), tmp_path)
    # twice nothing is not an answer
    assert found.rounds == ((10, 0), (20, 0), (40, 5), (80, 4), (160, 4))
    assert found.answer == 4
    assert any("stayed" in words for words in found.findings)


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
