"""A reproduction from its study to its folder: page, CSVs, figures; and the report of any study."""

import csv
import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from unweave.cli import main
from unweave.data.micro import Micro
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE
from unweave.models.optimisers import Adam
from unweave.pages.outcome import Outcome
from unweave.pages.result_folder import slug
from unweave.pages.study import write_study_page
from unweave.plots.histogram import histogram
from unweave.recipes.part import Part
from unweave.recipes.reproduce import reproduce
from unweave.recipes.reproduction import Control, Reproduction
from unweave.recipes.reproductions import REPRODUCTIONS, Listed, find_reproduction
from unweave.studies.measures.codes import Codes
from unweave.studies.record import read_record
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import SIZES, Study
from unweave.studies.verdicts import compare_mean
from unweave.training.experiment import Experiment, Plan

HOSTILE = "<script>alert(1)</script>"


def tiny(size: str) -> Study:
    runs = [
        Experiment(
            Micro(),
            BetaVAE(beta),
            MLP((8,), (8,)),
            latents=3,
            steps=4,
            batch_size=8,
            seed=seed,
            plan=Plan("cpu", 1),
            history_every=2,
        )
        for beta in (1.0, 4.0)
        for seed in range(3)
    ]
    return Study(f"tiny-{size}", tuple(runs), (Codes(64),), "Tiny")


def judge(results: Results, size: str) -> Outcome:
    values = results.table["codes.mean.total_correlation"].to_list()
    comparisons = (
        compare_mean("right", values, sum(values) / len(values)),
        compare_mean(HOSTILE, values, 1e6),
        compare_mean("few", values[:1], 1.0),
    )
    rows = [{"setting": HOSTILE, "value": value} for value in values]
    return Outcome(comparisons, {"Some values": histogram({"all": values})}, {"Rows": rows}, ("Little can be told.",))


def nothing(results: Results, size: str, draw: int) -> Outcome:
    return Outcome(tuple(compare_mean(what, [], 1.0) for what in ("right", HOSTILE, "few")))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> str:
    module = types.ModuleType("unweave.recipes.fake")
    controls = (Control("nothing", "no models at all.", nothing),)
    module.REPRODUCTION = Reproduction("fake-1", "Tiny models", "Nobody (2000)", tiny, judge, controls)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(REPRODUCTIONS, "fake-1", Listed("fake", "Tiny models", "Figure 1"))
    return "fake-1"


def test_the_folder_holds_page_numbers_and_figures(fake: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    found = reproduce(fake, "smoke", store, lambda study: run_study(study, store), command="unweave reproduce fake-1")
    folder = store / ".unweave/reports/fake-1-smoke"
    assert found.page == folder / "index.html"
    page = found.page.read_text()
    for words in ("Nobody (2000)", "unweave reproduce fake-1", "core-hours", "Little can be told.", "torch"):
        assert words in page, words
    assert HOSTILE not in page
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert [row["verdict"] for row in rows] == [one.verdict for one in found.outcome.comparisons]
    assert rows[1]["what"] == HOSTILE
    assert float(rows[0]["ours"]) == pytest.approx(found.outcome.comparisons[0].ours)
    assert len(list(csv.DictReader((folder / "runs.csv").read_text().splitlines()))) == 6
    assert len(list(csv.DictReader((folder / "tables/rows.csv").read_text().splitlines()))) == 6
    assert (folder / "figures/some-values.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figures/some-values.pdf").read_bytes().startswith(b"%PDF")


def test_the_command_says_what_was_found(fake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", fake, "--store", str(tmp_path / "store"), "--output", str(tmp_path / "out"), "--json"]
    assert main([*words, "--quiet", "--executor", "here"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"agrees": 0, "differs": 0, "cannot tell": 0, "not evidence": 0, "runs": 3}
    assert Path(told["page"]) == tmp_path / "out/index.html"
    assert main(["reproduce", fake, "--store", str(tmp_path / "store"), "--trained", "--executor", "here"]) == 0
    assert "runs" in capsys.readouterr().out
    assert main(["reproduce", fake, "--size", "paper", "--store", str(tmp_path / "store"), "--executor", "here"]) == 0
    assert "differs" in capsys.readouterr().out


def test_a_store_without_runs_has_nothing_to_judge(
    fake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", fake, "--store", str(tmp_path), "--trained", "--executor", "here"]) == 2
    assert "has 0 finished runs of" in capsys.readouterr().err


def test_a_study_of_which_all_failed_ends_as_a_failure(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def diverging(size: str) -> Study:
        study = tiny(size)
        runs = tuple(replace(one, optimiser=Adam(1e30), steps=50) for one in study.experiments)
        return replace(study, experiments=runs)

    module = sys.modules["unweave.recipes.fake"]
    monkeypatch.setattr(module, "REPRODUCTION", replace(module.REPRODUCTION, study=diverging))
    assert main(["reproduce", fake, "--store", str(tmp_path), "--executor", "here", "--quiet"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("unweave: no model of tiny-smoke is finished in ")
    assert "so there is nothing to judge: 6 failed, the first one because" in said


def test_wrong_names_are_answered_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="unknown reproduction 'k-11'"):
        find_reproduction("k-11")
    assert main(["reproduce", "k-11"]) == 2
    assert "Did you mean" in capsys.readouterr().err
    assert main(["reproduce", "k-1", "k-2", "--output", str(tmp_path)]) == 2
    assert "one reproduction at a time" in capsys.readouterr().err


def test_the_list_names_every_reproduction(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list", "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == list(REPRODUCTIONS)


@pytest.mark.parametrize("name", [name for name in REPRODUCTIONS if not name.startswith("k-3")])
def test_every_reproduction_has_three_sizes_and_its_own_name(name: str) -> None:
    chosen = find_reproduction(name)
    assert chosen.id == name
    assert chosen.title
    assert chosen.source
    for size in SIZES[:2]:
        study = chosen.study(size)
        assert study.name
        assert all(isinstance(one, Experiment) for one in study.experiments)


def test_any_study_has_a_report(tmp_path: Path) -> None:
    results = run_study(tiny("smoke"), tmp_path)
    page = write_study_page(Store(tmp_path), read_record(tmp_path / ".unweave", "tiny-smoke"))
    text = page.read_text()
    assert "codes: mean total correlation" in text
    assert "codes.mean.total_correlation" not in text
    assert "beta_vae beta 4" in text
    name = slug("By setting: mean over seeds with its 95 % interval")
    rows = list(csv.DictReader((page.parent / "tables" / f"{name}.csv").read_text().splitlines()))
    values = results.table["codes.mean.total_correlation"].to_list()
    assert float(rows[0]["codes.mean.total_correlation"]) == pytest.approx(sum(values[:3]) / 3)


def test_claims_about_models_that_are_not_there_are_counted_and_not_listed(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_too(results: Results, size: str) -> Outcome:
        outcome = judge(results, size)
        return replace(outcome, comparisons=(*outcome.comparisons, compare_mean("of nobody", [], 1.0)))

    module = sys.modules["unweave.recipes.fake"]
    monkeypatch.setattr(module, "REPRODUCTION", replace(module.REPRODUCTION, judge=open_too))

    def told(part: Part) -> Outcome:
        return reproduce(fake, "smoke", tmp_path, lambda study: run_study(study, tmp_path), part=part).outcome

    assert [one.what for one in told(Part()).comparisons][-1] == "of nobody"
    some = told(Part(seeds=1))
    assert "of nobody" not in [one.what for one in some.comparisons]
    assert len(some.comparisons) == 3
    assert "1 more claim is about models that are not there: not judged." in some.notes
