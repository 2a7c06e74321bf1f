"""Every family of methods has a page with a picture, and every number behind a picture is there to be read."""

import csv
import importlib.util
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from unweave.cli import main
from unweave.models.objectives import OBJECTIVES

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in (DOCS / "methods").glob("*.md") if path.stem != "README")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("make_method_pictures", DOCS / "make_method_pictures.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules[found.name] = made  # dataclasses ask for it
    found.loader.exec_module(made)
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_says_what_its_method_gains_in_a_picture(page: Path, script: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.stem in script.PICTURES
    assert f"](../images/method_{page.stem}.png)" in text
    assert (DOCS / "images" / f"method_{page.stem}.png").stat().st_size > 1000
    for words in ("## What it gains", "## What is minimised", "## When to use it"):
        assert words in text


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_training_works_as_it_is_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (6, 16, 16), dtype=np.uint8)
    np.savez("own.npz", images=images, labels=np.arange(6) % 3)
    for number, image in enumerate(images):
        place = Path(f"films/film{number // 3}/frame{number}.png")
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    lines = page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    commands = [line.partition("#")[0].split() for line in lines if line.startswith("unweave train")]
    assert commands
    few = ["--steps", "2", "--batch-size", "4", "--quiet"]
    for number, (_, *words) in enumerate(commands):
        if "smallnorb" not in words:  # not on this machine, and nothing here is like it
            words = ["shapes3d_like" if word == "shapes3d" else word for word in words]
            assert main([*_without(words, "--steps", "--batch-size"), *few, "--folder", f"run{number}"]) == 0, words


def _without(words: list[str], *options: str) -> list[str]:
    kept = [place for place in range(len(words)) if not {words[place], words[max(0, place - 1)]} & {*options}]
    return [words[place] for place in kept]


def test_every_method_that_is_no_plain_vae_has_a_page() -> None:
    table = (DOCS / "methods" / "README.md").read_text(encoding="utf-8")
    missing = [name for name in OBJECTIVES if f"`{name}`" not in table]
    assert missing == ["ae", "beta_vae_full", "perturbation"]  # a variant, a baseline, and what is no model


def test_every_line_of_every_picture_has_its_seeds(script: ModuleType) -> None:
    for name, picture in script.PICTURES.items():
        for line in picture.lines:
            for score in picture.scores:
                found = script.values(name, line, score)
                assert len(found) >= 2, (name, line.name, score)
                assert np.isfinite(found).all()


def test_no_control_does_as_well_as_its_method(script: ModuleType) -> None:
    for name in ("slow_vae", "pair_vae", "ivae", "pcl", "semi_supervised", "ws_gan"):
        picture = script.PICTURES[name]
        means = defaultdict(list)
        for line in picture.lines:
            means[line.colour].append(script.values(name, line, picture.scores[0]).mean())
        assert min(means[script.GAINS]) > max(means[script.CONTROL]) + 0.1, name


def test_the_table_holds_nothing_that_is_not_drawn(script: ModuleType) -> None:
    drawn = {(name, line.name) for name, picture in script.PICTURES.items() for line in picture.lines if line.trained}
    with script.TABLE.open(encoding="utf-8", newline="") as lines:
        assert {(row["picture"], row["model"]) for row in csv.DictReader(lines)} == drawn
