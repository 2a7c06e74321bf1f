"""MPI3D from small files of the published layout: the two grids are told apart by their length."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.config import fingerprint
from unweave.data import mpi3d
from unweave.data.factors import Factor, FactorSpace
from unweave.data.mpi3d import MPI3D


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    spaces = {
        "full": FactorSpace((Factor("object_colour", 3), Factor("rest", 4))),
        "challenge": FactorSpace((Factor("object_colour", 2), Factor("rest", 4))),
    }
    monkeypatch.setattr(mpi3d, "SPACES", spaces)
    monkeypatch.setattr(mpi3d, "BLOCK", 5)
    (tmp_path / "mpi3d").mkdir()
    return tmp_path / "mpi3d"


def write(folder: Path, n_images: int, variant: str = "toy") -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 256, (n_images, 64, 64, 3), dtype=np.uint8)
    np.savez_compressed(folder / f"mpi3d_{variant}.npz", images=images)
    return images


def test_published_sizes() -> None:
    assert mpi3d.SPACES["full"].n_cells == 1_036_800
    assert mpi3d.SPACES["challenge"].n_cells == 460_800


@pytest.mark.parametrize(("n_images", "grid"), [(12, "full"), (8, "challenge")])
def test_grid_is_told_by_length(folder: Path, n_images: int, grid: str) -> None:
    images = write(folder, n_images, "real")
    world = MPI3D("real").resolve()
    assert world.grid == grid
    assert world.resolve() == world
    data = world.load()
    assert len(data) == n_images
    np.testing.assert_array_equal(data.store.numpy(), images.transpose(0, 3, 1, 2))
    assert data.factors(torch.tensor([n_images - 1])).tolist() == [[n_images // 4 - 1, 3]]
    (folder / "mpi3d_real.npz").unlink()
    assert MPI3D("real").resolve() == world
    assert len(MPI3D("real").load()) == n_images


def test_two_grids_are_two_worlds(folder: Path) -> None:
    write(folder, 12)
    whole = fingerprint(MPI3D().resolve())
    write(folder, 8)
    assert fingerprint(MPI3D().resolve()) != whole


def test_other_lengths_and_the_wrong_grid_are_refused(folder: Path) -> None:
    write(folder, 9)
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz holds 9 images; MPI3D has 12 \(full\) or 8 \(challenge\)"):
        MPI3D().load()
    write(folder, 8)
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz cannot be read.*expected \(12, 64, 64, 3\)"):
        MPI3D("toy", "full").load()


@pytest.mark.parametrize("damage", ["cut", "text", "flipped", "key"])
def test_damage_is_named(folder: Path, damage: str) -> None:
    write(folder, 12)
    path = folder / "mpi3d_toy.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    if damage == "key":
        np.savez(path, pictures=np.zeros((12, 64, 64, 3), np.uint8))
    else:
        path.write_bytes({"cut": content[:5000], "text": b"<html>", "flipped": bytes(content)}[damage])
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz cannot be read as an MPI3D file"):
        MPI3D().load()
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_missing_says_that_the_old_bucket_is_closed(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"mpi3d_toy\.npz"):
        MPI3D().load()
    assert "closed" in MPI3D().card().how_to_get
    # under test the type checker is quicker than the world itself
    with pytest.raises((ValueError, TypeError), match="variant"):
        MPI3D("plastic")  # type: ignore[arg-type]


def test_progress_is_told_by_blocks(folder: Path) -> None:
    write(folder, 12)
    told: list[tuple[str, int, int]] = []
    MPI3D().load(lambda *said: told.append(said))
    assert [one[1:] for one in told if one[0] == "converting MPI3D toy"] == [(5, 12), (10, 12), (12, 12)]


@pytest.mark.parametrize(
    "images",
    [np.zeros((12, 64, 64, 3), np.int8), np.asfortranarray(np.zeros((12, 64, 64, 3), np.uint8)),
     np.zeros((12, 64, 64), np.uint8)],
)  # fmt: skip
def test_only_bytes_in_the_usual_order_are_read(folder: Path, images: np.ndarray) -> None:
    np.savez(folder / "mpi3d_toy.npz", images=images)
    with pytest.raises(ValueError, match=r"images are .*, expected bytes \(images, 64, 64, 3\)"):
        MPI3D().load()


def test_more_than_the_header_says_is_refused(folder: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros((12, 64, 64, 3), np.uint8))
    with zipfile.ZipFile(folder / "mpi3d_toy.npz", "w") as archive:
        archive.writestr("images.npy", content.getvalue() + b"\x00")
    with pytest.raises(ValueError, match="there is more in it than its header says"):
        MPI3D().load()


def test_of_two_grids_that_were_kept_the_published_one_is_meant(folder: Path) -> None:
    assert not MPI3D().card().on_disk
    assert MPI3D().resolve().grid == "full"
    for n_images, found in ((8, "challenge"), (12, "full")):
        write(folder, n_images)
        assert MPI3D().card().on_disk
        MPI3D().load()
        (folder / "mpi3d_toy.npz").unlink()
        assert MPI3D().resolve().grid == found
        assert MPI3D().card().on_disk
    assert [MPI3D("toy", grid).card().n_examples for grid in ("auto", "full", "challenge")] == [12, 12, 8]
