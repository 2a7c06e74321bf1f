"""What a person may give to learn from, and the world that it becomes."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.config import fingerprint
from unweave.data.images import Images
from unweave.data.micro import Micro
from unweave.data.own import as_world, is_own_path
from unweave.data.table import Table
from unweave.data.world import Data

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8), dtype=np.uint8)
ROWS = np.random.default_rng(1).normal(size=(20, 3))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for place, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{place}.png")
    np.savez(tmp_path / "pictures.npz", images=PIXELS, labels=np.arange(6))
    np.savez(tmp_path / "rows.npz", x=ROWS, labels=np.arange(20))
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "pictures.npy", PIXELS)
    pl.DataFrame(ROWS, schema=["a", "b", "c"]).write_csv(tmp_path / "rows.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "kind", "n"),
    [
        ("photos", Images, 6),
        (Path("photos"), Images, 6),
        ("photos/", Images, 6),
        ("pictures.npz", Images, 6),
        ("pictures.npy", Images, 6),
        ("rows.npz", Table, 20),
        ("rows.npy", Table, 20),
        ("rows.csv", Table, 20),
        ("micro", Micro, 2048),
        (Micro(), Micro, 2048),
        ({"name": "micro"}, Micro, 2048),
    ],
)
def test_names_paths_and_worlds(here: Path, given: object, kind: type, n: int) -> None:
    assert isinstance(as_world(given), kind)
    data = uw.world(given)
    assert len(data) == n
    assert uw.world(data) is data
    assert as_world(data) == as_world(given)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (PIXELS, (1, 8, 8)),
        (torch.from_numpy(PIXELS)[:, None] / 255, (1, 8, 8)),
        (np.repeat(PIXELS[..., None], 3, axis=-1), (3, 8, 8)),
        (ROWS, (3,)),
        (torch.from_numpy(ROWS), (3,)),
        (ROWS.tolist(), (3,)),
        (pl.DataFrame(ROWS), (3,)),
        (pd.DataFrame(ROWS), (3,)),
    ],
)
def test_arrays_tensors_and_frames(given: object, shape: tuple[int, ...]) -> None:
    data = uw.world(given)
    assert data.shape == shape
    if data.columns is not None:
        assert np.allclose(data[:].numpy(), ROWS, rtol=1e-6)
    assert fingerprint(as_world(given).resolve()) == fingerprint(as_world(given).resolve())
    assert fingerprint(as_world(given[1:]).resolve()) != fingerprint(as_world(given).resolve())  # type: ignore[index]


def test_labels_and_names_come_along() -> None:
    kinds = np.array(["b", "a"] * 10)
    data = uw.world(ROWS, labels=kinds, columns=["x", "y", "z"], called="points")
    assert data.columns is not None
    assert (data.columns.names, data.label_names) == (("x", "y", "z"), ("labels",))
    assert data.labels is not None
    assert data.labels[:2, 0].tolist() == [1, 0]
    assert data.world is not None
    assert data.world.card().title == "points"
    assert uw.world(ROWS, labels=kinds.astype(object), columns=["x", "y", "z"], called="points").world == data.world
    assert uw.world(PIXELS, labels=np.arange(6)).label_names == ("labels",)
    frame = pl.DataFrame(ROWS).with_columns(kind=pl.Series(kinds))
    for labels in ("kind", ["kind"]):
        assert uw.world(frame, labels=labels).label_names == ("kind",)
    with pytest.raises(ValueError, match="column 'kind' holds words"):
        uw.world(frame)
    with pytest.raises(ValueError, match="there are 3 labels for 20 examples"):
        uw.world(ROWS, labels=[1, 2, 3])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mikro", "unknown world 'mikro'. Did you mean micro"),
        ("gone.csv", "gone.csv is not there: give a folder of images, or a csv"),
        (np.zeros(5), r"to learn from, give .*; not float64 of the shape \(5,\)"),
        (np.zeros((2, 3, 4, 5, 6)), r"not float64 of the shape \(2, 3, 4, 5, 6\)"),
        (np.array([["a", "b"]]), "not <U1 of the shape"),
        ([[1, 2], [3]], "one size throughout"),
        (3.5, r"to learn from, give .*; not float \(3.5\)"),
        (None, "not NoneType"),
        (pl.DataFrame(), "the data frame is empty"),
        (Data(torch.zeros(2, 3), (3,), "floats"), "do not say where they come from"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(here: Path, given: object, words: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        as_world(given).resolve()


def test_options_belong_to_what_is_given(here: Path) -> None:
    assert uw.world("photos", size=4).shape == (1, 4, 4)
    assert uw.world("images", path="photos", size=4).shape == (1, 4, 4)
    assert uw.world("rows.csv", columns="a,c").shape == (2,)
    with pytest.raises(ValueError, match=r"unknown option of world 'siz'. Did you mean size"):
        uw.world("photos", siz=4)
    with pytest.raises(ValueError, match="set size where it is made"):
        uw.world(Micro(), size=4)


def test_paths_are_told_from_names(here: Path) -> None:
    assert all(map(is_own_path, ("photos", "x.csv", "some/where", Path("micro"))))
    assert not any(map(is_own_path, ("micro", "mikro", "mylib:World")))
