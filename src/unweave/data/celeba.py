"""CelebA (Liu et al., 2015): aligned photographs of faces with forty attributes."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from unweave.config import check_fields, number
from unweave.data.files import (
    Progress,
    Published,
    converted,
    data_folder,
    how_to_get,
    place_of,
    reading,
    require,
    verify,
)
from unweave.data.world import Card, Data, World

N_IMAGES = 202_599
PIXELS = 64
WIDTH = 178

PAGE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
# the page leads to a shared drive that asks a person; checksums as torchvision, sizes as TensorFlow Datasets has them
ARCHIVE = Published("img_align_celeba.zip", PAGE, "md5:00d2c5bc6d35e252742224ab0c1e8fcb", 1_443_490_838, by_hand=True)
ATTRIBUTES = Published("list_attr_celeba.txt", PAGE, "md5:75e246fa4810816ffd6ee81facbd244c", 26_721_026, by_hand=True)


@dataclass(frozen=True)
class CelebA(World):
    """Faces. The photographs are 178×218: their central square of ``crop`` pixels is brought to 64×64 by Lanczos.

    148 is the cut most autoencoder papers use (hair to chin); 178 is the whole width.
    """

    name: ClassVar[str] = "celeba"
    crop: int = number(148, least=1, most=WIDTH, help="pixels of the central square")

    def files(self) -> tuple[Published, ...]:
        return (ARCHIVE, ATTRIBUTES)

    def card(self) -> Card:
        attributes = place_of(self.name, ATTRIBUTES).exists()
        on_disk = attributes and (self._cache().exists() or place_of(self.name, ARCHIVE).exists())
        get = how_to_get(self.name, self.files()) + " (by hand: the drive asks for a consent)"
        note, labels = "40 attributes as labels", ("40 attributes",)
        return Card("CelebA", (3, PIXELS, PIXELS), N_IMAGES, None, on_disk, get, note, labels)

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        path = require(self.name, ATTRIBUTES)
        verify(path, ATTRIBUTES)
        with reading(path, "the attributes of CelebA"):
            files, names, labels = _attributes(path)
        shape = (len(files), 3, PIXELS, PIXELS)
        images = converted(self._cache(), shape, lambda array: self._convert(array, files, progress), progress)
        return Data(torch.from_numpy(images), shape[1:], labels=torch.from_numpy(labels), label_names=names)

    def _cache(self) -> Path:
        return data_folder() / self.name / f"images-{self.crop}.npy"

    def _convert(self, array: np.ndarray, files: list[str], progress: Progress | None) -> None:
        path = require(self.name, ARCHIVE)
        verify(path, ARCHIVE, progress)
        with reading(path, "the CelebA archive (zip of photographs)"), zipfile.ZipFile(path) as archive:
            members = {Path(name).name: name for name in archive.namelist()}
            for row, file in enumerate(files):
                if file not in members:
                    raise ValueError(f"{file}, which has attributes, is not in it")
                array[row] = _face(archive, members[file], self.crop)
                if progress and row % 1000 == 0:
                    progress("converting CelebA", row, len(files))


def _attributes(path: Path) -> tuple[list[str], tuple[str, ...], np.ndarray]:
    """The number of images, the forty names, then one line an image: its file and −1 or 1 for every attribute."""
    first, second, *lines = path.read_text(encoding="utf-8").splitlines()
    names, rows = tuple(second.split()), [line.split() for line in lines if line.strip()]
    if int(first) != len(rows) or len(rows) != N_IMAGES:
        raise ValueError(f"it lists {len(rows)} images and announces {first.strip()}, expected {N_IMAGES}")
    for line, row in enumerate(rows, start=3):
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"-1", "1"}:
            raise ValueError(f"line {line} does not hold a file and {len(names)} times -1 or 1")
    values = np.array([row[1:] for row in rows]) == "1"
    return [row[0] for row in rows], names, values.astype(np.int64)


def _face(archive: zipfile.ZipFile, member: str, crop: int) -> np.ndarray:
    from PIL import Image

    with archive.open(member) as file, Image.open(file) as photograph:
        width, height = photograph.size
        if width < crop or height < crop:
            raise ValueError(f"{member} is {width}×{height}, too small for a square of {crop}")
        left, top = (width - crop) // 2, (height - crop) // 2
        box = (left, top, left + crop, top + crop)
        square = photograph.convert("RGB").crop(box).resize((PIXELS, PIXELS), Image.Resampling.LANCZOS)
        return np.moveaxis(np.asarray(square), -1, 0)
