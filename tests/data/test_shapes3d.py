"""Shapes3D from a small file of the published layout, and the imitation as a world."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from unweave.data import shapes3d
from unweave.data.factors import Factor, FactorSpace
from unweave.data.shapes3d import Shapes3D, Shapes3DLike
from unweave.data.world import unpack

SMALL = FactorSpace(tuple(Factor(axis.name, min(axis.size, 2), axis.kind) for axis in shapes3d.SPACE.axes))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(shapes3d, "SPACE", SMALL)
    monkeypatch.setattr(shapes3d, "PUBLISHED", replace(shapes3d.PUBLISHED, checksum="", n_bytes=None))
    monkeypatch.setattr(shapes3d, "BLOCK", 10)
    path = tmp_path / "shapes3d" / "3dshapes.h5"
    path.parent.mkdir()
    return path


def write(path: Path, order: np.ndarray | None = None) -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 256, (64, 64, 64, 3), dtype=np.uint8)
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 6, indexing="ij"), axis=-1).reshape(64, 6)
    labels = grid * np.array([0.1, 0.1, 0.1, 0.07, 1.0, 4.3]) + np.array([0, 0, 0, 0.75, 0, -30.0])
    with h5py.File(path, "w") as file:
        file["images"] = images
        file["labels"] = labels if order is None else labels[order]
    return images


def test_images_come_out_in_order(place: Path) -> None:
    images = write(place)
    data = Shapes3D().load()
    rows = torch.tensor([0, 9, 10, 63])
    np.testing.assert_allclose(data.examples(rows).numpy() * 255, images[rows].transpose(0, 3, 1, 2), atol=1e-4)
    assert data.shape == Shapes3D().card().shape == (3, 64, 64)
    assert data.factors(torch.tensor([5])).tolist() == [[0, 0, 0, 1, 0, 1]]
    place.unlink()
    assert torch.equal(Shapes3D().load().store, data.store)


def test_shuffled_labels_are_refused(place: Path) -> None:
    write(place, order=np.random.default_rng(1).permutation(64))
    with pytest.raises(ValueError, match=r"3dshapes\.h5.*do not run through the factor grid"):
        Shapes3D().load()
    assert not shapes3d._cache().exists()


@pytest.mark.parametrize("damage", ["cut", "text", "no images", "few"])
def test_damage_is_named(place: Path, damage: str) -> None:
    write(place)
    if damage == "cut":
        place.write_bytes(place.read_bytes()[:50_000])
    elif damage == "text":
        place.write_text("<html>not found</html>")
    else:
        with h5py.File(place, "a") as file:
            kept = file["images"][:40]
            del file["images"]
            if damage == "few":
                file["images"] = kept
    with pytest.raises(ValueError, match=r"3dshapes\.h5 cannot be read as the Shapes3D file"):
        Shapes3D().load()


def test_checksum_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="`unweave worlds get shapes3d` fetches it"):
        Shapes3D().load()
    assert "0a0f6ed98baf" in Shapes3D().card().how_to_get
    path = tmp_path / "shapes3d" / "3dshapes.h5"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="5 bytes, the published file has 267573662"):
        Shapes3D().load()


def test_imitation_is_a_full_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    rendered = np.random.default_rng(0).integers(0, 64, (480, 21, 64, 64), dtype=np.uint8)
    monkeypatch.setattr(shapes3d, "render_views", lambda: rendered)
    data = Shapes3DLike().load()
    assert len(data) == 480_000
    rows = torch.tensor([0, 1, 479, 480, 123_456, 479_999])
    floor, wall, thing, scale, shape, turn = data.factors(rows).unbind(-1)
    expected = torch.stack([(scale * 4 + shape) * 15 + turn, floor, wall, thing], dim=1)
    assert torch.equal(data.store[rows].long(), expected)
    images = data.to("cpu").examples(rows)
    assert images.shape == (6, 3, 64, 64)
    assert torch.equal(images, Shapes3DLike().load().examples(rows))
    assert "imitation" in Shapes3DLike().card().title


def test_foreign_views_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(shapes3d, "render_views", lambda: np.zeros((3, 21, 64, 64), np.uint8))
    with pytest.raises(ValueError, match="not the views of this world"):
        Shapes3DLike().load()


def test_parts_are_never_taken_for_bits() -> None:
    with pytest.raises(ValueError, match=r"put together by Data\.unpacked"):
        unpack(torch.zeros(2, 4, dtype=torch.int16), "parts", (3, 64, 64))


def test_progress_is_told_by_blocks_and_the_card_says_what_is_there(place: Path) -> None:
    assert not Shapes3D().card().on_disk
    write(place)
    assert Shapes3D().card().on_disk
    told: list[tuple[str, int, int]] = []
    Shapes3D().load(lambda *said: told.append(said))
    assert [one[1:] for one in told if one[0] == "converting Shapes3D"] == [
        (n, 64) for n in (10, 20, 30, 40, 50, 60, 64)
    ]
    place.unlink()
    assert Shapes3D().card().on_disk


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("images", np.zeros((64, 64, 64, 3), np.int16), r"images are int16 \(64, 64, 64, 3\)"),
        ("labels", np.zeros((64, 5)), r"labels have the shape \(64, 5\), expected \(64, 6\)"),
        ("labels", np.arange(384.0).reshape(64, 6), "the labels of floor_hue do not run through"),
    ],
)
def test_each_array_must_fit(place: Path, name: str, values: np.ndarray, why: str) -> None:
    write(place)
    with h5py.File(place, "a") as file:
        del file[name]
        file[name] = values
    with pytest.raises(ValueError, match=why):
        Shapes3D().load()


def test_views_must_be_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(shapes3d, "render_views", lambda: np.zeros((480, 21, 64, 64), np.int8))
    with pytest.raises(ValueError, match="not the views of this world"):
        Shapes3DLike().load()
