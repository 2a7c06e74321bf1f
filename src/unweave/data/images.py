"""The user's own images: a folder of image files, or one npz, npy, HDF5 or idx file, with or without labels."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from unweave.config import number, word
from unweave.data.cells import NUMBER, as_column, ranks
from unweave.data.files import Progress, converted, data_folder, reading
from unweave.data.image_sources import ARRAYS, checked, content_digest, image_files, read_array, read_labels
from unweave.data.labels_csv import read_labels_csv
from unweave.data.mnist import read_idx
from unweave.data.world import Card, Data, World
from unweave.files import require_file

Colour = Literal["auto", "grey", "rgb"]
Labels = tuple[tuple[str, ...], np.ndarray]

GREY = {"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"}
LUMA = (0.299, 0.587, 0.114)
"""Grey from red, green and blue (ITU-R 601)."""


@dataclass(frozen=True)
class Images(World):
    """Any images. ``size`` cuts the central square and brings it to that many pixels by Lanczos.

    ``key`` names the array of images in an npz or HDF5 file. ``labels`` names the labels: an array in the same file, a
    file beside it (csv, npy or idx), or ``none``; left out, the usual names, a labels.csv and sub-folders are tried.
    ``digest`` is the hash of the contents that :meth:`resolve` fills in, so that other data are another run.
    """

    name: ClassVar[str] = "images"
    path: str = ""
    size: int | None = number(None, least=1, most=4096, help="pixels of the central square; else the images' own")
    colour: Colour = "auto"
    key: str | None = None
    labels: str | None = None
    digest: str = word("", "0123456789abcdef", help="of the contents; filled in by itself")

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be at least 1 pixel, not {self.size}")
        if self.colour not in ("auto", "grey", "rgb"):
            raise ValueError(f"colour must be auto, grey or rgb, not {self.colour!r}")

    def card(self) -> Card:
        known, here = self.size or 0, bool(self.path) and Path(self.path).expanduser().exists()
        shape = (1 if self.colour == "grey" else 3, known, known)
        get = "give the path of a folder of images, or of an npz, npy, HDF5 or idx file, as path"
        note = "sizes are known once the images have been read"
        return Card("Your own images", shape, None, None, here, get, note)

    def resolve(self) -> World:
        if self.digest and self.colour != "auto":
            return self
        digest = self.digest or content_digest(self._sources(), self._root())
        if not self.digest and self._count() < 2:
            raise ValueError(
                f"{self.path} holds a single image, and a model learns how images differ: give a folder or file of many"
            )
        colour: Colour = self.colour if self.colour != "auto" else self._own_colour()
        return replace(self, digest=digest, colour=colour)

    def load(self, progress: Progress | None = None) -> Data:
        found = content_digest(self._sources(), self._root())
        if self.digest and found != self.digest:
            raise ValueError(
                f"{self.path} has changed: its contents hash to {found[:12]}…, the config says {self.digest[:12]}…."
                " Bring the old contents back, or start a new run without digest."
            )
        colour = self.colour if self.colour != "auto" else self._own_colour()
        images = self._from_folder(colour, found, progress) if self._root().is_dir() else self._from_file(colour)
        packing: Any = "floats" if images.dtype == np.float32 else "bytes"
        names, labels = self._labels(len(images))
        tensor = torch.from_numpy(labels) if names else None
        return Data(torch.from_numpy(images), images.shape[1:], packing, labels=tensor, label_names=names)

    def _root(self) -> Path:
        path = Path(self.path).expanduser()
        if not self.path or not path.exists():
            raise FileNotFoundError(f"images needs the path of a folder or file; {self.path!r} is not there")
        if path.is_dir():
            return path
        require_file(path, "a folder of images, or a .npz, .npy, .h5 or idx file")
        if not path.name.endswith(ARRAYS):
            raise ValueError(f"{path} is none of a folder, .npz, .npy, .h5 or idx file")
        return path

    def _sources(self) -> list[Path]:
        root = self._root()
        beside = self._beside()
        return (image_files(root) if root.is_dir() else [root]) + ([beside] if beside else [])

    def _beside(self) -> Path | None:
        """The file of labels beside the images, where there is one."""
        root = self._root()
        folder = root if root.is_dir() else root.parent
        usual = "labels.csv" if root.is_dir() else root.name.replace("images-idx3", "labels-idx1")
        named = self.labels is not None and self.labels != "none"
        if named and root.suffix in (".npz", ".h5", ".hdf5"):
            return None
        place = folder / (str(self.labels) if named else usual)
        if named and not place.exists():
            raise FileNotFoundError(f"the labels {self.labels} are not in {folder}")
        there = self.labels != "none" and place != root and place.exists()
        return require_file(place, "a file of labels") if there else None

    def _count(self) -> int:
        root = self._root()
        return len(image_files(root)) if root.is_dir() else len(checked(read_array(root, self.key), root))

    def _own_colour(self) -> Literal["grey", "rgb"]:
        root = self._root()
        if root.is_dir():
            return "grey" if all(_mode(path) in GREY for path in image_files(root)) else "rgb"
        return "grey" if checked(read_array(root, self.key)[:1], root).shape[1] == 1 else "rgb"

    def _from_file(self, colour: str) -> np.ndarray:
        root = self._root()
        images = _coloured(checked(read_array(root, self.key), root), colour)
        return images if self.size is None else np.stack([_square(image, self.size) for image in images])

    def _from_folder(self, colour: str, digest: str, progress: Progress | None) -> np.ndarray:
        root = self._root()
        files = image_files(root)
        first = self._read(files[0], colour)
        cache = data_folder() / self.name / f"{digest[:32]}-{self.size or 'own'}-{colour}.npy"

        def fill(array: np.ndarray) -> None:
            for row, path in enumerate(files):
                image = self._read(path, colour)
                if image.shape != first.shape:
                    sizes = [f"{shape[2]}×{shape[1]}" for shape in (first.shape, image.shape)]
                    raise ValueError(f"{files[0]} is {sizes[0]} pixels but {path} is {sizes[1]}: give a size for all")
                array[row] = image
                if progress and row % 500 == 0:
                    progress(f"reading {root.name}", row, len(files))

        return converted(cache, (len(files), *first.shape), fill, progress)

    def _read(self, path: Path, colour: str) -> np.ndarray:
        image = _coloured(_decoded(path)[None], colour)[0]
        return image if self.size is None else _square(image, self.size)

    def _labels(self, n_images: int) -> Labels:
        root, beside = self._root(), self._beside()
        if self.labels == "none":
            return (), np.empty((n_images, 0))
        if root.is_dir():
            files = [path.relative_to(root) for path in image_files(root)]
            return _from_csv(beside, files) if beside else _from_folders(files)
        if root.suffix in (".npz", ".h5", ".hdf5"):
            found = read_labels(root, self.labels)
            return ((), np.empty((n_images, 0))) if found is None else _columns(found[0], found[1], n_images, root)
        if beside is None:
            return (), np.empty((n_images, 0))
        values = read_array(beside, None) if beside.suffix == ".npy" else read_idx(beside)
        return _columns("label", values, n_images, beside)


def _mode(path: Path) -> str:
    from PIL import Image

    with reading(path, "an image"), Image.open(path) as image:
        return image.mode


def _decoded(path: Path) -> np.ndarray:
    """An image file as bytes [channel, height, width]; see-through parts are black, 16 bits are rounded to 8."""
    from PIL import Image, ImageOps

    with reading(path, "an image"), Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):
            return np.rint(np.asarray(upright, dtype=np.float64)[None] / 257).clip(0, 255).astype(np.uint8)
        if upright.mode == "F":
            raise ValueError("it holds floating-point pixels: save it as bytes, or give the images as .npy")
        if upright.mode in GREY and upright.mode in ("1", "L"):
            return np.asarray(upright.convert("L"))[None]
        rgba = upright.convert("RGBA")
        solid = np.asarray(Image.alpha_composite(Image.new("RGBA", rgba.size, "black"), rgba).convert("RGB"))
        return np.moveaxis(solid, -1, 0) if upright.mode not in GREY else solid[None, :, :, 0]


def _coloured(images: np.ndarray, colour: str) -> np.ndarray:
    n_channels = images.shape[1]
    if n_channels == (1 if colour == "grey" else 3):
        return images
    if colour == "rgb":
        return np.repeat(images, 3, axis=1)
    grey = np.tensordot(images, np.array(LUMA, np.float32), axes=(1, 0))[:, None]
    return np.rint(grey).astype(np.uint8) if images.dtype == np.uint8 else grey.astype(np.float32).clip(0, 1)


def _square(image: np.ndarray, size: int) -> np.ndarray:
    """The central square of [channel, height, width] at ``size`` pixels."""
    from PIL import Image

    height, width = image.shape[1:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    cut = np.ascontiguousarray(image[:, top : top + side, left : left + side])
    resized = [Image.fromarray(plane).resize((size, size), Image.Resampling.LANCZOS) for plane in cut]
    planes = np.stack([np.asarray(plane) for plane in resized])
    # Lanczos overshoots at edges; bytes are clipped by Pillow itself
    return planes if image.dtype == np.uint8 else planes.clip(0, 1)


def _from_folders(files: list[Path]) -> Labels:
    folders = [file.parent.as_posix() for file in files]
    if set(folders) == {"."}:
        return (), np.empty((len(files), 0))
    numbers = {name: float(name) for name in set(folders) if NUMBER.fullmatch(name)}
    if len(numbers) < len(set(folders)):
        # numbers by their size, then words by the alphabet
        order = sorted(set(folders), key=lambda name: (name not in numbers, numbers.get(name, 0.0), name))
        return ("folder",), np.array([order.index(name) for name in folders], dtype=np.int64)[:, None]
    return ("folder",), _packed(as_column(folders, lambda row: f"the folder of {files[row]}"))[:, None]


def _from_csv(path: Path, files: list[Path]) -> Labels:
    columns = read_labels_csv(path, [file.as_posix() for file in files])
    return tuple(columns), np.stack([_packed(column) for column in columns.values()], axis=1)


def _columns(name: str, values: np.ndarray, n_images: int, path: Path) -> Labels:
    if values.ndim not in (1, 2) or len(values) != n_images:
        raise ValueError(f"{path}: the labels {name} have the shape {values.shape}, but there are {n_images} images")
    if values.ndim == 1:
        return (name,), _packed(as_column(values, lambda row: f"{path}: the label of image {row}"))[:, None]
    names = tuple(f"{name}_{place}" for place in range(values.shape[1]))
    columns = [
        as_column(column, lambda row, place=place: f"{path}: column {place} of the label of image {row}")  # type: ignore[misc]
        for place, column in enumerate(values.T)
    ]
    return names, np.stack([_packed(column) for column in columns], axis=1)


def _packed(column: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, others as float32 where that tells them apart, words by their place in the alphabet."""
    if column.dtype.kind == "U":
        return ranks(column)
    if column.dtype.kind == "i":
        return column
    with np.errstate(over="ignore"):
        short = column.astype(np.float32)
    kept = np.isfinite(short).all() and len(np.unique(short)) == len(np.unique(column))
    return short if kept else column
