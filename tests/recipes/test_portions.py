"""A long study in portions: nothing is trained twice, kills lose nothing that was brought back, files stay small."""

import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from unweave.cli import main
from unweave.data.micro import Micro
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE
from unweave.recipes import portions
from unweave.recipes.portions import RECORD, run_portion, take_in, write_portion
from unweave.recipes.reproduce import reproduce
from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.executors.here import Here
from unweave.studies.measure_only import measure_only, missing
from unweave.studies.measures.codes import Codes
from unweave.studies.measures.measure import Measure
from unweave.studies.pack import Pack, measuring
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.seen import SeenStore
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan
from unweave.training.run import Run
from unweave.training.running import GpuFailed, RunOptions


def study(n: int = 4, steps: int = 4) -> Study:
    one = Experiment(
        Micro(),
        BetaVAE(1.0),
        MLP((8,), (8,)),
        latents=3,
        steps=steps,
        batch_size=8,
        history_every=2,
        plan=Plan("cpu", 1),
    )
    return Study("portions", tuple(replace(one, seed=seed) for seed in range(n)), (Codes(64),))


def numbers(root: Path) -> list[float]:
    """What was measured of every run, in the order of the study."""
    return [float(value) for value in measure_only(study(), root).table["codes.mean.total_correlation"].to_list()]


def test_two_portions_on_two_machines_are_one_study(tmp_path: Path) -> None:
    first = run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.2, models=2)
    assert (first.settled, first.asked, first.left_out) == (4, 4, 0)
    whole = run_study(study(), tmp_path / "whole")
    assert numbers(tmp_path / "one") == whole.table["codes.mean.total_correlation"].to_list()
    # another disk: everything is taken in, nothing is trained, and no weights came along
    again = run_portion([study()], tmp_path / "two", tmp_path / "found", minutes=0.2)
    assert (again.settled, again.new) == (4, 0)
    assert numbers(tmp_path / "two") == numbers(tmp_path / "one")
    assert not list((tmp_path / "two").rglob("*.safetensors"))
    assert len(list((tmp_path / "found").iterdir())) == 2


def test_what_another_device_trained_is_not_trained_again(tmp_path: Path) -> None:
    run_portion([study(2)], tmp_path / "one", tmp_path / "found", minutes=0.2)
    here = study(3)
    here = replace(here, experiments=tuple(replace(one, plan=Plan("cpu", 2)) for one in here.experiments))
    found = run_portion([here], tmp_path / "two", tmp_path / "found", minutes=0.2)
    assert (found.settled, found.asked, found.new) == (3, 3, 1)
    assert len(Store(tmp_path / "two").ids()) == 3


def test_a_portion_stops_in_time_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(costs: Sequence[float], seconds: float) -> int:
        return 1

    monkeypatch.setattr(portions, "_fitting", few)
    clock = iter(range(10_000))
    monkeypatch.setattr(portions.time, "monotonic", lambda: float(next(clock)))
    first = run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.5)
    assert 0 < first.settled < 4
    clock = iter(range(10_000))
    second = run_portion([study()], tmp_path / "two", tmp_path / "found", minutes=100)
    assert second.settled == 4
    assert second.new == 4 - first.settled


class Watched(Executor):
    """Remembers how many models were trained together."""

    workers = 1

    def __init__(self) -> None:
        self.fleets: list[int] = []

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        def told(pack: Pack) -> Sequence[Pack] | None:
            self.fleets += [len(pack.experiments)] * pack.trains
            return ended(pack)

        Here()(packs, root, how, told)


def test_what_follows_from_models_of_one_fleet_is_one_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(some: Sequence[Experiment], measures: Sequence[Measure], *, workers: int) -> list[Pack]:
        return measuring(some, measures, workers=len(some))

    def wider(results: Results) -> list[Experiment]:
        measured = [one for one in results.experiments if results.found(one, Codes(64)) is not None]
        return [replace(one, latents=5) for one in measured if one.latents == 3]

    monkeypatch.setattr(portions, "measuring", one_by_one)
    watched = Watched()
    searching = replace(study(), follow_up=wider)
    found = run_portion([searching], tmp_path / "one", tmp_path / "found", minutes=10, execute=watched)
    assert (found.settled, found.asked) == (8, 8)
    assert watched.fleets == [4, 4]


