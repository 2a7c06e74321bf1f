"""Cars3D (Reed et al., 2015): 183 cars, each seen from four elevations and 24 azimuths."""

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np
import torch

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import (
    Progress,
    Published,
    absent,
    converted,
    data_folder,
    how_to_get,
    open_npz,
    place_of,
    reading,
    verify,
)
from unweave.data.resize import lanczos
from unweave.data.world import Card, Data

SPACE = FactorSpace((Factor("elevation", 4), Factor("azimuth", 24, "cyclic"), Factor("object", 183, "categorical")))
PIXELS = 64

PUBLISHED = Published(
    file="nips2015-analogy-data.tar.gz",
    address="http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
    # not given by its authors; the value that the disent and latte packages record
    checksum="md5:4e866a7919c1beedf53964e6f7a23686",
    by_hand=True,  # there is no https address of it, and neither its sha256 nor its size is known
)

RESIZED = Published(file="cars3d_64.npz", address="")
"""The same images already at 64 pixels: ``images`` uint8 [17568, 64, 64, 3] in the order of the factors."""


@dataclass(frozen=True)
class Cars3D(FactorWorld):
    """Cars on white, 17,568 images, 128 pixels in the archive and 64 here (Lanczos). Objects are in order of name."""

    name: ClassVar[str] = "cars3d"

    def files(self) -> tuple[Published, ...]:
        return (PUBLISHED,)

    def card(self) -> Card:
        places = (_cache(), place_of(self.name, PUBLISHED), place_of(self.name, RESIZED))
        get = how_to_get(self.name, self.files()) + f"\nor put {RESIZED.file} at {places[2]}"
        note = "no licence is stated: for research, not to be passed on"
        return Card("Cars3D", (3, PIXELS, PIXELS), SPACE.n_cells, SPACE, any(p.exists() for p in places), get, note)

    def load(self, progress: Progress | None = None) -> Data:
        shape = (SPACE.n_cells, 3, PIXELS, PIXELS)
        images = converted(_cache(), shape, lambda array: _convert(array, progress), progress)
        return self.weighted(Data(torch.from_numpy(images), shape=shape[1:], space=SPACE))


def _cache() -> Path:
    return data_folder() / Cars3D.name / "images.npy"


def _convert(array: np.ndarray, progress: Progress | None) -> None:
    archive, resized = place_of(Cars3D.name, PUBLISHED), place_of(Cars3D.name, RESIZED)
    if archive.exists():
        verify(archive, PUBLISHED, progress)
        with reading(archive, "the Cars3D archive (tar of .mat files)"):
            _from_archive(array, archive, progress)
    elif resized.exists():
        _from_npz(array, resized)
    else:
        raise absent(Cars3D.name, (PUBLISHED,))


def _from_archive(array: np.ndarray, path: Path, progress: Progress | None) -> None:
    """One .mat file is one car: ``im`` [height, width, channel, azimuth, elevation]."""
    elevations, azimuths, objects = (axis.size for axis in SPACE.axes)
    cars = {}
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.suffix == ".mat" and name.parent.name == "cars" and member.isfile():
                cars[name.name] = _car(archive, member)
                if progress:
                    progress("converting Cars3D", len(cars), objects)
    if len(cars) != objects:
        raise ValueError(f"it holds {len(cars)} cars, expected {objects} files cars/*.mat")
    grid = array.reshape(elevations, azimuths, objects, 3, PIXELS, PIXELS)
    # in order of name: the reference implementation took whatever order the directory listing gave
    for place, file in enumerate(sorted(cars)):
        grid[:, :, place] = cars[file]


def _car(archive: tarfile.TarFile, member: tarfile.TarInfo) -> np.ndarray:
    from scipy.io import loadmat

    file = archive.extractfile(member)
    assert file is not None
    try:
        images = loadmat(io.BytesIO(file.read()), variable_names=["im"])["im"]
    except (ValueError, TypeError, KeyError, OSError, NotImplementedError) as error:
        raise ValueError(f"{member.name} in it is not a whole .mat file with im ({error})") from error
    elevations, azimuths, _ = (axis.size for axis in SPACE.axes)
    if images.ndim != 5 or images.shape[2:] != (3, azimuths, elevations) or images.dtype != np.uint8:
        raise ValueError(
            f"{member.name} in it holds {images.dtype} {images.shape}, expected uint8 (128, 128, 3, 24, 4)"
        )
    views = images.transpose(4, 3, 0, 1, 2).reshape(-1, *images.shape[:3])
    small = lanczos(views, PIXELS, PIXELS).reshape(elevations, azimuths, PIXELS, PIXELS, 3)
    return np.moveaxis(small, -1, 2)


def _from_npz(array: np.ndarray, path: Path) -> None:
    with open_npz(path, "resized Cars3D (npz)") as file:
        images = file["images"]
        expected = (len(array), PIXELS, PIXELS, 3)
        if images.shape != expected or images.dtype != np.uint8:
            raise ValueError(f"images are {images.dtype} {images.shape}, expected uint8 {expected}")
    array[:] = np.moveaxis(images, -1, 1)
