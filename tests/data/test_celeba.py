"""CelebA from a small archive of the published layout."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave.data import celeba
from unweave.data.celeba import CelebA

NAMES = ("000001.jpg", "000002.jpg", "000003.jpg")
ATTRIBUTES = "3\nBald Smiling \n000001.jpg -1  1\n000002.jpg  1  1\n000003.jpg -1 -1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(celeba, "N_IMAGES", 3)
    for file in ("ARCHIVE", "ATTRIBUTES"):
        monkeypatch.setattr(celeba, file, replace(getattr(celeba, file), checksum="", n_bytes=None))
    (tmp_path / "celeba").mkdir()
    return tmp_path / "celeba"


def write(folder: Path, names: tuple[str, ...] = NAMES) -> list[Image.Image]:
    faces = []
    with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
        for place, name in enumerate(names):
            rough = np.random.default_rng(place).integers(0, 256, (14, 11, 3), dtype=np.uint8)
            content = io.BytesIO()
            Image.fromarray(rough).resize((178, 218)).save(content, "JPEG")
            archive.writestr(f"img_align_celeba/{name}", content.getvalue())
            faces.append(Image.open(content).convert("RGB"))
    (folder / "list_attr_celeba.txt").write_text(ATTRIBUTES)
    return faces


@pytest.mark.parametrize(("crop", "box"), [(148, (15, 35, 163, 183)), (178, (0, 20, 178, 198))])
def test_central_square_and_attributes(folder: Path, crop: int, box: tuple[int, int, int, int]) -> None:
    faces = write(folder)
    data = CelebA(crop).load()
    for row, face in enumerate(faces):
        expected = np.asarray(face.crop(box).resize((64, 64), Image.Resampling.LANCZOS)).transpose(2, 0, 1)
        np.testing.assert_array_equal(data.store[row].numpy(), expected)
    assert data.labels is not None
    assert data.labels.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert data.label_names == ("Bald", "Smiling")


def test_missing_image_is_named(folder: Path) -> None:
    write(folder, NAMES[:2])
    with pytest.raises(ValueError, match=r"img_align_celeba\.zip cannot be read.*000003\.jpg, which has attributes"):
        CelebA().load()


def test_missing_files_are_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"list_attr_celeba\.txt"):
        CelebA().load()
    write(folder)
    (folder / "img_align_celeba.zip").unlink()
    with pytest.raises(FileNotFoundError, match=r"img_align_celeba\.zip"):
        CelebA().load()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not enough values"),
        (ATTRIBUTES.replace("3\n", "4\n", 1), "lists 3 images and announces 4"),
        (ATTRIBUTES.replace("000002.jpg  1", "000002.jpg  0"), "line 4"),
        ("<html>\n<body>\n", "invalid literal"),
    ],
)
def test_wrong_attributes_are_refused(folder: Path, text: str, why: str) -> None:
    write(folder)
    (folder / "list_attr_celeba.txt").write_text(text)
    with pytest.raises(ValueError, match=rf"list_attr_celeba\.txt cannot be read.*{why}"):
        CelebA().load()


@pytest.mark.parametrize("kept", [0.3, 0.97])
def test_cut_archive_is_named(folder: Path, kept: float) -> None:
    write(folder)
    path = folder / "img_align_celeba.zip"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(ValueError, match=r"img_align_celeba\.zip cannot be read as the CelebA archive"):
        CelebA().load()


def test_crop_must_fit() -> None:
    with pytest.raises(ValueError, match="crop must be at most 178, not 200"):
        CelebA(200).load()


def test_the_card_says_what_is_there(folder: Path) -> None:
    assert not CelebA().card().on_disk
    write(folder)
    assert CelebA().card().on_disk
    (folder / "list_attr_celeba.txt").rename(folder / "kept.txt")
    assert not CelebA().card().on_disk
    (folder / "kept.txt").rename(folder / "list_attr_celeba.txt")
    told: list[tuple[str, int, int]] = []
    CelebA().load(lambda *said: told.append(said))
    assert [one for one in told if one[0] == "converting CelebA"] == [("converting CelebA", 0, 3)]
    (folder / "img_align_celeba.zip").unlink()
    assert CelebA().card().on_disk
    assert not CelebA(100).card().on_disk


@pytest.mark.parametrize(("size", "fits"), [((148, 148), True), ((147, 200), False), ((200, 147), False)])
def test_photographs_as_small_as_the_square_are_taken(folder: Path, size: tuple[int, int], fits: bool) -> None:
    write(folder)
    content = io.BytesIO()
    Image.new("RGB", size, "white").save(content, "PNG")
    with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
        for name in NAMES:
            archive.writestr(f"img_align_celeba/{name}", content.getvalue())
    if fits:
        assert int(CelebA().load().store.min()) == 255
    else:
        with pytest.raises(ValueError, match=f"000001.jpg is {size[0]}×{size[1]}, too small for a square of 148"):
            CelebA().load()


@pytest.mark.parametrize("line", ["000002.jpg  1", "000002.jpg  1  1  1"])
def test_lines_of_other_lengths_are_refused(folder: Path, line: str) -> None:
    write(folder)
    (folder / "list_attr_celeba.txt").write_text(ATTRIBUTES.replace("000002.jpg  1  1", line))
    with pytest.raises(ValueError, match="line 4 does not hold a file and 2 times -1 or 1"):
        CelebA().load()


def test_all_images_must_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder)
    monkeypatch.setattr(celeba, "N_IMAGES", 4)
    with pytest.raises(ValueError, match="it lists 3 images and announces 3, expected 4"):
        CelebA().load()
