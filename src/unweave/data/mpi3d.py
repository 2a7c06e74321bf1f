"""MPI3D (Gondal et al., 2019): a robot arm, as a toy rendering, a realistic rendering and real photographs."""

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
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

Variant = Literal["toy", "realistic", "real"]
Grid = Literal["auto", "full", "challenge"]

PIXELS = 64
BLOCK = 4_000


def _space(n_colours: int, n_shapes: int) -> FactorSpace:
    return FactorSpace(
        (
            Factor("object_colour", n_colours, "categorical"),
            Factor("object_shape", n_shapes, "categorical"),
            Factor("object_size", 2),
            Factor("camera_height", 3),
            Factor("background_colour", 3, "categorical"),
            Factor("horizontal_axis", 40),
            Factor("vertical_axis", 40),
        )
    )


SPACES: dict[str, FactorSpace] = {"full": _space(6, 6), "challenge": _space(4, 4)}
"""1,036,800 images as published; 460,800 in the subset of the 2019 challenge, which the reference study expects."""

ADDRESS = "https://storage.googleapis.com/mpi3d_disentanglement_dataset/data/"
NOTE = (
    "the first bucket (disentanglement_dataset) is closed; the authors named the present one in 2024, and no checksum"
    " is known for the files in it"
)


@dataclass(frozen=True)
class MPI3D(FactorWorld):
    """A robot arm holding an object. ``grid`` says which published grid the file holds; ``auto`` reads its length."""

    name: ClassVar[str] = "mpi3d"
    variant: Variant = "toy"
    grid: Grid = "auto"

    def __post_init__(self) -> None:
        if self.variant not in ("toy", "realistic", "real"):
            raise ValueError(f"variant must be toy, realistic or real, not {self.variant!r}")
        if self.grid != "auto" and self.grid not in SPACES:
            raise ValueError(f"grid must be auto, {' or '.join(SPACES)}, not {self.grid!r}")

    def files(self) -> tuple[Published, ...]:
        file = f"mpi3d_{self.variant}.npz"
        return (Published(file, ADDRESS + file),)

    def card(self) -> Card:
        on_disk = place_of(self.name, self.files()[0]).exists() or any(_cache(self.variant, g).exists() for g in SPACES)
        space = SPACES["full" if self.grid == "auto" else self.grid]
        get = f"{how_to_get(self.name, self.files())}; {NOTE}"
        return Card(f"MPI3D {self.variant}", (3, PIXELS, PIXELS), space.n_cells, space, on_disk, get)

    def resolve(self) -> World:
        return replace(self, grid=self._which())

    def load(self, progress: Progress | None = None) -> Data:
        grid = self._which()
        shape = (SPACES[grid].n_cells, 3, PIXELS, PIXELS)
        images = converted(_cache(self.variant, grid), shape, lambda array: self._convert(array, progress), progress)
        return self.weighted(Data(torch.from_numpy(images), shape=shape[1:], space=SPACES[grid]))

    def _which(self) -> Literal["full", "challenge"]:
        """The grid asked for, the one on disk, or, before anything is on disk, the published one."""
        if self.grid != "auto":
            return self.grid
        path = place_of(self.name, self.files()[0])
        if path.exists():
            with reading(path, "an MPI3D file (npz with images)"), zipfile.ZipFile(path) as archive:
                n_images = _open(archive)[1][0]
            return _by_length(path, n_images)
        only_challenge = _cache(self.variant, "challenge").exists() and not _cache(self.variant, "full").exists()
        return "challenge" if only_challenge else "full"

    def _convert(self, array: np.ndarray, progress: Progress | None) -> None:
        path = require(self.name, self.files()[0])
        verify(path, self.files()[0], progress)
        with reading(path, "an MPI3D file (npz with images)"), zipfile.ZipFile(path) as archive:
            stream, shape = _open(archive)
            expected = (len(array), PIXELS, PIXELS, 3)
            if shape != expected:
                raise ValueError(f"images have the shape {shape}, expected {expected}")
            for start in range(0, len(array), BLOCK):
                block = array[start : start + BLOCK]
                content = stream.read(block.size)
                block[:] = np.moveaxis(np.frombuffer(content, np.uint8).reshape(-1, *shape[1:]), -1, 1)
                if progress:
                    progress(f"converting MPI3D {self.variant}", start + len(block), len(array))
            if stream.read(1):
                raise ValueError("there is more in it than its header says")


def _cache(variant: str, grid: str) -> Path:
    return data_folder() / MPI3D.name / f"{variant}-{grid}.npy"


def _open(archive: zipfile.ZipFile) -> tuple[zipfile.ZipExtFile, tuple[int, ...]]:
    """The bytes of the images behind their header, and their shape; the array is never held in memory whole."""
    stream = archive.open("images.npy")
    assert isinstance(stream, zipfile.ZipExtFile)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype != np.uint8 or fortran or len(shape) != 4:
        raise ValueError(f"images are {dtype} {shape}, expected bytes (images, {PIXELS}, {PIXELS}, 3)")
    return stream, shape


def _by_length(path: Path, n_images: int) -> Literal["full", "challenge"]:
    for grid in ("full", "challenge"):
        if n_images == SPACES[grid].n_cells:
            return grid
    known = " or ".join(f"{space.n_cells} ({grid})" for grid, space in SPACES.items())
    raise ValueError(f"{path} holds {n_images} images; MPI3D has {known}. Replace it by a good copy.")
