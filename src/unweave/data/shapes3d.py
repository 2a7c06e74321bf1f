"""Shapes3D (Burgess and Kim, 2018): the published file, and an imitation of it for machines that lack the file.

The imitation shares the factor grid, not the pixels. It has its own name, so that a result always says which it is.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import (
    Progress,
    Published,
    cached_array,
    converted,
    data_folder,
    how_to_get,
    place_of,
    reading,
    require,
    verify,
)
from unweave.data.procedural.shapes3d import N_PLANES, N_VIEWS, PIXELS, SIZES, Recoloured, render_views
from unweave.data.world import Card, Data

SPACE = FactorSpace(
    (
        Factor("floor_hue", SIZES[0], "cyclic"),
        Factor("wall_hue", SIZES[1], "cyclic"),
        Factor("object_hue", SIZES[2], "cyclic"),
        Factor("scale", SIZES[3]),
        Factor("shape", SIZES[4], "categorical"),
        Factor("orientation", SIZES[5]),
    )
)

PUBLISHED = Published(
    file="3dshapes.h5",
    address="https://storage.googleapis.com/3d-shapes/3dshapes.h5",
    # not given by its authors; size and value as TensorFlow Datasets records them
    checksum="sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
    n_bytes=267_573_662,
)

RENDERING = 1
"""Part of the cached file's name: raise it whenever the renderer's images change."""

BLOCK = 4_000


@dataclass(frozen=True)
class Shapes3D(FactorWorld):
    """A solid in a coloured room, 480,000 images."""

    name: ClassVar[str] = "shapes3d"

    def files(self) -> tuple[Published, ...]:
        return (PUBLISHED,)

    def card(self) -> Card:
        on_disk = _cache().exists() or place_of(self.name, PUBLISHED).exists()
        get = how_to_get(self.name, self.files())
        return Card("Shapes3D", (3, PIXELS, PIXELS), SPACE.n_cells, SPACE, on_disk, get, "converted once to 5.9 GB")

    def load(self, progress: Progress | None = None) -> Data:
        shape = (SPACE.n_cells, 3, PIXELS, PIXELS)
        images = converted(_cache(), shape, lambda array: _convert(array, progress), progress)
        return self.weighted(Data(torch.from_numpy(images), shape=shape[1:], space=SPACE))


@dataclass(frozen=True)
class Shapes3DLike(FactorWorld):
    """An imitation of Shapes3D, ray cast here: the same factors, other pixels."""

    name: ClassVar[str] = "shapes3d_like"

    def card(self) -> Card:
        note = "an imitation: results on it are not results on Shapes3D"
        get = "nothing to fetch: rendered here once, in about ten seconds"
        title = "Shapes3D-like (an imitation of Shapes3D)"
        return Card(title, (3, PIXELS, PIXELS), SPACE.n_cells, SPACE, True, get, note)

    def load(self, progress: Progress | None = None) -> Data:
        path = data_folder() / self.name / f"views-{RENDERING}.npy"
        views = cached_array(path, render_views, progress)
        if views.shape != (N_VIEWS, N_PLANES, PIXELS, PIXELS) or views.dtype != np.uint8:
            raise ValueError(f"{path} holds an array {views.shape}, not the views of this world. Delete it to rebuild.")
        data = Data(parts(), (3, PIXELS, PIXELS), "parts", SPACE, composition=Recoloured.of(views))
        return self.weighted(data)


def parts() -> torch.Tensor:
    """Row to (view, floor hue, wall hue, object hue), int16."""
    floor, wall, thing, *_ = SIZES
    hues, view = torch.arange(floor * wall * thing), torch.arange(N_VIEWS)
    columns = (hues // (wall * thing), hues // thing % wall, hues % thing)
    repeated = [column.to(torch.int16).repeat_interleave(N_VIEWS) for column in columns]
    return torch.stack([view.to(torch.int16).repeat(len(hues)), *repeated], dim=1)


def _cache() -> Path:
    return data_folder() / Shapes3D.name / "images.npy"


def _convert(array: np.ndarray, progress: Progress | None) -> None:
    import h5py

    path = require(Shapes3D.name, PUBLISHED)
    verify(path, PUBLISHED, progress)
    with reading(path, "the Shapes3D file (HDF5 with images and labels)"), h5py.File(path, "r") as file:
        images = file["images"]
        if images.shape != (len(array), PIXELS, PIXELS, 3) or images.dtype != np.uint8:
            raise ValueError(f"images are {images.dtype} {images.shape}, expected {(len(array), PIXELS, PIXELS, 3)}")
        _check_order(file["labels"][:])
        for start in range(0, len(array), BLOCK):
            block: Any = images[start : start + BLOCK]
            array[start : start + BLOCK] = np.moveaxis(block, -1, 1)
            if progress:
                progress("converting Shapes3D", min(start + BLOCK, len(array)), len(array))


def _check_order(labels: np.ndarray) -> None:
    """The rows must run through the grid with the last factor fastest: everything here relies on it."""
    expected = SPACE.coordinates(torch.arange(SPACE.n_cells)).numpy()
    if labels.shape != expected.shape:
        raise ValueError(f"labels have the shape {labels.shape}, expected {expected.shape}")
    for place, axis in enumerate(SPACE.axes):
        values, found = np.unique(labels[:, place], return_inverse=True)
        if len(values) != axis.size or not np.array_equal(found, expected[:, place]):
            raise ValueError(f"the labels of {axis.name} do not run through the factor grid in order")
