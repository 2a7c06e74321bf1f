"""What people ran into with version 0.1.0 on data of their own (issue 18), each as they typed it.

Numbers are those of the list of findings on own data, own code and notebooks.
"""

import inspect
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.data.world import Card, Data, World
from unweave.web.app import create_app

SMALL = ["--network", "mlp", "--network.encoder-widths", "4", "--network.decoder-widths", "4", "--latents", "2"]
SMALL += ["--steps", "3", "--plan.device", "cpu", "--plan.threads", "1"]
KINDS = ("cat", "dog")


@dataclass(frozen=True)
class Bars(World):
    """A world of one's own: a bright row."""

    name: ClassVar[str] = "bars"

    def card(self) -> Card:
        return Card("Bars", (1, 4, 4), 4, None, True, "generated")

    def load(self, progress: object = None) -> Data:
        return Data(torch.eye(4)[:, None, :, None].expand(4, 1, 4, 4).contiguous(), (1, 4, 4), "floats")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures of 30 × 20 pixels in two sub-folders, and a run on it that knows it by a relative path."""
    place = tmp_path_factory.mktemp("found")
    for number in range(8):
        folder = place / "photos" / KINDS[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (20, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        patch.chdir(place)
        assert main(["train", "images", "--world.path", "photos", *SMALL, "--quiet", "--folder", "runs/one"]) == 0
    return place


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> uw.Run:
    folder = tmp_path_factory.mktemp("tiny") / "run"
    return uw.train("micro", folder, network=uw.MLP((4,), (4,)), latents=2, steps=3, quiet=True)


def test_1_the_shape_of_own_images_is_known_without_a_size(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TestClient(create_app(here / "runs"), base_url="http://127.0.0.1") as client:
        told = client.get("/api/runs/one").json()
        assert (told["shape"], told["is_image"]) == ([3, 20, 30], True)
        drawn = client.post("/api/runs/one/decode", json={"codes": [[0.0, 0.0]]})
        assert drawn.headers["x-shape"] == "1,20,30,3"
    card = uw.load("runs/one").experiment.world.card()
    assert (card.shape, card.n_examples) == ((3, 20, 30), 8)
    assert main(["worlds", "images"]) == 0
    assert "0×0" not in capsys.readouterr().out


def test_3_runs_open_from_anywhere_and_survive_a_folder_that_grows(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """More of it: tests/data/test_images.py, test_a_run_survives_a_folder_that_grows_moves_or_goes."""
    shutil.copytree(here / "photos", tmp_path / "photos")
    shutil.copytree(here / "runs", tmp_path / "runs")
    monkeypatch.chdir("/")
    assert main(["show", str(tmp_path / "runs" / "one")]) == 0
    shutil.copy(here / "photos" / "cat" / "0.png", here / "photos" / "cat" / "more.png")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            assert main(["show", str(here / "runs" / "one")]) == 0
        assert "photos has changed; going on with the 8 images that were kept" in capsys.readouterr().err
    finally:
        (here / "photos" / "cat" / "more.png").unlink()


def test_5_data_are_a_sequence_and_anything_can_be_learned_from(tmp_path: Path) -> None:
    """More of it: tests/data/test_notebook.py and tests/data/test_own.py."""
    data = uw.world("micro")
    rows = np.array([3, 5])
    assert torch.equal(data.images(rows), torch.stack([data[3], data[5]]))
    assert next(iter(torch.utils.data.DataLoader(data, batch_size=4))).shape == (4, 1, 32, 32)  # type: ignore[arg-type]
    assert len(repr(data)) < 100
    few = {"network": uw.MLP((4,), (4,)), "latents": 2, "steps": 2, "quiet": True}
    assert uw.world("images", path="photos").shape == (3, 20, 30)
    assert uw.train("images", tmp_path / "images", path="photos", **few).state == "done"  # type: ignore[arg-type]
    assert len(uw.world(Bars())) == 4
    assert uw.train(Bars(), tmp_path / "bars", **few).state == "done"  # type: ignore[arg-type]


def test_6_a_run_takes_natural_input_and_has_what_one_looks_for(tiny: uw.Run) -> None:
    """More of it: tests/recipes/test_opened.py and tests/training/test_given_arrays.py."""
    image = tiny.images(1)[0].numpy()
    for given in (image, image[0], (255 * image).astype(np.uint8), image.astype(np.float64), image[None]):
        assert tiny.encode(given).mean.shape == (1, 2)
    with pytest.raises(ValueError, match="takes examples of 1 × 32 × 32"):
        tiny.encode(np.zeros((28, 28)))
    assert tiny.config["latents"] == 2
    assert tiny.scores == {}
    assert tiny.sample(3).shape == (3, 1, 32, 32)
    assert tiny.to("cpu").path == tiny.path
    assert uw.traverse(tiny, n=3).shape == (2, 3, 1, 32, 32)
    assert uw.report(tiny).name == "report.html"
    assert isinstance(tiny.plot_latents(), matplotlib.figure.Figure)
    assert isinstance(tiny.history.to_pandas(), pd.DataFrame)
    assert "loss" in tiny.history.to_polars().columns
    scores = tiny.evaluate(metrics=["mig"], n_samples=100, seeds=0).scores["mean"]
    assert set(dict(scores)) >= {"mig"}
    assert 0 <= float(scores["mig"]) <= 1
    assert "mig" in scores.to_pandas().index


def test_7_editors_see_types_and_the_front_door_is_tidy() -> None:
    """More of it: tests/test_front_door.py and tests/front_door_types.py."""
    assert "latents" in inspect.signature(uw.train).parameters
    assert (inspect.getdoc(uw.train) or "").startswith("Train one model")
    assert not [name for name in dir(uw) if name.startswith("_") and name != "__version__"]


def test_10_the_options_of_images_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "images", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "--world.path TEXT a folder of images",
        "--world.size N pixels across",
        "--world.key TEXT the array of images",
        "--world.labels TEXT an array in the same file, a csv, npz, npy or idx file beside it",
        "--world.digest TEXT of the contents; filled in by itself",
        "crop cuts the middle out",
    ):
        assert words in text
    page = (Path(__file__).parents[2] / "docs" / "own-data.md").read_text()
    for words in ("labels.csv", "crop", "black", "--world.height", "--world.called"):
        assert words in page


def test_10_labels_names_and_sizes_of_own_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "photos", *SMALL, "--world.called", "pets", "--folder", str(tmp_path / "run")]) == 0
    assert "pets: 8 images of 30 × 20 pixels, colour; labels: folder" in capsys.readouterr().err
    assert "on pets" in uw.load(tmp_path / "run")._repr_html_()
    np.savez(tmp_path / "labels.npz", labels=np.arange(8))
    np.savez(tmp_path / "pictures.npz", images=np.zeros((8, 6, 6), dtype=np.uint8))
    assert uw.world(tmp_path / "pictures.npz", labels="labels.npz").label_names == ("labels",)
    assert uw.world("photos", size=12, height=8).shape == (3, 8, 12)


def test_10_python_says_what_was_found_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for quiet, said in [(True, ""), (False, "photos: 8 images of 30 × 20 pixels, colour; labels: folder"), (False, "")]:
        folder = tmp_path / ("quiet" if quiet else "told")
        uw.train("photos", folder, network=uw.MLP((8,), (8,)), latents=2, steps=2, batch_size=4, quiet=quiet)
        assert capsys.readouterr().err.partition("\n")[0] == said  # a finished run is opened without a word


def test_11_nothing_is_overwritten_or_spilled(tiny: uw.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = uw.export(tiny, tmp_path / "model")
    assert uw.export(tiny, target) == target
    with pytest.raises(ValueError, match="model holds another model: choose another folder"):
        uw.export(uw.load("runs/one"), target)
    assert main(["train", "photos", *SMALL, "--quiet", "--folder", "photos"]) != 0
    assert "photos holds other things (cat and 1 more), and a run needs a folder of its own" in capsys.readouterr().err
    assert sorted(path.name for path in Path("photos").iterdir()) == ["cat", "dog"]


def test_11_tables_can_be_trained_on(tmp_path: Path) -> None:
    """More of it: tests/end_to_end/test_tables.py."""
    (tmp_path / "people.csv").write_text("a,b,kind\n1,2,x\n2,3,y\n4,6,x\n")
    words = ["train", str(tmp_path / "people.csv"), "--world.labels", "kind", *SMALL, "--quiet"]
    assert main([*words, "--folder", str(tmp_path / "run")]) == 0
    assert uw.load(tmp_path / "run").encode([[1.0, 2.0]]).mean.shape == (1, 2)
