"""The chain that breaks the bias: models, the choice among them, the manipulation, its world, and what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.api import _places
from unweave.cli import main
from unweave.data.altered import Perturbed
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin
from unweave.models.networks import MLP
from unweave.models.objectives import AE, BetaVAE
from unweave.models.optimisers import Adam
from unweave.recipes.altered_files import write_altered
from unweave.recipes.perturb import (
    Attack,
    Candidate,
    Made,
    Veil,
    attack_of,
    base_of,
    check_base,
    marked,
    perturb,
    sides_of,
)
from unweave.runs.folder import RunFolder
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run

BASE = Experiment(
    Micro(),
    BetaVAE(0.0),
    network=MLP((8,), (8,), "relu", "relu"),
    optimiser=Adam(1e-2),
    latents=3,
    steps=100,
    batch_size=8,
    init="pytorch",
    history_every=10,
    plan=Plan("cpu", 1),
)
ATTACK = Attack(models=3, epsilon=0.2, perturb_steps=12, perturb_rate=1e-2, samples=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return perturb(BASE, ATTACK, tmp_path_factory.mktemp("store") / "runs")


def test_the_most_and_the_least_disentangled_are_chosen(made: Made) -> None:
    usable = sorted((one for one in made.candidates if not one.over_pruned), key=lambda one: one.score)
    assert len(made.candidates) == 3
    assert usable[0].side == "foster"
    assert usable[-1].side == "diminish"
    method = made.run.experiment.objective
    assert [Path(one.run).name for one in method.foster] == [usable[0].id]
    assert [Path(one.run).name for one in method.diminish] == [usable[-1].id]


def test_the_same_call_again_trains_nothing(made: Made) -> None:
    store = made.folder.parent
    before = {path.name: path.stat().st_mtime_ns for path in store.glob("*/model.safetensors")}
    again = perturb(BASE, ATTACK, store)
    assert again.folder == made.folder
    assert again.candidates == made.candidates
    assert {path.name: path.stat().st_mtime_ns for path in store.glob("*/model.safetensors")} == before


def test_what_is_made_is_a_world(made: Made, tmp_path: Path) -> None:
    world = made.world
    assert (world.name, world.epsilon, world.base) == ("perturbed", 0.2, Micro())
    shown = made.images(4)
    assert ((shown.altered - shown.originals).abs() <= 0.2 + 1e-6).all()
    assert made.plot(4).get_size_inches()[0] > 1
    folder = write_altered(world, tmp_path / "files", 3)
    assert len(list((folder / "images").glob("*.png"))) == 3
    assert (folder / "factors.csv").read_text().splitlines()[:2] == ["file,x,y,size", "images/0000000.png,0,0,0"]


def test_an_export_that_was_killed_goes_on_and_others_files_stay(made: Made, tmp_path: Path) -> None:
    world = Perturbed(str(made.folder))
    images = write_altered(world, tmp_path, 3) / "images"
    (tmp_path / "factors.csv").unlink()
    (images / "0000002.png").rename(images / ".0000002.png.77-88.part")
    write_altered(world, tmp_path, 3)
    assert (images / "0000002.png").exists()
    (images / "cat.png").touch()
    with pytest.raises(ValueError, match=r"holds .cat\.png., which no export wrote"):
        write_altered(world, tmp_path, 3)


def test_a_store_that_was_moved_goes_on(made: Made, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    made.folder.parent.rename(moved)
    try:
        assert perturb(BASE, ATTACK, moved).folder == moved / made.folder.name
    finally:
        moved.rename(made.folder.parent)


def test_runs_on_an_altered_world_open_after_a_move(made: Made, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    shutil.copytree(made.folder, store / made.folder.name)
    on_it = replace(BASE, world=Perturbed(str(store / made.folder.name)), steps=2)
    name = Path(train(on_it, store / "on-it")).name
    seen, known = Run(store / name).images(4), Run(store / name).experiment.id
    moved = store.rename(tmp_path / "moved")
    run = Run(moved / name)
    assert torch.equal(run.images(4), seen)
    assert run.experiment.id == known
    assert run.experiment.world.run == str(moved / made.folder.name)
    (moved / made.folder.name).rename(moved / "renamed")
    assert Run(moved / name).experiment.world.run == str(moved / "renamed")
    assert torch.equal(Run(moved / name).images(4), seen)
    (tmp_path / "no run" / "SHA256SUMS").mkdir(parents=True)
    (moved / "renamed").rename(tmp_path / "beside the store")
    assert torch.equal(Run(moved / name).images(4), seen)
    again = train(replace(on_it, world=Perturbed(str(tmp_path / "beside the store"))), moved / name)
    assert Path(again) == moved / name
    away = (tmp_path / "beside the store").rename(tmp_path.parent / f"{tmp_path.name}-away")
    shutil.copytree(moved / name, moved / made.folder.name)
    with pytest.raises(FileNotFoundError, match=r"is not in .*, nor in any folder beside the run or its store: put"):
        Run(moved / name).images(4)
    shutil.rmtree(away)


def test_another_manipulation_does_not_take_the_place_of_one_that_is_gone(made: Made, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    shutil.copytree(made.folder, store / "change")
    on_it = replace(BASE, world=Perturbed(str(store / "change")), steps=2)
    name = Path(train(on_it, store / "on-it")).name
    damaged = store / "change" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes() + b" ")
    (store / "change").rename(store / "other")
    with pytest.raises(FileNotFoundError, match="is not in"):
        Run(store / name).images(4)


def test_settings_of_a_run_lead_to_its_manipulation_after_a_move(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "runs"
    shutil.copytree(made.folder, store / "change")
    first = Path(train(replace(BASE, world=Perturbed(str(store / "change")), steps=2), store / "on-it"))
    moved = store.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--config", str(moved / first.name / "config.json"), "--folder", "again", "--quiet"]) == 0
    capsys.readouterr()
    assert Run("again").experiment.id == Run(moved / first.name).experiment.id


def test_commands_on_a_manipulation(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = str(made.folder)
    assert main(["show", folder]) == 0
    assert "diminished side" in capsys.readouterr().out
    assert main(["show", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["after"].keys() == {"foster", "diminish", "gap"}
    assert main(["report", folder]) == 0
    assert "change ×" not in capsys.readouterr().err
    assert "A manipulation of micro" in (made.folder / "report.html").read_text()
    for words in ("evaluate {} --quiet", "diagnose {}", "traverse {}", "intrinsic {}", "sample {}", "compare {} {}"):
        assert main(words.format(folder, folder).split()) == 2
        said = capsys.readouterr().err
        assert "trains a change of images" in said
        assert "Traceback" not in said
    assert main(["export", folder, "shared"]) == 0
    assert "unweave train perturbed" in capsys.readouterr().out
    assert str(made.folder.parent) not in (tmp_path / "shared" / "config.json").read_text()
    one, other = (replace(BASE, world=Perturbed(place)).resolve() for place in ("shared", folder))
    assert one.id == other.id


def test_over_pruned_models_are_left_out_and_too_few_are_refused() -> None:
    found = [Candidate(str(n), n, 0.1 * n, 3 - (n == 0), n == 0) for n in range(4)]
    assert sides_of(found, Attack()) == (("1",), ("3",))
    assert sides_of(found, Attack(control="same")) == (("1",), ("1",))
    assert sides_of(found, Attack(control="reversed")) == (("3",), ("1",))
    assert [one.side for one in marked(found, (("1",), ("3",)))] == ["", "foster", "", "diminish"]
    with pytest.raises(ValueError, match="of 4 finished models 1 are over-pruned"):
        sides_of(found, Attack(ensemble=2))


def test_own_runs_by_either_side(made: Made, tmp_path: Path) -> None:
    one, other = (str(made.folder.parent / each.id) for each in made.candidates[:2])
    attack = replace(ATTACK, control="same")
    control = perturb(BASE, attack, tmp_path, foster=[one], diminish=[one])
    assert attack_of(control.run).control == "same"
    assert control.to_plain()["chosen"]["foster"] == [one]
    with pytest.raises(ValueError, match="given twice"):
        perturb(BASE, ATTACK, tmp_path, foster=[one], diminish=[one])
    with pytest.raises(ValueError, match="both sides"):
        perturb(BASE, ATTACK, tmp_path, foster=[one])
    wide = train(replace(BASE, latents=4, steps=2), tmp_path / "wide")
    with pytest.raises(ValueError, match="another number of latents"):
        perturb(BASE, ATTACK, tmp_path, foster=[other], diminish=[wide])
    lone = train(replace(BASE, world=Perturbed(str(made.folder)), steps=2), tmp_path / "lone")
    with pytest.raises(ValueError, match="another world"):
        perturb(BASE, ATTACK, tmp_path, foster=[other], diminish=[lone])


def test_both_sides_are_chosen_among_given_runs(made: Made, tmp_path: Path) -> None:
    folders = [made.folder.parent / one.id for one in made.candidates]
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")}
    words = [str(one) for one in folders]
    again = perturb(BASE, ATTACK, tmp_path, among=words)
    assert [one.score for one in again.candidates] == [one.score for one in made.candidates]
    assert [one.side for one in again.candidates] == [one.side for one in made.candidates]
    assert again.run.experiment.id == made.run.experiment.id, "from the same models the same manipulation"
    assert "3 models were compared by MIG" in again.sentences()[0]
    assert before == {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")}
    # models that nobody has measured, by the other rule, and the first control
    fresh = [train(replace(BASE, seed=seed), tmp_path / f"fresh-{seed}") for seed in (7, 8)]
    by_udr = perturb(BASE, replace(ATTACK, by="udr", control="same", perturb_steps=3), tmp_path, among=fresh)
    assert sorted(one.side for one in by_udr.candidates) == ["", "both"]
    assert not RunFolder(fresh[0]).names("measures/")
    for given, error in (
        ({"among": words[:1]}, "1 a side cannot be chosen from 1: give at least 2 models"),
        ({"among": [*words, words[0]]}, "is given twice"),
        ({"among": words, "foster": words[:1]}, "leave out --foster and --diminish"),
    ):
        with pytest.raises(ValueError, match=error):
            perturb(BASE, ATTACK, tmp_path, **given)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("micro --control --reverse", "--control and --reverse are two controls: ask for one at a time"),
        ("micro --images 5", "say where to, with --export-images DIR"),
        ("micro --export-images FILE", "is a file; give a folder for the altered images"),
        ("--foster A --diminish B --control", "the control has the same runs on both sides, and these differ"),
        ("--foster A A --diminish A --control", "is given twice"),
        ("--foster A --diminish B --models 4", "--models is about models that are to be trained"),
        ("--foster A --diminish B --objective.beta 4", "--objective.beta is about models that are to be trained"),
        ("--foster A --diminish B --by udr", "--by is about models that are to be chosen"),
        ("--among A B --warmup 3", "--warmup is about models that are to be trained"),
        ("--among A B --config A/config.json", "given runs bring their settings: leave out --config"),
        ("micro --hidden -1", "hidden must be 0 or more, not -1"),
        ("micro --hidden 10001", "hidden must be at most 10,000, not 10001"),
        ("--foster A --diminish B --hidden 2.5", "--hidden must be a whole number, not '2.5'"),
        ("", "say what to alter"),
        ("A", "is a run: name runs by --foster RUN --diminish RUN, or --among RUN RUN"),
        ("IMAGES", "mine has no factors, and a manipulation is a function of them"),
        ("micro --objective pcl", "pcl trains no VAE with one σ a latent"),
        ("micro --objective qlae", "qlae trains no VAE with one σ a latent"),
        ("micro --objective ivae", "the encoder of ivae is told labels beside an image"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_trained(
    words: str, said: str, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {name: str(made.folder.parent / one.id) for name, one in zip("AB", made.candidates)}
    (tmp_path / "file").write_text("mine")
    np.savez(tmp_path / "mine.npz", images=np.zeros((4, 8, 8), np.uint8))
    places |= {
        "FILE": str(tmp_path / "file"),
        "IMAGES": str(tmp_path / "mine.npz"),
        "A/config.json": f"{places['A']}/config.json",
    }
    given = [places.get(word, word) for word in words.split()]
    assert main(["perturb", *given, "--folder", str(tmp_path / "runs")]) == 2
    assert said in capsys.readouterr().err
    assert not list((tmp_path / "runs").glob("micro-*"))


def test_hidden_layers_are_the_same_manipulation_from_the_command_line_and_from_python(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (str(made.folder.parent / each.id) for each in made.candidates[:2])

    def asked(hidden: int) -> str:
        words = [
            "--foster",
            one,
            "--diminish",
            other,
            "--perturb-steps",
            "3",
            "--samples",
            "1",
            "--folder",
            str(tmp_path),
        ]
        assert main(["perturb", *words, "--hidden", str(hidden), "--executor", "here", "--quiet", "--json"]) == 0
        return str(json.loads(capsys.readouterr().out)["id"])

    python = [
        uw.perturb(foster=one, diminish=other, folder=tmp_path, perturb_steps=3, samples=1, quiet=True, **given)
        for given in ({}, {"hidden": 5})
    ]
    assert [made.run.experiment.id for made in python] == [asked(0), asked(5)]
    assert len({made.run.experiment.id for made in python}) == 2
    objectives = [json.loads(made.run.files.read("config.json"))["objective"] for made in python]
    assert [one.get("hidden") for one in objectives] == [None, 5]
    assert python[1].world.load().examples(torch.arange(3)).shape == (3, 1, 32, 32)
    assert attack_of(python[1].run).hidden == 5


@pytest.mark.skipif(torch.cuda.is_available(), reason="here they can be altered as they were trained")
def test_models_of_a_gpu_can_be_altered_without_one() -> None:
    trained = uw.load("zoo:dsprites-beta_vae-0")
    assert trained.experiment.plan.device == "cuda"
    base = base_of([trained.path])
    assert base.plan == uw.Plan()
    assert replace(base, plan=trained.experiment.plan) == trained.experiment


def test_python_takes_a_run_several_or_their_folders_and_says_what_it_cannot_take(made: Made, tmp_path: Path) -> None:
    one, other = (made.folder.parent / each.id for each in made.candidates[:2])
    settings: dict[str, Any] = {"folder": tmp_path, "perturb_steps": 3, "samples": 1, "quiet": True}
    alone = uw.perturb(foster=uw.load(one), diminish=other, **settings)
    assert alone.run.experiment.id == uw.perturb(foster=[one], diminish=[str(other)], **settings).run.experiment.id
    assert alone.world == uw.world("perturbed", run=alone.folder).world.resolve()
    for given, words in (
        ({"foster": one, "diminish": other, "epsilon": 0.0}, "epsilon must be above 0, not 0.0"),
        ({"foster": one, "diminish": other, "epsilon": 0.51}, "epsilon must be at most 0.5, not 0.51"),
        ({"foster": one, "diminish": other, "models": 4}, "models is about models that are to be trained"),
        ({"foster": one, "diminish": other, "hidden": -1}, "hidden must be 0 or more, not -1"),
    ):
        with pytest.raises(ValueError, match=words):
            uw.perturb(**(settings | given))
    attack = replace(ATTACK)
    object.__setattr__(attack, "control", "none")  # as one can where nothing checks types
    with pytest.raises(ValueError, match=r"attack\.control must be one of '', same, reversed, not 'none'"):
        perturb(BASE, attack, tmp_path, foster=[one], diminish=[other])
    for strange in (3, [one, 3]):
        with pytest.raises(ValueError, match="foster takes runs or their folders, not 3"):
            _places("foster", strange)


def test_runs_on_copies_of_one_manipulation_are_of_one_world(made: Made, tmp_path: Path) -> None:
    copied = shutil.copytree(made.folder, tmp_path / "copied")
    worlds = [Perturbed(str(place)) for place in (made.folder, copied)]
    sides = [train(replace(BASE, world=one, steps=2), tmp_path / f"on-{n}") for n, one in enumerate(worlds)]
    again = perturb(replace(BASE, world=worlds[0]), ATTACK, tmp_path, foster=sides[:1], diminish=sides[1:])
    assert again.losses.last["gap"] != 0.0


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (replace(BASE, world=SynthLin()), "synth_lin has no factors"),
        (replace(BASE, objective=AE()), "no VAE with one σ a latent"),
    ],
)
def test_what_cannot_be_attacked(base: Experiment, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_base(base)


def test_udr_chooses_too(made: Made) -> None:
    found = perturb(BASE, replace(ATTACK, by="udr", perturb_steps=3), made.folder.parent)
    assert all(0 <= one.score <= 1 for one in found.candidates)
    assert "UDR" in found.sentences()[0]


def test_studies_leave_a_manipulation_unmeasured(made: Made) -> None:
    table = Store(made.folder.parent).table([made.folder.name])
    assert table["state"].to_list() == ["done"]
    with pytest.raises(ValueError, match="trains a change of images"):
        Run(made.folder).encode(torch.zeros(1, 1, 32, 32))


def test_the_explorer_says_what_it_cannot_open(made: Made) -> None:
    from unweave.web.open_runs import NotReady, OpenRuns
    from unweave.web.store import ReadOnlyStore

    with pytest.raises(NotReady, match="trains a change of images"):
        OpenRuns(ReadOnlyStore(made.folder.parent)).open(made.folder.name)


def test_a_change_that_is_the_same_for_all_images_is_said(made: Made) -> None:
    with torch.no_grad():
        change = made.world.load().alteration.change(torch.arange(2048))  # type: ignore[union-attr]
    assert made.veil.deviation == pytest.approx(float(change.std(0).mean()), rel=0.2)
    assert made.to_plain()["change"] == {"deviation": made.veil.deviation, "saturated": made.veil.saturated}
    same, other = Veil(0.0025, 0.942).sentences(), Veil(0.47, 0.376).sentences()
    assert other == []
    assert "deviates by 0.0025 from one to another, and 94% of its pixels stand at an end" in same[0]
    assert "try another --perturb-rate, or a likelihood" in same[0]
    assert "m has hardly begun to learn: train it for longer (--perturb-steps)" in Veil(0.01, 0.0).sentences()[0]
    made.__dict__["veil"] = Veil(0.0025, 0.942)
    assert same[0] in made.sentences()
    del made.__dict__["veil"]