class Listed(Executor):
    """Remembers which models were trained together, by strength and seed."""

    workers = 1

    def __init__(self) -> None:
        self.fleets: list[list[tuple[float, int]]] = []

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        def told(pack: Pack) -> Sequence[Pack] | None:
            if pack.trains:
                self.fleets.append([(one.objective.beta, one.seed) for one in pack.experiments])  # type: ignore[attr-defined]
            return ended(pack)

        Here()(packs, root, how, told)


def test_what_is_cut_short_has_whole_seeds_of_every_setting(tmp_path: Path) -> None:
    settings = [replace(one, objective=BetaVAE(beta)) for beta in (1.0, 2.0, 4.0) for one in study(3).experiments]
    listed = Listed()
    run_portion(
        [replace(study(), experiments=tuple(settings))],
        tmp_path / "one",
        tmp_path / "found",
        minutes=1,
        models=3,
        execute=listed,
    )
    assert [sorted(fleet) for fleet in listed.fleets] == [
        [(beta, seed) for beta in (1.0, 2.0, 4.0)] for seed in range(3)
    ]


def test_nobody_looks_again_where_nothing_has_changed(tmp_path: Path) -> None:
    asked = []

    def more(results: Results) -> list[Experiment]:
        asked.append(len(results.experiments))
        return []

    run_study(study(2), tmp_path / "one")
    work = portions._Work(
        [replace(study(3), follow_up=more)], SeenStore(tmp_path / "one"), tmp_path / "found", Here(), None, 0.0
    )
    before = work.look(), len(asked)
    assert (work.look(), len(asked)) == before
    folder = Store(tmp_path / "one").folder(study(2).experiments[0].resolve().id)
    folder.remove(study().measures[0].file)
    assert work.look() == before[0]
    assert len(asked) == before[1] + 1
    assert len(work.found(work.latest)) == 1


def test_the_next_number_of_models_is_what_fits() -> None:
    assert portions._fitting([5.0, 15.0], 35.0) == 3
    assert portions._fitting([], 35.0) == portions.FIRST


def test_files_stay_few_and_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_study(study(6), tmp_path / "runs")
    monkeypatch.setattr(portions, "LARGEST", 2**16 + 3000)
    assert write_portion(tmp_path / "found", results.store, results.ids) == 0
    files = list((tmp_path / "found").iterdir())
    assert 2 < len(files) <= portions.MOST_FILES
    assert all(path.stat().st_size <= portions.LARGEST for path in files)
    assert take_in(tmp_path / "found", Store(tmp_path / "other").prepare()) == 6
    # no room for all: what is left out is counted
    monkeypatch.setattr(portions, "MOST_FILES", 2)
    assert write_portion(tmp_path / "found", results.store, results.ids) > 0
    assert len(list((tmp_path / "found").iterdir())) == 2


class Broken(Executor):
    """Trains some models, then meets a GPU that cannot be reached."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        def told(pack: Pack) -> Sequence[Pack] | None:
            following = ended(pack)
            if any(one.trains for one in following or ()):
                raise GpuFailed("the GPU failed")
            return following

        Here()(packs, root, how, told)


def test_a_portion_that_meets_an_outage_keeps_what_was_found_and_no_failures(tmp_path: Path) -> None:
    found = tmp_path / "found"
    with pytest.raises(GpuFailed):
        run_portion([study()], tmp_path / "one", found, minutes=1, models=2, execute=Broken())
    assert take_in(found, Store(tmp_path / "two").prepare()) == 2
    again = run_portion([study()], tmp_path / "two", found, minutes=1)
    assert (again.settled, again.new) == (4, 2)


def test_failures_of_a_gpu_that_an_earlier_version_carried_are_left_behind(tmp_path: Path) -> None:
    results = run_study(study(2), tmp_path / "runs")
    folder = results.store.folder(results.ids[0])
    folder.remove("model.safetensors")
    folder.write_json("failure.json", {"kind": "exception", "reason": "AcceleratorError: CUDA error: unknown error"})
    write_portion(tmp_path / "found", results.store, results.ids)
    assert take_in(tmp_path / "found", Store(tmp_path / "other").prepare()) == 1


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'scipy'"), MemoryError("no room")])
def test_what_a_machine_lacks_is_no_end_of_a_measure(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again on the same machine, and where only what was found came, the model is trained again."""

    def lacking(self: Codes, run: Run) -> dict[str, float]:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Codes, "__call__", lacking)
        run_portion([study(1)], tmp_path / "one", tmp_path / "found", minutes=10)
    shutil.copytree(tmp_path / "found", tmp_path / "brought")
    for place, found in (("one", "found"), ("two", "brought")):
        assert run_portion([study(1)], tmp_path / place, tmp_path / found, minutes=10).settled == 1
        table = measure_only(study(1), tmp_path / place).table
        assert "codes.failure" not in table.columns
        assert table["codes.mean.total_correlation"].is_finite().all()


