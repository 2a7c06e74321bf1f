"""Symmetric Solids from small archives of the two layouts."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave.data import symsol
from unweave.data.symsol import SymSol


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(symsol, "ORIGINAL", replace(symsol.ORIGINAL, checksum="", n_bytes=None))
    (tmp_path / "symsol").mkdir()
    return tmp_path / "symsol"


def picture(seed: int, size: int, mode: str = "L") -> bytes:
    content = io.BytesIO()
    rough = np.random.default_rng(seed).integers(0, 256, (8, 8), dtype=np.uint8)
    Image.fromarray(rough).resize((size, size)).convert(mode).save(content, "PNG")
    return content.getvalue()


def write(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_reduced_archive_in_order_without_duplicates(folder: Path) -> None:
    names = ("cyl_3", "tet_10", "tet_9", "cone_0", "tet_11")
    seeds = (1, 2, 3, 4, 3)
    members = {f"symsol_reduced/{name}.png": picture(seed, 64) for name, seed in zip(names, seeds)}
    write(folder / "symsol_reduced.zip", members | {"__MACOSX/symsol_reduced/tet_1.png": b"", "readme.txt": b"hello"})
    data = SymSol().load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [0, 0, 3, 4]
    for row, name in enumerate(("tet_9", "tet_10", "cone_0", "cyl_3")):
        expected = np.asarray(Image.open(io.BytesIO(members[f"symsol_reduced/{name}.png"])))
        np.testing.assert_array_equal(data.store[row, 0].numpy(), expected)
    (folder / "symsol_reduced.zip").unlink()
    assert len(SymSol().load()) == 4


def test_original_archive_is_reduced_here(folder: Path) -> None:
    train, test = "symsol_dataset/train/images/", "symsol_dataset/test/images/"
    members = {
        train + "cube_00001.png": picture(1, 224, "RGB"),
        train + "cube_00002.png": picture(1, 224, "RGB"),
        train + "tetX_00001.png": picture(2, 224, "RGB"),
        train + "icosa_00001.png": picture(3, 224, "RGB"),
        test + "cube_00003.png": picture(4, 224, "RGB"),
    }
    write(folder / "symsol.zip", members)
    data = SymSol("original").load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [1, 2]
    grey = Image.open(io.BytesIO(members[train + "icosa_00001.png"])).convert("L")
    expected = np.asarray(grey.resize((64, 64), Image.Resampling.LANCZOS))
    np.testing.assert_array_equal(data.store[1, 0].numpy(), expected)


def test_damage_is_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"symsol_reduced\.zip.*`unweave worlds symsol`"):
        SymSol().load()
    assert "data.kent.ac.uk/436" in SymSol().card().how_to_get
    path = folder / "symsol_reduced.zip"
    write(path, {"other.png": picture(0, 64)})
    with pytest.raises(ValueError, match=r"symsol_reduced\.zip cannot be read.*no member is named like tet_17"):
        SymSol().load()
    write(path, {"symsol_reduced/tet_1.png": picture(0, 64)[:60]})
    with pytest.raises(ValueError, match=r"symsol_reduced\.zip cannot be read"):
        SymSol().load()
    path.write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"symsol_reduced\.zip cannot be read"):
        SymSol().load()


def test_progress_is_told_and_the_card_says_what_is_there(folder: Path) -> None:
    assert not SymSol().card().on_disk
    write(folder / "symsol_reduced.zip", {f"symsol_reduced/tet_{n}.png": picture(n, 64) for n in range(3)})
    assert SymSol().card().on_disk
    told: list[tuple[str, int, int]] = []
    SymSol().load(lambda *said: told.append(said))
    assert [one[1:] for one in told if one[0] == "reading Symmetric Solids"] == [(0, 3)]
    (folder / "symsol_reduced.zip").unlink()
    assert SymSol().card().on_disk


@pytest.mark.parametrize(
    ("what", "array"), [("images", np.zeros((3, 1, 64, 60), np.uint8)), ("shapes", np.zeros((2, 1)))]
)
def test_kept_arrays_that_do_not_fit_together_are_refused(folder: Path, what: str, array: np.ndarray) -> None:
    write(folder / "symsol_reduced.zip", {f"symsol_reduced/tet_{n}.png": picture(n, 64) for n in range(3)})
    SymSol().load()
    np.save(folder / f"reduced-{what}.npy", array)
    (folder / f"reduced-{what}.npy.json").unlink()
    with pytest.raises(ValueError, match="and its neighbour do not fit together"):
        SymSol().load()
