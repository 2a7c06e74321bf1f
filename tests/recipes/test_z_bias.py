"""Chapter 4 of Zietlow (2022): the chain of its models, what is claimed of them, and what a size may say."""

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from unweave.data.altered import Noise, Perturbed
from unweave.data.micro import Micro
from unweave.data.shapes3d import Shapes3D, Shapes3DLike
from unweave.models.method import Given
from unweave.models.networks import MLP
from unweave.models.objectives import Perturbation
from unweave.pages.manipulation import Losses
from unweave.recipes.controls import judged
from unweave.recipes.own import epsilon, transfer
from unweave.recipes.perturb import Candidate, Veil
from unweave.recipes.portions import run_portion, take_in, write_portion
from unweave.recipes.reproduce import reproduce
from unweave.recipes.reproductions import find_reproduction
from unweave.recipes.zietlow2022 import bias, bias_table
from unweave.recipes.zietlow2022.bias import (
    COLUMNS,
    CONDITIONS,
    KINDS,
    MODIFIED,
    NOISE,
    ORIGINAL,
    REVERSED,
    SAME,
    TABLE,
    VARIATIONAL,
)
from unweave.recipes.zietlow2022.bias_planes import ASKED as PLANES
from unweave.recipes.zietlow2022.bias_search import ASKED
from unweave.recipes.zietlow2022.bias_table import judge_table
from unweave.recipes.zietlow2022.fig_4_3 import _gain
from unweave.recipes.zietlow2022.table_4_2 import PUBLISHED
from unweave.studies.measure_only import measure_only
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.verdicts import Comparison
from unweave.training.experiment import experiment_from

IDS = ("z-table-4.2", "z-fig-4.3", "z-fig-4.4", "z-fig-4.8", "z-fig-4.9", "z-fig-4.10", "z-fig-4.11")
"""One of every judge; the other tables and figures differ in a metric."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smoke of seconds, whose models use all their latents."""
    amount = replace(
        bias.AMOUNTS["smoke"],
        methods=("AE", "β-VAE", "TC-VAE"),
        n_seeds=2,
        n_candidates=3,
        steps=40,
        perturb_steps=6,
        n_samples=200,
        scales=(1.0, 2.0),
        rate=1e-2,
        changes={"network": MLP((8,), (8,), "relu", "relu"), "init": "pytorch", "batch_size": 8},
    )
    monkeypatch.setitem(bias.AMOUNTS, "smoke", amount)
    place = replace(bias.PLACES["micro"], strengths={"β-VAE": 1e-3, "TC-VAE": 1e-3})
    monkeypatch.setitem(bias.PLACES, "micro", place)


