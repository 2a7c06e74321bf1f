"""Cars3D from a small archive of the published layout, and from the real images where they are."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from unweave.data import cars3d
from unweave.data.cars3d import Cars3D
from unweave.data.factors import Factor, FactorSpace

NAMES = ("car_010_mesh.mat", "car_002_mesh.mat", "car_001_mesh.mat")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    small = FactorSpace((Factor("elevation", 2), Factor("azimuth", 3, "cyclic"), Factor("object", 3, "categorical")))
    monkeypatch.setattr(cars3d, "SPACE", small)
    monkeypatch.setattr(cars3d, "PUBLISHED", replace(cars3d.PUBLISHED, checksum=""))
    (tmp_path / "cars3d").mkdir()
    return tmp_path / "cars3d"


def cars() -> dict[str, np.ndarray]:
    smooth = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3, 3, 2), dtype=np.uint8)
    return dict(zip(NAMES, smooth.repeat(8, axis=1).repeat(8, axis=2)))


def write(folder: Path, files: dict[str, np.ndarray]) -> Path:
    path = folder / "nips2015-analogy-data.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, images in files.items():
            content = io.BytesIO()
            savemat(content, {"im": images, "mask": images[:, :, 0]})
            _add(archive, f"data/cars/{name}", content.getvalue())
        _add(archive, "data/cars/list.txt", b"car_001_mesh\n")
        _add(archive, "data/sprites/sprite.mat", b"something else")
    return path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def test_objects_are_in_order_of_name_and_resized_by_lanczos(folder: Path) -> None:
    files = cars()
    write(folder, files)
    data = Cars3D().load()
    assert len(data) == 18
    for elevation, azimuth, thing in ((0, 0, 0), (1, 2, 1), (1, 0, 2)):
        view = files[sorted(NAMES)[thing]][:, :, :, azimuth, elevation]
        expected = np.asarray(Image.fromarray(view).resize((64, 64), Image.Resampling.LANCZOS)).transpose(2, 0, 1)
        row = (elevation * 3 + azimuth) * 3 + thing
        np.testing.assert_array_equal(data.store[row].numpy(), expected)
        assert data.factors(torch.tensor([row])).tolist() == [[elevation, azimuth, thing]]


def test_missing_is_explained(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nips2015-analogy-data.*`unweave worlds cars3d`"):
        Cars3D().load()
    assert "scottreed.info" in Cars3D().card().how_to_get


def test_too_few_cars_are_refused(folder: Path) -> None:
    files = cars()
    files.pop(NAMES[0])
    write(folder, files)
    with pytest.raises(ValueError, match="holds 2 cars, expected 3"):
        Cars3D().load()


def test_wrong_shape_names_the_member(folder: Path) -> None:
    files = cars()
    files[NAMES[1]] = files[NAMES[1]][..., :1]
    write(folder, files)
    with pytest.raises(ValueError, match=r"tar\.gz cannot be read .*car_002_mesh\.mat in it \w+ uint8"):
        Cars3D().load()


@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_cut_archive_is_named(folder: Path, kept: float) -> None:
    path = write(folder, cars())
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ValueError, match=r"tar\.gz cannot be read as the Cars3D archive"):
        Cars3D().load()
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_cut_npz_is_named(folder: Path) -> None:
    np.savez(folder / "cars3d_64.npz", images=np.zeros((18, 64, 64, 3), np.uint8))
    assert len(Cars3D().load()) == 18
    (folder / "images.npy").unlink()
    np.savez(folder / "cars3d_64.npz", images=np.zeros((17, 64, 64, 3), np.uint8))
    with pytest.raises(ValueError, match=r"cars3d_64\.npz cannot be read .*\(17, 64, 64, 3\)"):
        Cars3D().load()
    path = folder / "cars3d_64.npz"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"cars3d_64\.npz cannot be read"):
        Cars3D().load()


@pytest.mark.slow
def test_real_cars(real_cars: Path) -> None:
    data = Cars3D().load()
    with np.load(real_cars) as file:
        images = file["images"]
    assert len(data) == 17_568
    row = 2 * 24 * 183 + 5 * 183 + 77
    np.testing.assert_array_equal(data.store[row].numpy(), images[row].transpose(2, 0, 1))
    # azimuth is a ring and runs in small steps: the next view, over the end too, is nearer than a quarter turn
    table = data.store.view(4, 24, 183, -1)[0, :, ::20].float()
    step, quarter = ((table - table.roll(by, dims=0)).abs().mean(dim=(1, 2)) for by in (1, 6))
    assert step.max() < quarter.mean()


def test_bytes_are_asked_for_and_progress_is_told(folder: Path) -> None:
    assert not Cars3D().card().on_disk
    write(folder, cars() | {NAMES[2]: cars()[NAMES[2]].astype(np.int16)})
    assert Cars3D().card().on_disk
    with pytest.raises(ValueError, match=r"car_001_mesh\.mat in it holds int16 \(128, 128, 3, 3, 2\)"):
        Cars3D().load()
    write(folder, cars() | {NAMES[2]: cars()[NAMES[2]][:, :, 0]})
    with pytest.raises(ValueError, match=r"car_001_mesh\.mat in it holds uint8 \(128, 128, 3, 2\)"):
        Cars3D().load()
    write(folder, cars())
    told: list[tuple[str, int, int]] = []
    Cars3D().load(lambda *said: told.append(said))
    assert [one[1:] for one in told if one[0] == "converting Cars3D"] == [(1, 3), (2, 3), (3, 3)]


def test_resized_images_must_be_bytes(folder: Path) -> None:
    np.savez(folder / "cars3d_64.npz", images=np.zeros((18, 64, 64, 3), np.int16))
    assert Cars3D().card().on_disk
    with pytest.raises(ValueError, match=r"images are int16 \(18, 64, 64, 3\), expected uint8"):
        Cars3D().load()
    images = np.random.default_rng(0).integers(0, 256, (18, 64, 64, 3), dtype=np.uint8)
    np.savez(folder / "cars3d_64.npz", images=images)
    np.testing.assert_array_equal(Cars3D().load().store.numpy(), images.transpose(0, 3, 1, 2))
    (folder / "cars3d_64.npz").unlink()
    assert Cars3D().card().on_disk


def test_an_example_has_the_shape_that_its_card_says(folder: Path) -> None:
    write(folder, cars())
    assert Cars3D().load().shape == Cars3D().card().shape == (3, 64, 64)