def more_measures() -> Study:
    return replace(study(), measures=(Codes(64), Codes(32)))


class Nobody(Executor):
    """Nobody is asked to work."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        raise AssertionError(f"{len(packs)} packs were to be performed")


def test_runs_without_weights_that_lack_measures_are_missing_and_nobody_tries_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.5)
    take_in(tmp_path / "found", Store(tmp_path / "two").prepare())
    results = measure_only(more_measures(), tmp_path / "two", execute=Nobody())
    assert results.experiments == ()
    assert missing(more_measures(), results) == 4
    assert capsys.readouterr().err.splitlines()[-1] == (
        "4 runs came without weights and lack measures: train them again"
    )
    # as the sentence says
    trained = run_study(more_measures(), tmp_path / "two").table
    assert "4 runs came without weights and lack measures: trained again" in capsys.readouterr().err
    assert trained.height == 4
    columns = ["id", "state", *(name for name in trained.columns if name.startswith("codes"))]
    assert trained.select(columns).equals(run_study(more_measures(), tmp_path / "whole").table.select(columns))


def test_a_portion_takes_them_up_again_too(tmp_path: Path) -> None:
    run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.5)
    again = run_portion([more_measures()], tmp_path / "two", tmp_path / "found", minutes=0.5)
    assert (again.settled, again.new, again.left_out) == (4, 4, 0)


def test_what_earlier_portions_found_stays_whoever_goes_on(tmp_path: Path) -> None:
    run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.5)
    other = replace(study(2), experiments=tuple(replace(one, latents=2) for one in study(2).experiments))
    ended = run_portion([other], tmp_path / "two", tmp_path / "found", minutes=0.5)
    assert (ended.settled, ended.new) == (2, 2)
    assert take_in(tmp_path / "found", Store(tmp_path / "three").prepare()) == 6


def test_a_run_that_lacks_a_measure_stays_as_it_was_until_it_is_trained_again(tmp_path: Path) -> None:
    run_portion([study()], tmp_path / "one", tmp_path / "found", minutes=0.5)
    ended = run_portion([more_measures()], tmp_path / "two", tmp_path / "found", minutes=1e-9)
    assert ended.settled == 0
    assert take_in(tmp_path / "found", Store(tmp_path / "three").prepare()) == 4
    assert measure_only(study(), tmp_path / "three", execute=Nobody()).table.height == 4


def test_searches_go_on_too(tmp_path: Path) -> None:
    def more(results: Results) -> tuple[Experiment, ...]:
        told = results.found(study().experiments[0], Codes(64))
        return () if told is None else (replace(study().experiments[0], seed=9),)

    asked = replace(study(2), follow_up=more)
    found = run_portion([asked], tmp_path / "one", tmp_path / "found", minutes=0.5)
    assert (found.settled, found.asked) == (3, 3)


def test_what_came_without_weights_and_measures_is_missing(tmp_path: Path) -> None:
    asked = study(3)
    results = run_study(asked, tmp_path)
    for run_id in results.ids:
        Store(tmp_path).folder(run_id).leave_weights()
    last = Store(tmp_path).folder(results.ids[-1])
    last.remove(asked.measures[0].file)
    assert measure_only(asked, tmp_path).ids == results.ids[:-1]
    assert not last.has("failure.json")


@pytest.mark.parametrize("harm", ["flip", "record", "name"])
def test_a_damaged_portion_is_refused_in_a_sentence(tmp_path: Path, harm: str) -> None:
    results = run_study(study(1), tmp_path / "runs")
    write_portion(tmp_path / "found", results.store, results.ids)
    record = tmp_path / "found" / RECORD
    (block,) = (tmp_path / "found").glob("runs-*")
    if harm == "flip":
        block.write_bytes(block.read_bytes()[:-1] + b"x")
    elif harm == "record":
        record.write_text('{"format": 99}')
    else:
        told = json.loads(record.read_text())
        record.write_text(json.dumps(told | {"files": {"../../x": "0"}}))
    with pytest.raises(ValueError, match=r"damaged|no record|no plain name"):
        take_in(tmp_path / "found", Store(tmp_path / "other").prepare())


def test_the_command_takes_in_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "z-theorem-1", "--store", str(tmp_path)]
    assert main([*words, "--minutes", "1"]) == 2
    assert "--minutes needs --portion" in capsys.readouterr().err
    assert main([*words, "--portion", str(tmp_path / "none"), "--trained"]) == 2
    assert "there is no portion.json" in capsys.readouterr().err
    assert main([*words, "--minutes", "1", "--portion", str(tmp_path / "found")]) == 0
    assert json.loads(capsys.readouterr().out)["asked"] == 0


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from test_portions import study
from unweave.recipes.portions import run_portion
for _ in range(100):
    run_portion([study(6, 300)], {store!r}, {found!r}, minutes=5, models=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [2.5, 4.0])
def test_a_killed_portion_loses_nothing(tmp_path: Path, after: float) -> None:
    """Killed at any moment, what is in the folder is whole, and the same command ends with the same numbers."""
    store, found = tmp_path / "store", tmp_path / "found"
    script = SCRIPT.format(here=str(Path(__file__).parent), store=str(store), found=str(found))
    process = subprocess.Popen([sys.executable, "-c", script], env=os.environ, stderr=subprocess.DEVNULL)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = take_in(found, Store(tmp_path / "judging").prepare())
    ended = run_portion([study(6, 300)], store, found, minutes=5)
    assert ended.settled == 6 >= before
    fresh = Store(tmp_path / "fresh").prepare()
    assert take_in(found, fresh) == 6
    told = measure_only(study(6, 300), fresh.root).table["codes.mean.total_correlation"].to_list()
    assert told == run_study(study(6, 300), tmp_path / "whole").table["codes.mean.total_correlation"].to_list()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "size", "portion"),
    [
        ("k-6", "paper", "k-6"),
        ("z-fig-3.7", "paper", "z-synth"),
        ("z-table-3.2", "paper", "z-synth"),
        ("z-table-3.4", "paper", "z-table-3.4"),
        ("z-theorem-2", "paper", "z-theorem-2"),
        ("u-supervision", "small", "u-supervision"),
        ("z-table-4.2", "small", "z-table-4-small"),
        ("z-fig-4.9", "small", "z-table-4-small"),
        ("z-table-4.3-shapes", "small", "z-table-4-shapes"),
        ("z-fig-4.9-shapes", "small", "z-table-4-shapes"),
    ],
)
def test_what_was_brought_home_is_judged_as_its_page_says(page: str, size: str, portion: str, tmp_path: Path) -> None:
    name = page.removesuffix("-shapes")
    results = Path(__file__).parents[2] / "docs" / "results"
    take_in(results / "portions" / portion, Store(tmp_path / "store").prepare())
    found = reproduce(name, size, tmp_path / "store", lambda study: measure_only(study, tmp_path / "store"))
    rows = csv.DictReader((results / page / "results.csv").read_text(encoding="utf-8").splitlines())
    told = {row["what"]: (row["verdict"], float(row["ours"] or "nan")) for row in rows}
    ours = {row.what: (row.verdict, math.nan if row.ours is None else row.ours) for row in found.outcome.comparisons}
    assert told == {what: (verdict, pytest.approx(value, nan_ok=True)) for what, (verdict, value) in ours.items()}
