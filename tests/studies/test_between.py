"""Measures of several runs at once: taken when all are trained, kept with one, carried without weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from unweave.data.micro import Micro
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE
from unweave.recipes.part import Part, part_of
from unweave.recipes.portions import run_portion
from unweave.runs.folder import WEIGHTS
from unweave.studies.between import kept_by
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measure_only import measure_only
from unweave.studies.measures.codes import Codes
from unweave.studies.measures.layer_similarity import folders_of
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan
from unweave.training.run import Run


@dataclass(frozen=True)
class Checksums(Measure):
    """Of the weights of some runs: what can only be told where all of them are."""

    name: ClassVar[str] = "checksums"
    of: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        return self.of

    @property
    def file(self) -> str:
        return "between/checksums.json"

    def __call__(self, run: Run) -> Mapping[str, Any]:
        paths = folders_of(self.of, run.path.parent)
        return {"sums": [Run(path).files.sums()[WEIGHTS] for path in paths]}


def of_all(experiments: Sequence[Experiment]) -> list[tuple[Experiment, Measure]]:
    return [(experiments[0], Checksums(tuple(map(identity_of_asked, experiments))))]


def study(n: int = 3) -> Study:
    one = Experiment(Micro(), BetaVAE(1.0), MLP((8,), (8,)), latents=3, steps=4, batch_size=8, plan=Plan("cpu", 1))
    seeds = tuple(replace(one, seed=seed) for seed in range(n))
    return Study("between", seeds, (Codes(64),), between=of_all)


def found(results: Results) -> Any:
    asked = results.study
    (keeper, measure), *_ = of_all(asked.experiments)
    return results.found(keeper, measure)


def sums(root: Path) -> list[str]:
    store = Store(root)
    runs = sorted((store.run(run_id) for run_id in store.ids()), key=lambda run: run.experiment.seed)
    return [run.files.sums()[WEIGHTS] for run in runs]


def test_a_study_takes_them_when_all_is_trained_and_its_table_has_none(tmp_path: Path) -> None:
    results = run_study(study(), tmp_path / "one")
    assert found(results) == {"sums": sums(tmp_path / "one")}
    assert not [name for name in Store(tmp_path / "one").table().columns if "checksums" in name]


def test_they_are_taken_of_what_was_trained_elsewhere(tmp_path: Path) -> None:
    run_study(replace(study(), between=None), tmp_path / "one")
    assert found(measure_only(study(), tmp_path / "one")) == {"sums": sums(tmp_path / "one")}


def test_a_portion_carries_them_and_no_weights(tmp_path: Path) -> None:
    done = run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=10, models=1)
    assert (done.settled, done.asked) == (3, 3)
    again = run_portion([study()], tmp_path / "two", tmp_path / "found", minutes=10)
    assert (again.settled, again.new) == (3, 0)
    assert not list((tmp_path / "two").rglob("*.safetensors"))
    assert found(measure_only(study(), tmp_path / "two")) == {"sums": sums(tmp_path / "one")}


def test_what_is_to_be_held_against_models_to_come_is_carried_and_trained_again_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_portion([replace(study(2), between=None)], tmp_path / "one", tmp_path / "found", minutes=10)
    done = run_portion([study()], tmp_path / "two", tmp_path / "found", minutes=10)
    assert "2 runs came without weights that are needed: trained again" in capsys.readouterr().err
    assert (done.settled, done.asked) == (3, 3)
    assert found(measure_only(study(), tmp_path / "two")) == {"sums": sums(tmp_path / "two")}


def test_a_store_that_stays_takes_what_a_kill_left_open(tmp_path: Path) -> None:
    """All is trained and measured, and nothing is left but to compare."""
    run_study(replace(study(), between=None), tmp_path / "one")
    before = sums(tmp_path / "one")
    done = run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=10)
    assert (done.settled, done.new) == (3, 1)
    assert found(measure_only(study(), tmp_path / "one")) == {"sums": before}


def test_a_part_of_a_study_has_those_of_its_models(tmp_path: Path) -> None:
    part = part_of(study(), Part(seeds=2))
    ((keeper, (measure,)),) = kept_by(part).items()
    assert keeper == identity_of_asked(study().experiments[0])
    assert measure.others == tuple(identity(one) for one in part.experiments)
    assert found(run_study(part, tmp_path / "one")) == {"sums": sums(tmp_path / "one")}
