"""SmallNORB from small files of the published binary layout."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import smallnorb
from unweave.data.factors import Factor, FactorSpace
from unweave.data.smallnorb import SmallNORB, read_matrix

MAGIC = {"u1": 0x1E3D4C55, "<i4": 0x1E3D4C54, "<f4": 0x1E3D4C51, "<i2": 0x1E3D4C56, "<f8": 0x1E3D4C53}


def matrix(values: np.ndarray, kind: str) -> bytes:
    sizes = list(values.shape) + [1] * (3 - values.ndim)
    return struct.pack(f"<2i{len(sizes)}i", MAGIC[kind], values.ndim, *sizes) + values.astype(kind).tobytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    axes = smallnorb.SPACE.axes
    small = FactorSpace(tuple(Factor(axis.name, 2, axis.kind, axis.hidden) for axis in axes))
    monkeypatch.setattr(smallnorb, "SPACE", small)
    unchecked = tuple(replace(file, checksum="", n_bytes=None) for file in smallnorb.PUBLISHED)
    monkeypatch.setattr(smallnorb, "PUBLISHED", unchecked)
    (tmp_path / "smallnorb").mkdir()
    return tmp_path / "smallnorb"


def write(folder: Path, *, zipped: bool = True, instances: tuple[int, int] = (1, 0)) -> np.ndarray:
    """Instance 1 in the training part and 0 in the testing part, each in random order; images by cell."""
    rng = np.random.default_rng(0)
    by_cell = rng.integers(0, 256, (2,) * 5 + (2, 12, 12), dtype=np.uint8).repeat(8, axis=-1).repeat(8, axis=-2)
    cells = np.stack(np.meshgrid(*[np.arange(2)] * 4, indexing="ij"), axis=-1).reshape(16, 4)
    for part, instance in zip(smallnorb.PARTS, instances):
        order = rng.permutation(16)
        category, elevation, azimuth, lighting = cells[order].T
        toys = np.full(16, instance)
        images = by_cell[category, toys % 2, elevation, azimuth, lighting]
        info = np.column_stack([toys, elevation, 2 * azimuth, lighting])
        for kind, content in (
            ("dat", matrix(images, "u1")),
            ("cat", matrix(category, "<i4")),
            ("info", matrix(info, "<i4")),
        ):
            path = folder / f"{part}-{kind}.mat{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(content) if zipped else content)
    return by_cell


@pytest.mark.parametrize("zipped", [True, False])
def test_every_cell_shows_its_left_image(folder: Path, zipped: bool) -> None:
    by_cell = write(folder, zipped=zipped)
    data = SmallNORB().load()
    assert len(data) == SmallNORB().card().n_examples == 32
    assert data.shape == SmallNORB().card().shape == (1, 64, 64)
    for row in (0, 7, 19, 31):
        cell = tuple(int(digit) for digit in f"{row:05b}")
        left = Image.fromarray(by_cell[cell][0]).resize((64, 64), Image.Resampling.LANCZOS)
        np.testing.assert_array_equal(data.store[row, 0].numpy(), np.asarray(left))
        category, _, elevation, azimuth, lighting = cell
        assert data.factors(torch.tensor([row])).tolist() == [[category, elevation, azimuth, lighting]]


def test_same_instances_twice_are_refused(folder: Path) -> None:
    write(folder, instances=(1, 1))
    with pytest.raises(ValueError, match="leave 16 cells of the factor grid empty and fill 16 twice"):
        SmallNORB().load()


def test_factor_off_the_grid_is_refused(folder: Path) -> None:
    write(folder, instances=(1, 5))
    with pytest.raises(ValueError, match=r"testing-info\.mat\.gz cannot be read.*instance must lie in 0…1"):
        SmallNORB().load()


@pytest.mark.parametrize("damage", ["cut", "text", "longer", "missing"])
def test_damage_is_named(folder: Path, damage: str) -> None:
    write(folder)
    path = folder / f"{smallnorb.PARTS[0]}-dat.mat.gz"
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        text = gzip.compress(b"<html>not found</html>")
        longer = gzip.compress(gzip.decompress(content) + b"..")
        path.write_bytes({"cut": content[:-500], "text": text, "longer": longer}[damage])
    with pytest.raises((ValueError, FileNotFoundError), match=r"training-dat\.mat\.gz"):
        SmallNORB().load()


@pytest.mark.parametrize("kind", list(MAGIC))
def test_matrices_of_every_kind(tmp_path: Path, kind: str) -> None:
    values = np.arange(6).reshape(2, 3)
    (tmp_path / "m.mat").write_bytes(matrix(values, kind))
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.mat"), values)


def test_published_grid_is_whole() -> None:
    assert smallnorb.SPACE.n_cells == 48_600
    assert smallnorb.SPACE.names == ("category", "elevation", "azimuth", "lighting")
    assert smallnorb.PUBLISHED[3].file == "smallnorb-5x01235x9x18x6x2x96x96-testing-dat.mat.gz"
    assert smallnorb.PUBLISHED[3].n_bytes == 130_799_817


def test_a_matrix_has_one_to_eight_axes(tmp_path: Path) -> None:
    path = tmp_path / "m.mat"
    for n_axes in (1, 3, 8):
        values = np.arange(4).reshape(4, *(1,) * (n_axes - 1))
        path.write_bytes(matrix(values, "<i4"))
        np.testing.assert_array_equal(read_matrix(path), values)
    for n_axes in (0, 9):
        path.write_bytes(struct.pack("<2i9i", MAGIC["u1"], n_axes, *(1,) * 9) + b"\x01")
        with pytest.raises(ValueError, match=f"0x1e3d4c55 and {n_axes} axes, not with a known magic number"):
            read_matrix(path)
    path.write_bytes(struct.pack("<2i", 7, 2))
    with pytest.raises(ValueError, match="it begins with 0x7 and 2 axes"):
        read_matrix(path)


@pytest.mark.parametrize(
    ("kind", "values", "number", "why"),
    [
        ("dat", np.zeros((16, 2, 96)), "u1", r"dat\.mat\.gz holds uint8 \(16, 2, 96\)"),
        ("dat", np.zeros((16, 1, 96, 96)), "u1", r"dat\.mat\.gz holds uint8 \(16, 1, 96, 96\)"),
        ("dat", np.zeros((16, 2, 9, 9)), "<i2", r"dat\.mat\.gz holds int16"),
        ("cat", np.zeros(15), "<i4", r"info\.mat\.gz and its neighbours disagree: .*\(15,\), \(16, 4\)"),
        ("info", np.zeros((16, 3)), "<i4", r"info\.mat\.gz and its neighbours disagree: .*\(16,\), \(16, 3\)"),
    ],
)
def test_each_part_must_fit(folder: Path, kind: str, values: np.ndarray, number: str, why: str) -> None:
    write(folder)
    (folder / f"{smallnorb.PARTS[0]}-{kind}.mat.gz").write_bytes(gzip.compress(matrix(values, number)))
    with pytest.raises(ValueError, match=why):
        SmallNORB().load()


def test_it_tells_how_far_it_is_and_what_is_on_disk(folder: Path) -> None:
    assert not SmallNORB().card().on_disk
    write(folder)
    assert SmallNORB().card().on_disk
    told: list[tuple[str, int, int]] = []
    SmallNORB().load(lambda *said: told.append(said))
    assert [one for one in told if one[0] == "converting SmallNORB"] == [("converting SmallNORB", 16, 16)] * 2
    for file in folder.glob("*.gz"):
        file.unlink()
    assert SmallNORB().card().on_disk  # what was made of it is kept


def test_many_images_are_resized_in_blocks() -> None:
    images = np.zeros((2001, 2, 2, 2), np.uint8) + (np.arange(2001) % 251).astype(np.uint8)[:, None, None, None]
    made, told = np.zeros((2001, 1, 64, 64), np.uint8), []
    smallnorb._resize(made, images, np.arange(2001)[::-1].copy(), lambda *said: told.append(said[1:]))
    assert made[:, 0, 5, 60].tolist() == [row % 251 for row in range(2000, -1, -1)]
    assert told == [(1000, 2001), (2000, 2001), (2001, 2001)]
