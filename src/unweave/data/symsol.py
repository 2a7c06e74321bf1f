"""Symmetric Solids (Murphy et al., 2021), reduced as in Bonheme's thesis (2023, §8.4)."""

import re
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from unweave.data.files import (
    Progress,
    Published,
    cached_array,
    data_folder,
    how_to_get,
    place_of,
    reading,
    require,
    verify,
)
from unweave.data.world import Card, Data, World

Source = Literal["reduced", "original"]

PIXELS = 64
SHAPES = ("tet", "cube", "icosa", "cone", "cyl")
"""Tetrahedron, cube, icosahedron, cone, cylinder; the three marked shapes are left out."""

MEMBER = re.compile(rf"(?:.*/)?({'|'.join(SHAPES)})_(\d+)\.png$")

REDUCED = Published("symsol_reduced.zip", "https://data.kent.ac.uk/436", by_hand=True)
ORIGINAL = Published(
    "symsol.zip",
    "https://storage.googleapis.com/gresearch/implicit-pdf/symsol.zip",
    # not given by its authors; size and value as TensorFlow Datasets records them
    "sha256:cf4b964a1a50e74a4f9a797f994c030476688c2010bb950ac377df2852f7dbc1",
    2_861_745_908,
)


@dataclass(frozen=True)
class SymSol(World):
    """Grey solids from all sides, 64×64. Different rotations that give the same image are kept once.

    ``reduced`` reads the thesis's own archive; ``original`` reduces the training images of the published one in the
    same manner here. The two need not hold the same number of images. The label is the shape; rotations are dropped.
    """

    name: ClassVar[str] = "symsol"
    source: Source = "reduced"

    def __post_init__(self) -> None:
        if self.source not in ("reduced", "original"):
            raise ValueError(f"source must be reduced or original, not {self.source!r}")

    def files(self) -> tuple[Published, ...]:
        return (REDUCED if self.source == "reduced" else ORIGINAL,)

    def card(self) -> Card:
        on_disk = self._cache("images").exists() or place_of(self.name, self.files()[0]).exists()
        note = "one label, the shape; the number of images is known once the archive has been read"
        title = "Symmetric Solids, reduced"
        get = how_to_get(self.name, self.files())
        return Card(title, (1, PIXELS, PIXELS), None, None, on_disk, get, note, ("shape",))

    def load(self, progress: Progress | None = None) -> Data:
        read = cache(lambda: self._read(progress))
        images = cached_array(self._cache("images"), lambda: read()[0], progress)
        shapes = cached_array(self._cache("shapes"), lambda: read()[1])
        if images.shape[1:] != (1, PIXELS, PIXELS) or shapes.shape != (len(images), 1):
            raise ValueError(f"{self._cache('images')} and its neighbour do not fit together. Delete both to rebuild.")
        labels = torch.from_numpy(np.array(shapes))
        return Data(torch.from_numpy(images), (1, PIXELS, PIXELS), labels=labels, label_names=("shape",))

    def _cache(self, what: str) -> Path:
        return data_folder() / self.name / f"{self.source}-{what}.npy"

    def _read(self, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
        published = self.files()[0]
        path = require(self.name, published)
        verify(path, published, progress)
        with reading(path, "a Symmetric Solids archive (zip of png)"), zipfile.ZipFile(path) as archive:
            members = _members(archive)
            if not members:
                raise ValueError(f"no member is named like {SHAPES[0]}_17.png")
            return _distinct(archive, members, progress)


def _members(archive: zipfile.ZipFile) -> list[tuple[int, int, str]]:
    """(shape, number, member), in order; of the original archive only the training images."""
    found = []
    for name in archive.namelist():
        match = MEMBER.fullmatch(name)
        if match and "test/" not in name and "__MACOSX" not in name:
            found.append((SHAPES.index(match[1]), int(match[2]), name))
    return sorted(found)


def _distinct(
    archive: zipfile.ZipFile, members: list[tuple[int, int, str]], progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    kept: dict[bytes, int] = {}
    for place, (shape, _, name) in enumerate(members):
        kept.setdefault(_solid(archive, name), shape)
        if progress and place % 1000 == 0:
            progress("reading Symmetric Solids", place, len(members))
    images = np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(-1, 1, PIXELS, PIXELS)
    return images, np.array(list(kept.values()), dtype=np.int64)[:, None]


def _solid(archive: zipfile.ZipFile, name: str) -> bytes:
    from PIL import Image

    with archive.open(name) as file, Image.open(file) as image:
        grey = image.convert("L")
        if grey.size != (PIXELS, PIXELS):
            grey = grey.resize((PIXELS, PIXELS), Image.Resampling.LANCZOS)
        return grey.tobytes()
