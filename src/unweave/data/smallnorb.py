"""SmallNORB (LeCun, Huang and Bottou, 2004): fifty toys in five categories, left camera, 96 pixels brought to 64."""

import gzip
import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

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
from unweave.data.resize import lanczos
from unweave.data.world import Card, Data

SPACE = FactorSpace(
    (
        Factor("category", 5, "categorical"),
        # ten toys a category stand for it: they vary, but are not a factor of their own
        Factor("instance", 10, "categorical", hidden=True),
        Factor("elevation", 9),
        Factor("azimuth", 18, "cyclic"),
        Factor("lighting", 6, "categorical"),
    )
)
PIXELS = 64

ADDRESS = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
PARTS = ("smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing")
KINDS = ("dat", "cat", "info")
# not given by the authors; sizes and values as TensorFlow Datasets records them
CHECKSUMS = (
    (131_896_188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    (348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    (71_052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    (130_799_817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    (347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    (10_428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
)
PUBLISHED = tuple(
    Published(f"{part}-{kind}.mat.gz", f"{ADDRESS}{part}-{kind}.mat.gz", f"sha256:{checksum}", n_bytes)
    for (part, kind), (n_bytes, checksum) in zip(((p, k) for p in PARTS for k in KINDS), CHECKSUMS)
)

NUMBERS = {
    0x1E3D4C51: "<f4",
    0x1E3D4C53: "<f8",
    0x1E3D4C54: "<i4",
    0x1E3D4C55: "u1",
    0x1E3D4C56: "<i2",
}
"""The first word of a binary matrix file tells what numbers it holds."""


@dataclass(frozen=True)
class SmallNORB(FactorWorld):
    """Grey toys, 48,600 images: the training and the testing file together are the whole grid."""

    name: ClassVar[str] = "smallnorb"

    def files(self) -> tuple[Published, ...]:
        return PUBLISHED

    def card(self) -> Card:
        on_disk = _cache().exists() or all(_found(file) is not None for file in PUBLISHED)
        get = how_to_get(self.name, PUBLISHED) + "; unzipped .mat files are read as well"
        note = "instance varies within every category and is not scored"
        return Card("SmallNORB", (1, PIXELS, PIXELS), SPACE.n_cells, SPACE, on_disk, get, note)

    def load(self, progress: Progress | None = None) -> Data:
        shape = (SPACE.n_cells, 1, PIXELS, PIXELS)
        images = converted(_cache(), shape, lambda array: _convert(array, progress), progress)
        return self.weighted(Data(torch.from_numpy(images), shape=shape[1:], space=SPACE))


def read_matrix(path: Path) -> np.ndarray:
    """A binary matrix: magic, number of axes, at least three sizes, then the numbers, all little-endian."""
    with reading(path, "a NORB binary matrix"):
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read()
        magic, n_axes = np.frombuffer(content, "<u4", count=2).tolist()
        if magic not in NUMBERS or not 1 <= n_axes <= 8:
            raise ValueError(f"it begins with {magic:#x} and {n_axes} axes, not with a known magic number")
        sizes = np.frombuffer(content, "<i4", count=max(3, n_axes), offset=8).tolist()
        numbers = np.frombuffer(content, NUMBERS[magic], offset=8 + 4 * len(sizes))
        if len(numbers) != math.prod(sizes[:n_axes]):
            raise ValueError(f"it holds {len(numbers)} numbers, its header promises {sizes[:n_axes]}")
        return numbers.reshape(sizes[:n_axes])


def _cache() -> Path:
    return data_folder() / SmallNORB.name / "images.npy"


def _found(file: Published) -> Path | None:
    path = place_of(SmallNORB.name, file)
    return next((place for place in (path, path.with_suffix("")) if place.exists()), None)


def _convert(array: np.ndarray, progress: Progress | None) -> None:
    filled = np.zeros(len(array), dtype=np.int64)
    for part in (PUBLISHED[:3], PUBLISHED[3:]):
        paths = [_found(file) or require(SmallNORB.name, file) for file in part]
        for path, file in zip(paths, part):
            if path.name == file.file:
                verify(path, file, progress)
        images, category, info = (read_matrix(path) for path in paths)
        rows = _rows(images, category, info, paths)
        filled[rows] += 1
        _resize(array, images, rows, progress)
    if (filled != 1).any():
        raise ValueError(
            f"{_cache().parent}: the two parts of SmallNORB leave {int((filled == 0).sum())} cells of the factor grid"
            f" empty and fill {int((filled > 1).sum())} twice. Fetch both parts again."
        )


def _rows(images: np.ndarray, category: np.ndarray, info: np.ndarray, paths: list[Path]) -> np.ndarray:
    if images.ndim != 4 or images.shape[1] != 2 or images.dtype != np.uint8:
        raise ValueError(f"{paths[0]} holds {images.dtype} {images.shape}, expected uint8 (images, 2 cameras, 96, 96)")
    if category.shape != (len(images),) or info.shape != (len(images), 4):
        raise ValueError(f"{paths[2]} and its neighbours disagree: {images.shape}, {category.shape}, {info.shape}")
    coordinates = np.column_stack([category, info]).astype(np.int64)
    # azimuths are written in tens of degrees, 0, 2, …, 34
    coordinates[:, 3] //= 2
    with reading(paths[2], "the factors of SmallNORB"):
        return SPACE.rows(torch.from_numpy(coordinates)).numpy()


def _resize(array: np.ndarray, images: np.ndarray, rows: np.ndarray, progress: Progress | None) -> None:
    for start in range(0, len(images), 1000):
        block = slice(start, start + 1000)
        array[rows[block], 0] = lanczos(images[block, 0], PIXELS, PIXELS)
        if progress:
            progress("converting SmallNORB", min(start + 1000, len(images)), len(images))