@pytest.mark.parametrize("ids", [("z-table-4.2", "z-fig-4.3"), pytest.param(IDS, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("tiny")
def test_the_whole_chain_and_every_page(ids: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bias, "METRICS", ("mig", "sap_score"))  # the others take most of the time; a smoke judges none
    asked: list[Results] = []

    def bring(study):
        asked.append(run_study(study, tmp_path))
        return asked[-1]

    for name in ids:
        found = reproduce(name, "smoke", tmp_path, bring)
        assert found.outcome.comparisons
        assert found.count("runs") == len(found.outcome.comparisons), "smoke gives no verdict"
        assert all(one.controls and not any(c.passes for c in one.controls) for one in found.outcome.comparisons)
        assert found.page.is_file()
    first = asked[ids.index("z-table-4.2")]
    assert first.failed.height == 0
    # 3 to choose from, 3 methods × 3 kinds of images × 2 seeds, 3 manipulations, 2 controls × 2 seeds
    assert first.table.height == 3 + 18 + 3 + 4
    groups = bias.grouped(first)
    assert {condition for _, _, condition in groups} == {ORIGINAL, MODIFIED, NOISE, SAME, REVERSED}
    assert all(part.height == 2 for part in groups.values())
    # what follows is a function of the results alone
    follow = first.study.follow_up
    assert follow is not None
    assert list(follow(first)) == list(follow(Results(first.study, Store(tmp_path), first.experiments)))
    assert {one.resolve().id for one in follow(first)} <= set(first.ids)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_the_chain_in_portions_on_machines_that_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bias, "METRICS", ("mig",))
    study = bias.bias_study("portions", "smoke", "", replace(TABLE, methods=("β-VAE",)))
    candidates = [one for one in study.experiments if one.seed >= bias.FIRST_CANDIDATE]
    # what was found of the models to choose from came home without weights
    first = run_study(replace(study, experiments=tuple(candidates), follow_up=None), tmp_path / "one")
    write_portion(tmp_path / "found", first.store, first.ids)
    ended = run_portion([study], tmp_path / "two", tmp_path / "found", minutes=5, models=20)
    assert ended.settled == ended.asked == 3 + 3 * 2 + 3 + 4
    # two were trained again, for a manipulation is made from them; with these and the manipulations goes the rest
    third = Store(tmp_path / "three").prepare()
    take_in(tmp_path / "found", third)
    whole = {path.parent.name for path in third.root.glob("*/model.safetensors")}
    kinds = [third.run(one).experiment for one in whole]
    assert sum(isinstance(one.objective, Perturbation) for one in kinds) == 3
    assert 2 <= sum(one.seed >= bias.FIRST_CANDIDATE for one in kinds) < 3 + 1
    again = run_portion([study], third.root, tmp_path / "found", minutes=5)
    assert (again.settled, again.new) == (ended.settled, 0)
    straight = run_study(study, tmp_path / "straight")
    told = Results(study, third, tuple(straight.experiments)).table
    assert told.sort("id")["scores.mean.mig"].equals(straight.table.sort("id")["scores.mean.mig"])


BARE = """
import sys
from importlib.machinery import PathFinder

ALLOWED = {*sys.stdlib_module_names, "unweave", "torch", "torchgen", "functorch", "numpy", "safetensors", "jaxtyping",
           "triton", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock",
           "fsspec", "nvidia", "wadler_lindig", "tiny"}

class Finder:
    find_distributions = PathFinder.find_distributions
    invalidate_caches = PathFinder.invalidate_caches

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in ALLOWED or top.startswith("_sysconfigdata")
        return PathFinder.find_spec(name, path, target) if known else None

sys.meta_path[:] = [Finder if one is PathFinder else one for one in sys.meta_path]
"""
"""A machine that has PyTorch, and nothing to make tables or pictures with; its workers are no different."""

TINY = """
import sys
from dataclasses import replace

try:
    import matplotlib
    raise SystemExit("matplotlib is not hidden")
except ModuleNotFoundError:
    pass
from unweave.cli import main
from unweave.models.networks import MLP
from unweave.recipes import portions
from unweave.recipes.zietlow2022 import bias, bias_table

portions.WRITE_EVERY = 0.0
bias.METRICS = ("mig",)
small = {"network": MLP((8,), (8,), "relu", "relu"), "init": "pytorch", "batch_size": 8}
bias.AMOUNTS["smoke"] = replace(
    bias.AMOUNTS["smoke"], methods=("β-VAE",), n_seeds=2, n_candidates=4, steps=40, perturb_steps=6, n_samples=200,
    scales=(1.0, 2.0), rate=1e-2, changes=small,
)
bias.PLACES["micro"] = replace(bias.PLACES["micro"], ensemble=1, strengths={"β-VAE": 1e-3})
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_card_for_seconds_that_is_taken_away_again_and_again(tmp_path: Path) -> None:
    """Every call on a bare machine, killed at some moment: what is in the folder is whole, and the next goes on."""
    (tmp_path / "sitecustomize.py").write_text(BARE)
    (tmp_path / "tiny.py").write_text(TINY)
    source = str(Path(bias.__file__).parents[3])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), source))}
    ids, found = ("z-table-4.2", "z-fig-4.3", "z-fig-4.10"), tmp_path / "found"
    told: dict[str, int] = {}
    runs: list[int] = []
    for number in range(40):
        words = ["reproduce", *ids, "--size", "smoke", "--store", str(tmp_path / str(number)), "--portion", str(found)]
        words += ["--minutes", "2", "--models", "4", "--workers", "1"]
        command = [sys.executable, str(tmp_path / "tiny.py"), *words]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True) as process:
            try:
                told = json.loads(process.communicate(timeout=5 + 4 * number)[0])
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        runs.append(take_in(found, Store(tmp_path / f"seen-{number}").prepare()))
        if told:
            break
    assert told["settled"] == told["asked"] == 4 + 3 * 2 + 3 + 4
    assert len(runs) > 1
    assert runs == sorted(runs)
    assert runs[-1] == told["asked"]
    home = Store(tmp_path / "home").prepare()
    take_in(found, home)
    whole = {path.parent.name for path in home.root.glob("*/model.safetensors")}
    kinds = [home.run(one).experiment for one in whole]
    assert sum(isinstance(one.objective, Perturbation) for one in kinds) == 3
    assert 2 <= sum(one.seed >= bias.FIRST_CANDIDATE for one in kinds) <= 4, "both sides, and what is drawn"


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_planes_are_drawn_of_what_a_portion_brought_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bias, "METRICS", ("mig",))
    study = find_reproduction("z-fig-4.10").study("smoke")
    run_portion([study], tmp_path / "card", tmp_path / "found", minutes=5, models=20)
    take_in(tmp_path / "found", Store(tmp_path / "home").prepare())
    drawn = reproduce("z-fig-4.10", "smoke", tmp_path / "home", lambda study: measure_only(study, tmp_path / "home"))
    assert len(drawn.outcome.figures) == len(drawn.outcome.tables["Planes"]) > 0
    # without weights there are numbers, and no pictures
    for run_id in Store(tmp_path / "home").ids():
        Store(tmp_path / "home").folder(run_id).leave_weights()
    again = reproduce("z-fig-4.10", "smoke", tmp_path / "home", lambda study: measure_only(study, tmp_path / "home"))
    assert not again.outcome.figures
    assert again.outcome.tables == drawn.outcome.tables
    # and where weights are wanted, those models are trained again
    write_portion(tmp_path / "bare", Store(tmp_path / "home"), Store(tmp_path / "home").ids())
    ended = run_portion([study], tmp_path / "next", tmp_path / "bare", minutes=5, models=20)
    assert ended.settled == ended.asked
    assert len(list((tmp_path / "next").glob("*/model.safetensors"))) >= len(drawn.outcome.figures)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_beyond_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bias, "METRICS", ("mig",))
    monkeypatch.setattr(epsilon, "STRENGTHS", (0.5, 1.0))
    monkeypatch.setattr(epsilon, "ASKED", replace(epsilon.ASKED, strengths=(0.5, 1.0), controls=(REVERSED,)))
    monkeypatch.setattr(transfer, "ASKED", replace(transfer.ASKED, controls=(REVERSED,)))
    bring = partial(run_study, root=tmp_path)
    curve, carried = (reproduce(name, "smoke", tmp_path, bring) for name in ("u-epsilon", "u-transfer"))
    assert len(curve.outcome.figures) == len(carried.outcome.figures) == 1
    rows = curve.outcome.tables["MIG at every ε"]
    assert {(row["images"], row["models"]) for row in rows} == {(one, 2) for one in (*CONDITIONS, REVERSED)}
    groups = {row["group"]: row["models"] for row in carried.outcome.tables["Drops"]}
    known = {"β-VAE, seeds that it was made from": 2, "β-VAE, seeds that were not chosen": 1, "β-VAE, new seeds": 2}
    assert groups == known | {"AE": 2, "TC-VAE": 2}
    for found in (curve, carried):
        assert found.count("runs") == len(found.outcome.comparisons) > 0
        assert found.page.is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_chain_that_was_cut_asks_for_the_same_models(tmp_path: Path) -> None:
    study = bias.bias_study("cut", "smoke", "", replace(TABLE, methods=("β-VAE",)))
    run_study(replace(study, follow_up=None), tmp_path)
    results = run_study(study, tmp_path)
    assert results.table.height == 3 + 6 + 3 + 4


def made_up(scores: dict[tuple[str, str], float], size: str, tmp_path: Path) -> Results:
    """Results whose β-VAEs, PCLs and others have given mean scores by method and condition."""
    amount, place = bias.AMOUNTS[size], bias.PLACES["dsprites"]
    given = (Given("runs/a", "a" * 64),)
    base = bias._candidate(place, amount, 0)
    attacks = [replace(base, objective=Perturbation(given, given), seed=seed) for seed in range(len(KINDS))]
    worlds = {ORIGINAL: place.world, NOISE: Noise(place.world, place.epsilon)}
    worlds |= {
        kind: Perturbed(f"runs/{attack.id}", place.world, 0.1, "0" * 63 + str(number))
        for number, (kind, attack) in enumerate(zip(KINDS, attacks))
    }
    rows, experiments = [], list(attacks)
    for (method, condition), mean in scores.items():
        for one in bias._of_method(place, amount, worlds[condition], method, range(amount.n_seeds)):
            experiments.append(one)
            wobble = 0.02 * ((one.seed * 7919) % 5 - 2) + 0.003 * one.seed * (condition == MODIFIED)
            measured = dict.fromkeys(COLUMNS.values(), mean + wobble) | {"alignment.n_active": 5}
            strength = {f"objective.{name}": getattr(one.objective, name, None) for name in ("beta", "gamma")}
            rows.append({"id": one.id, "state": "done", "seed": one.seed} | strength | measured)
    found = Results(bias.bias_study("x", size, "", TABLE), Store(tmp_path), tuple(experiments))
    found.__dict__["table"] = pl.from_dicts(rows, infer_schema_length=None)
    return found


def told(outcome_comparisons: tuple[Comparison, ...]) -> dict[str, str]:
    return {one.what: one.verdict for one in outcome_comparisons}


def test_a_drop_agrees_and_its_absence_differs(tmp_path: Path) -> None:
    scores = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.1, ("β-VAE", NOISE): 0.35}
    scores |= {("β-VAE", SAME): 0.4, ("β-VAE", REVERSED): 0.42}
    scores |= {("TC-VAE", ORIGINAL): 0.2, ("TC-VAE", MODIFIED): 0.4, ("TC-VAE", NOISE): 0.2}
    scores |= {("PCL", ORIGINAL): 0.2, ("PCL", MODIFIED): 0.2, ("PCL", NOISE): 0.2}
    scores |= {("WS-GAN", ORIGINAL): 0.6, ("WS-GAN", MODIFIED): 0.3, ("WS-GAN", NOISE): 0.6}
    outcome = judge_table("MIG", PUBLISHED, made_up(scores, "small", tmp_path), "small")
    found = told(outcome.comparisons)
    assert found["dSprites, β-VAE: MIG on original beside modified images"] == "agrees"
    assert found["dSprites, β-VAE: MIG on noisy beside modified images"] == "agrees"
    assert found["dSprites, TC-VAE: MIG on original beside modified images"] == "differs"
    assert found["dSprites, PCL: MIG stays on modified images"] == "agrees"
    assert found["dSprites, WS-GAN: MIG stays on modified images"] == "differs"
    assert found["dSprites, β-VAE: control, MIG where both sides are the same models"] == "agrees"
    assert found["dSprites, β-VAE: control, MIG of the exchanged beside the true manipulation"] == "agrees"
    assert found["dSprites, FactorVAE: MIG on original beside modified images"] == "cannot tell"
    assert not any("mean" in one.rule for one in outcome.comparisons), "small judges signs, no numbers"
    assert any("d = " in one.note for one in outcome.comparisons)


def test_a_drop_that_noise_gives_too_is_no_evidence(tmp_path: Path) -> None:
    scores = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.1, ("β-VAE", NOISE): 0.1}
    scores |= {("TC-VAE", ORIGINAL): 0.4, ("TC-VAE", MODIFIED): 0.1, ("TC-VAE", NOISE): 0.3}
    scores |= {("FactorVAE", ORIGINAL): 0.4, ("FactorVAE", MODIFIED): 0.1, ("FactorVAE", NOISE): 0.2}
    scores |= {("SlowVAE", ORIGINAL): 0.4, ("SlowVAE", MODIFIED): 0.1, ("SlowVAE", NOISE): 0.4}
    scores |= {("PCL", ORIGINAL): 0.2, ("PCL", MODIFIED): 0.2, ("PCL", NOISE): 0.2}
    compared = judged(find_reproduction("z-table-4.2"), made_up(scores, "small", tmp_path), "small").comparisons
    found = told(compared)
    drop = "dSprites, {}: MIG on original beside modified images".format
    assert found[drop("β-VAE")] == "not evidence"
    assert found[drop("TC-VAE")] == "agrees", "noise lowers it too, but by a third"
    assert found[drop("FactorVAE")] == "not evidence", "noise gives most of it"
    assert found[drop("SlowVAE")] == "agrees"
    noise = {one.what: one.controls[-1] for one in compared if one.controls[-1].name == "noise"}
    assert set(noise) == {drop(method) for method in VARIATIONAL}, "it is no control of what stays"
    gave = {method: noise[drop(method)].ours for method in VARIATIONAL}
    assert gave == pytest.approx({"β-VAE": 0.3, "TC-VAE": 0.1, "FactorVAE": 0.2, "SlowVAE": 0.0}, abs=1e-9)
    # without a drop of its own noise takes nothing away: what is missing is only how surely modified images score lower
    wide = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.3, ("β-VAE", NOISE): 0.42}
    compared = judged(find_reproduction("z-table-4.2"), made_up(wide, "small", tmp_path), "small").comparisons
    assert told(compared)[drop("β-VAE")] == "agrees"


@pytest.mark.parametrize(
    ("same", "verdict"), [(0.4, "agrees"), (0.3, "agrees"), (0.2, "not evidence"), (None, "agrees")]
)
def test_a_drop_that_a_manipulation_against_itself_gives_is_no_evidence(
    same: float | None, verdict: str, tmp_path: Path
) -> None:
    scores = {(method, ORIGINAL): 0.4 for method in ("β-VAE", "TC-VAE")}
    scores |= {(method, NOISE): 0.4 for method in ("β-VAE", "TC-VAE")}
    scores |= {(method, MODIFIED): 0.1 for method in ("β-VAE", "TC-VAE")}
    scores |= {} if same is None else {("β-VAE", SAME): same}
    compared = judged(find_reproduction("z-table-4.2"), made_up(scores, "small", tmp_path), "small").comparisons
    drop = {one.what: one for one in compared if "original beside modified" in one.what and one.n}
    assert [one.verdict for one in drop.values()] == [verdict, "agrees"]
    names = [[control.name for control in one.controls] for one in drop.values()]
    assert names == [["shuffled", "noise", *([] if same is None else ["same models"])], ["shuffled", "noise"]]


def test_that_a_score_rises_is_no_doing_of_a_control_that_leaves_it(tmp_path: Path) -> None:
    scores = {("TC-VAE", ORIGINAL): 0.2, ("TC-VAE", MODIFIED): 0.4, ("TC-VAE", NOISE): 0.2}
    drop = "dSprites, TC-VAE: MIG on original beside modified images"
    compared = judged(find_reproduction("z-table-4.2"), made_up(scores, "small", tmp_path), "small").comparisons
    assert told(compared)[drop] == "differs"
    compared = judged(
        find_reproduction("z-table-4.2"), made_up(scores | {("TC-VAE", NOISE): 0.5}, "small", tmp_path), "small"
    ).comparisons
    assert told(compared)[drop] == "not evidence", "noise raises it too"


@pytest.mark.parametrize("deviation", [None, 0.3, 0.001])
def test_nothing_is_found_on_images_that_are_all_changed_alike(
    deviation: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    veils = {} if deviation is None else {"dSprites": Veil(deviation, 0.9)}
    monkeypatch.setattr(bias_table, "_veils", lambda results: veils)
    scores = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.1, ("β-VAE", NOISE): 0.35, ("β-VAE", SAME): 0.4}
    compared = judged(find_reproduction("z-table-4.2"), made_up(scores, "small", tmp_path), "small").comparisons
    found = {one.what: one for one in compared if one.n}
    about = [one for what, one in found.items() if "beside" in what]
    assert len(about) == 3, "equality is judged at the published size alone"
    assert {one.verdict for one in about} == ({"not evidence"} if deviation == 0.001 else {"agrees"})
    asked = [any(control.name == "the same on every image" for control in one.controls) for one in about]
    assert asked == [deviation is not None] * 3


@pytest.mark.parametrize(
    ("noise", "verdict"), [(0.4, "agrees"), (0.3, "agrees"), (0.2, "not evidence"), (0.1, "not evidence")]
)
def test_no_scale_brings_it_back_unless_noise_takes_it_too(noise: float, verdict: str, tmp_path: Path) -> None:
    scores = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.1, ("β-VAE", NOISE): noise}
    compared = judged(find_reproduction("z-fig-4.4"), made_up(scores, "small", tmp_path), "small").comparisons
    what = "dSprites, β-VAE: MIG on original images beside the best scale on modified ones"
    assert told(compared)[what] == verdict


@pytest.mark.parametrize("name", ["u-epsilon", "u-transfer"])
def test_beyond_the_source_a_planted_drop_agrees_and_its_control_does_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "chosen_from", lambda place, amount, results: ())
    scores = {("β-VAE", ORIGINAL): 0.4, ("β-VAE", MODIFIED): 0.1, ("β-VAE", NOISE): 0.35}
    scores |= {("β-VAE", SAME): 0.4, ("β-VAE", REVERSED): 0.42}
    outcome = judged(find_reproduction(name), made_up(scores, "small", tmp_path), "small")
    known = [one for one in outcome.comparisons if one.n >= 6 and one.kind == "order"]
    assert {one.verdict for one in known} == {"agrees"}
    assert len(known) == (3 if name == "u-epsilon" else 4)
    assert all(one.controls and not any(control.passes for control in one.controls) for one in known)
    # noise that does the same takes the evidence away
    outcome = judged(find_reproduction(name), made_up(scores | {("β-VAE", NOISE): 0.15}, "small", tmp_path), "small")
    drops = [one for one in outcome.comparisons if "on original beside" in one.what and one.n >= 6]
    assert {one.verdict for one in drops} == {"not evidence"}
    assert drops[0].controls[-1].ours == pytest.approx(0.25)


def test_only_the_published_size_judges_numbers(tmp_path: Path) -> None:
    scores = {("β-VAE", ORIGINAL): 0.23, ("β-VAE", MODIFIED): 0.6}
    found = told(judge_table("MIG", PUBLISHED, made_up(scores, "paper", tmp_path), "paper").comparisons)
    assert found["dSprites, β-VAE, original: MIG"] == "agrees"
    assert found["dSprites, β-VAE, modified: MIG"] == "differs"
    assert not any("imitation" in what and what.endswith(": MIG") for what in found)


def test_what_is_published_is_what_is_trained() -> None:
    study = find_reproduction("z-table-4.2").study("paper")
    by_method = {(bias.method_of(one.objective), one.world.name): one for one in study.experiments}
    assert by_method["β-VAE", "dsprites"].objective.beta == 8
    assert by_method["FactorVAE", "dsprites"].objective.gamma == 35
    shapes = "shapes3d" if ("β-VAE", "shapes3d") in by_method else "shapes3d_like"
    assert by_method["TC-VAE", shapes].objective.beta == 32
    assert by_method["AE", shapes].latents == 6
    assert by_method["WS-GAN", "dsprites"].steps == 500_000
    seeds = [one.seed for one in study.experiments if one.world.name == "dsprites"]
    assert len({seed for seed in seeds if seed < bias.FIRST_CANDIDATE}) == 10
    assert sum(seed >= bias.FIRST_CANDIDATE for seed in seeds) == 32
    assert ASKED.searched
    assert bias.SCALES == (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)


def test_which_worlds_a_size_has_and_how_many_models_stand_on_a_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def worlds(size: str, asked: bias.Asked = TABLE) -> list[str]:
        return [place.world.name for place in bias.places_of(size, asked)]

    monkeypatch.setattr(Shapes3D, "card", lambda world: replace(Shapes3DLike().card(), on_disk=False))
    assert worlds("small") == worlds("paper") == ["dsprites", "shapes3d_like"]
    # the source draws its planes on Shapes3D alone; a smaller size shows them on all that it has
    assert worlds("small", PLANES) == worlds("small")
    assert worlds("paper", PLANES) == ["shapes3d_like"]
    assert worlds("smoke") == worlds("smoke", PLANES) == ["micro"]
    monkeypatch.setattr(Shapes3D, "card", lambda world: replace(Shapes3DLike().card(), on_disk=True))
    assert worlds("small") == ["dsprites", "shapes3d"]
    sides = {
        (size, name): bias.attack_on(bias.PLACES[name], bias.AMOUNTS[size]).ensemble
        for size in ("small", "paper")
        for name in ("dsprites", "shapes3d_like")
    }
    assert list(sides.values()) == [1, 2, 1, 4]


def test_nothing_is_chosen_from_a_world_without_results(tmp_path: Path) -> None:
    results = made_up({("β-VAE", ORIGINAL): 0.4}, "small", tmp_path)
    place, amount = bias.PLACES["shapes3d_like"], bias.AMOUNTS["small"]
    assert bias.chosen_from(place, amount, results) == ()
    assert not bias.all_to_choose_from(place, amount, results)
    assert not bias.manipulations(place, amount, TABLE, results)


def test_kept_manipulations_have_the_ids_that_they_were_trained_with() -> None:
    """Settings that came later stay out of them, whatever they are called."""
    portion = Path(__file__).parents[2] / "docs" / "results" / "portions" / "z-table-4-small"
    lines = [line for path in portion.glob("*.jsonl.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    kept = [json.loads(line) for line in lines]
    found = {one["id"]: experiment_from(json.loads(one["files"]["config.json"])) for one in kept}
    made = {name: one for name, one in found.items() if isinstance(one.objective, Perturbation)}
    assert len(made) == 3
    assert {name: one.id for name, one in made.items()} == {name: name for name in made}
    (first, *_) = made.values()
    assert replace(first, objective=replace(first.objective, hidden=256)).id not in made


def test_over_pruned_by_the_rule_unless_too_few_remain() -> None:
    found = [Candidate(str(n), n, 0.1 * n, used, used < 5) for n, used in enumerate((5, 4, 4, 5, 3))]
    assert [one.over_pruned for one in bias._by_rule(found, 5, 2)] == [False, True, True, False, True]
    assert [one.over_pruned for one in bias._by_rule(found, 5, 4)] == [False, False, False, False, True]
    assert bias._by_rule(found, 5, 6) == tuple(found)


def test_the_micro_world_of_the_smoke_is_narrow() -> None:
    images = Micro(width=0.5).load().examples(torch.tensor([0, 2047]))
    columns = images.amax((1, 2)) > 0
    assert columns[0].nonzero().min() >= 8
    assert columns[1].nonzero().max() <= 27


@pytest.mark.parametrize(("modified", "exchanged", "verdict"), [(-4.0, -2.0, "agrees"), (1.5, -3.5, "cannot tell")])
def test_a_change_gains_what_its_gap_and_the_exchanged_one_leave_beside_a_model_against_itself(
    modified: float, exchanged: float, verdict: str
) -> None:
    def curve(level: float) -> Losses:
        steps = tuple(range(0, 30_000, 1000))
        early = np.full(20, 50.0)  # what was at first says nothing of the end
        return Losses(steps, {"gap": np.concatenate([early, level + 0.3 * np.sin(np.arange(10) * (2 + level))])})

    curves = {MODIFIED: curve(modified), REVERSED: curve(exchanged), SAME: curve(-1.0)}
    found = _gain("Toy", curves, (MODIFIED, REVERSED))
    assert (found.verdict, found.n) == (verdict, 10)
    assert found.ours == pytest.approx((modified + exchanged) / 2 + 1.0, abs=0.2)
    assert _gain("Toy", curves, (SAME, SAME)).ours == 0.0
