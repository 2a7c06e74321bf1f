"""A column is a measure with its settings, and nothing changes what a study judges by."""

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tiny_studies import tiny_study

import unweave as uw
from unweave.cli import main
from unweave.evaluation.evaluation import evaluate
from unweave.pages.outcome import Outcome
from unweave.pages.result_folder import write_result_page
from unweave.pages.study import write_study_page
from unweave.runs.columns import raw_name, shown_names
from unweave.runs.folder import RunFolder
from unweave.runs.row import USUAL, row_of
from unweave.studies.measures import Polarised, Scores
from unweave.studies.measures.measure import Measure
from unweave.studies.record import read_record
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.verdicts import compare_mean

SETTINGS = ("0000aaaa", "1a2b3c4d", "1a2bffff", "ffff0000")


@dataclass(frozen=True)
class Says(Measure):
    """Gives back its setting."""

    name: ClassVar[str] = "says"
    value: int = 0

    def __call__(self, run: uw.Run) -> Mapping[str, Any]:
        return {"n": self.value, "nested": {"x": float(self.value)}}


def test_names_are_plain_where_there_is_no_doubt() -> None:
    alone = [raw_name("says", "0000aaaa", key) for key in ("n", "failure")]
    assert list(shown_names(["id", *alone]).values()) == ["id", "says.n", "says.failure"]
    apart = [raw_name("says", "0000aaaa", "left.n"), raw_name("says", "ffff0000", "right.n")]
    assert list(shown_names(apart).values()) == ["says.left.n", "says.right.n"]


@pytest.mark.parametrize("order", list(itertools.permutations(SETTINGS)))
def test_two_settings_are_never_one_column(order: tuple[str, ...]) -> None:
    names = [raw_name("says", settings, key) for settings in order for key in ("n", "failure")]
    shown = shown_names(names)
    assert len(set(shown.values())) == len(names)
    assert shown[raw_name("says", "0000aaaa", "n")] == "says@0000.n"
    assert shown[raw_name("says", "1a2b3c4d", "n")] == "says@1a2b3.n"
    assert shown[raw_name("says", "1a2bffff", "failure")] == "says@1a2bf.failure"
    own = shown_names(names, ["measures/says-1a2bffff.json"])
    assert list(own.values()) == ["says.n", "says.failure"]


def test_a_measure_never_takes_the_name_of_a_setting() -> None:
    names = ["seed.n", raw_name("seed", "0000aaaa", "n"), raw_name("a.b", "0", "c"), raw_name("a", "0", "b.c")]
    shown = shown_names(names)
    assert shown["seed.n"] == "seed.n"
    assert len(set(shown.values())) == 4
    with pytest.raises(ValueError, match="cannot be called"):
        raw_name("a@b:c", "0", "d")


def test_a_setting_that_looks_like_a_measure_is_one_damaged_row(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run").write_json("config.json", {"says@0000aaaa:n": 7})
    row = row_of(RunFolder(tmp_path / "run"))
    assert row is not None
    assert (row["state"], "no experiment has" in row["failure"]) == ("damaged", True)
    RunFolder(tmp_path / "other").write_json("config.json", {"^.*$": 7, "seed": 1})
    assert Store(tmp_path).table()["^.*$"].to_list() == [7, None]


def test_two_settings_side_by_side(tmp_path: Path) -> None:
    values = (1, 2, 3)
    study = replace(tiny_study(2), measures=tuple(Says(value) for value in values))
    results = run_study(study, tmp_path)
    for value in values:
        settings = Says(value).file.removesuffix(".json").rpartition("-")[2]
        (name,) = [one for one in results.table.columns if one.endswith(".n") and settings.startswith(one[5:-2])]
        assert results.table[name].to_list() == [value] * 2
    assert len([one for one in Store(tmp_path).table().columns if one.startswith("says@")]) == 6
    for value in values:
        own = Results(replace(study, measures=(Says(value),)), Store(tmp_path), results.experiments)
        assert own.table["says.n"].to_list() == [value] * 2
        assert not [one for one in own.table.columns if "@" in one]


def test_evaluate_changes_nothing_that_a_study_judges(tmp_path: Path) -> None:
    study = Study("judged", tiny_study(3).experiments, (Polarised(32), Scores(("mig",), 200)), "Judged")
    root = tmp_path / "runs"
    first = run_study(study, root)
    before = _judged(first, tmp_path / "before")
    for place, run_id in enumerate(first.ids):
        scored = ["--metrics", "mig,mcc", "--seeds", "0", "--no-pictures", "--quiet", "--json"]
        assert main(["evaluate", str(root / run_id), *scored, "--samples", str(40 + 20 * place)]) == 0
    assert _judged(run_study(study, root), tmp_path / "after") == before
    assert _judged(Results(study, Store(root), first.experiments), tmp_path / "again") == before
    Store(root).table(rebuild=True)
    assert _judged(Results(study, Store(root), first.experiments), tmp_path / "rebuilt") == before
    whole = Store(root).table()
    own = Scores(("mig",), 200).file[len("measures/scores-") :][:4]
    assert (
        whole[f"scores@{own}.mean.mig"].to_list()
        == first.store.table(measures=first.measures)["scores.mean.mig"].to_list()
    )
    evaluated = [name for name in whole.columns if name.startswith("scores@evaluate-") and name.endswith(".mean.mig")]
    assert len(evaluated) == 3  # 40, 60 and 80 samples: three protocols
    assert "scores.mean.mig" not in whole.columns


def _judged(results: Results, folder: Path) -> dict[str, bytes]:
    values = results.table["scores.mean.mig"].to_list()
    comparisons = (compare_mean("MIG", values, sum(values) / 3), compare_mean("other", values, 0.9))
    write_result_page(folder, "Judged", Outcome(comparisons, {}, {}, ()), results, command="x", meta={})
    return {name: (folder / name).read_bytes() for name in ("results.csv", "runs.csv")}


def test_pages_say_what_numbers_were_measured_with(tmp_path: Path) -> None:
    study = Study("told", tiny_study(2).experiments, (Scores(("mig",), 200),), "Told")
    results = run_study(study, tmp_path)
    record = read_record(tmp_path / ".unweave", "told")
    assert record.protocols[study.measures[0].file]["n_samples"] == 200
    assert "n_samples 200" in write_study_page(Store(tmp_path), record).read_text()
    page = write_result_page(tmp_path / "page", "Told", Outcome((), {}, {}, ()), results, command="x", meta={})
    assert "metrics mig; n_samples 200" in page.read_text()


def test_what_evaluate_is_usually_asked_for_is_known() -> None:
    given = inspect.signature(evaluate).parameters
    assert {"samples": given["n_samples"].default, "interventions": given["interventions"].default} == USUAL
