"""A part of a reproduction: which models it has, what follows from them, and what it says."""

from dataclasses import replace
from pathlib import Path

import pytest

from unweave.cli import main
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin
from unweave.models.networks import Linear
from unweave.models.objectives import Perturbation
from unweave.recipes.part import Part, check_on_hand, part_of, parts_for
from unweave.recipes.reproductions import find_reproduction
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan


def asked(world: Micro | SynthLin, seed: int) -> Experiment:
    return Experiment(world, network=Linear(), latents=2, steps=2, seed=seed, plan=Plan("cpu", 1))


def test_worlds_and_seeds_are_cut_in_what_follows_too(tmp_path: Path) -> None:
    everything = tuple(asked(world, seed) for world in (Micro(), SynthLin()) for seed in range(4))
    study = Study("both", everything, follow_up=lambda results: everything)
    cut = part_of(study, Part(("micro",), 2))
    assert [(one.world.name, one.seed) for one in cut.experiments] == [("micro", 0), ("micro", 1)]
    assert cut.follow_up is not None
    assert tuple(cut.follow_up(Results(cut, Store(tmp_path), ()))) == cut.experiments
    assert part_of(study, Part()) is study
    with pytest.raises(ValueError, match="both has no models on mnist; its worlds are micro, synth_lin"):
        part_of(study, Part(("mnist",)))


def test_a_chain_keeps_the_models_to_choose_from_and_altered_worlds_go_by_their_base() -> None:
    study = find_reproduction("z-table-4.2").study("paper")
    cut = part_of(study, Part(("dsprites",), 3))
    assert {one.world.name for one in cut.experiments} == {"dsprites", "noise"}
    assert sum(one.seed >= 1000 for one in cut.experiments) == 32
    assert {one.seed for one in cut.experiments if one.seed < 1000} == {0, 1, 2}


def test_some_methods_alone_and_what_they_are_made_from() -> None:
    study = find_reproduction("z-table-4.2").study("paper")
    cut = part_of(study, Part(("dsprites",), methods=("ae", "pcl")))
    assert {one.objective.name for one in cut.experiments} == {"ae", "pcl"}
    assert len(cut.experiments) == 2 * 2 * 10
    made = replace(cut.experiments[0], objective=Perturbation())
    assert Part(methods=("ae",)).has(made)
    assert not Part(methods=("pcl",)).has(cut.experiments[0])
    with pytest.raises(ValueError, match="has no models of vae; its methods are ae, beta_tcvae, beta_vae"):
        part_of(study, Part(methods=("ae", "vae")))


def test_names_of_one_study_do_not_disturb_the_others_that_are_asked_with_it() -> None:
    table, picture = (find_reproduction(name).study("small") for name in ("z-table-4.2", "z-fig-4.10"))
    some = Part(methods=("ae", "beta_vae"))
    assert parts_for([table, picture], some) == [some, Part(methods=("beta_vae",))]
    assert {one.objective.name for one in part_of(table, some).experiments} == {"ae", "beta_vae"}
    for wrong in (("ae",), ("beta_vae", "vae")):
        parts = parts_for([table, picture], Part(methods=wrong))
        with pytest.raises(ValueError, match=f"has no models of {wrong[-1]}; its methods are beta_vae"):
            part_of(picture, parts[1])
    assert main(["reproduce", "z-table-4.2", "z-fig-4.10", "--methods", "beta_vae,vae", "--train-only"]) == 2


def test_missing_worlds_are_said_with_the_part_that_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    study = find_reproduction("b-table-8.1").study("paper")
    if all(one.world.card().on_disk for one in study.experiments):
        pytest.skip("SymSol and CelebA are on this machine")
    with pytest.raises(FileNotFoundError, match="add --worlds dsprites"):
        check_on_hand(study)
    check_on_hand(part_of(study, Part(("dsprites",))))
    assert main(["reproduce", "b-table-8.1", "--size", "paper", "--train-only"]) != 0
    assert "cannot be had in full; for what can be had here add --worlds" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_says_which_part_it_is_of(tmp_path: Path) -> None:
    page = tmp_path / "page"
    words = ["reproduce", "b-table-8.6", "--worlds", "synth_nonlin", "--seeds", "1", "--store", str(tmp_path / "runs")]
    assert main([*words, "--output", str(page), "--workers", "1", "--quiet"]) == 0
    text = (page / "index.html").read_text(encoding="utf-8")
    assert "worlds, of those published" in text
    assert "seeds at most" in text
