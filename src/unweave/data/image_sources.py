"""Where a user's images come from: a folder of image files, or one npz, npy, HDF5 or idx file.

Whatever is not an image in [0, 1] or in bytes is refused by file and place, before any training starts.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unweave.data.files import open_npz, reading
from unweave.data.mnist import read_idx
from unweave.files import digest, require_file

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
MEMBERS = (".npz", ".h5", ".hdf5")
"""Files of several arrays, each under its name."""

ARRAYS = (".npz", ".npy", ".h5", ".hdf5", ".gz", "-ubyte", ".idx")
IMAGE_KEYS = ("images", "imgs", "x", "x_train", "data", "image")
LABEL_KEYS = ("labels", "y", "factors", "y_train", "latents_classes", "label")


def image_files(folder: Path) -> list[Path]:
    """The image files in a folder and below it, in order of their names."""
    visible = [path for path in _visible(folder) if path.suffix.lower() in SUFFIXES]
    if not visible:
        raise ValueError(f"{folder} holds no image file ({', '.join(SUFFIXES)})")
    in_order = sorted(visible, key=lambda path: path.relative_to(folder).as_posix())
    return [require_file(path, "an image") for path in in_order]


def other_files(folder: Path) -> list[Path]:
    """What else lies there."""
    return [path for path in _visible(folder) if path.suffix.lower() not in SUFFIXES]


def _visible(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if not path.is_dir() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def content_digest(paths: list[Path], root: Path) -> str:
    """A hash of names, sizes and contents: it changes when any file does, is added, removed or renamed."""
    summed = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        summed.update(f"{name}\n{path.stat().st_size}\n{digest(path)}\n".encode())
    return summed.hexdigest()


def read_array(path: Path, key: str | None) -> np.ndarray:
    """The array of images in a file."""
    if path.suffix == ".npy":
        with reading(path, "an array of images (npy)"):
            return np.load(path, mmap_mode="c", allow_pickle=False)
    if path.suffix in MEMBERS:
        with members(path) as file:
            return np.asarray(file[_key(path, list(file), key, IMAGE_KEYS, "images")])
    return read_idx(path)


def read_labels(path: Path, key: str | None) -> tuple[str, np.ndarray] | None:
    """The labels in the same npz or HDF5 file, under the given key or a usual one; None where there are none."""
    with members(path) as file:
        names = list(file)
        if key is None and not any(name in names for name in LABEL_KEYS):
            return None
        found = _key(path, names, key, LABEL_KEYS, "labels")
        values = file[found]
        # variable-length text comes out of HDF5 as objects, which asstr() decodes
        return found, np.asarray(values.asstr()[:] if hasattr(values, "asstr") and values.dtype == object else values)


def read_member(path: Path, name: str) -> np.ndarray:
    """The array of this name in an npz or HDF5 file."""
    with members(path) as file:
        return np.asarray(file[_key(path, list(file), name, (), "it")])


def member_names(path: Path) -> list[str]:
    """The names of all arrays in an npz or HDF5 file."""
    with members(path) as file:
        return list(file)


@contextmanager
def members(path: Path) -> Iterator[Any]:
    """The named arrays of an npz or HDF5 file."""
    if path.suffix == ".npz":
        with open_npz(path, "an npz file of arrays") as file:
            yield file
    else:
        import h5py

        with reading(path, "an HDF5 file"), h5py.File(path, "r") as file:
            yield file


def checked(images: np.ndarray, path: Path) -> np.ndarray:
    """Images as [sample, channel, height, width], bytes or float32 in [0, 1], or an error that names the place."""
    images = _channels_first(images, path)
    if images.dtype == np.bool_:
        return images.astype(np.uint8) * np.uint8(255)
    if np.issubdtype(images.dtype, np.integer):
        return _checked_integers(images, path)
    if not np.issubdtype(images.dtype, np.floating):
        raise ValueError(f"{path} holds {images.dtype}, not images: bytes, or floats in [0, 1], are wanted")
    _check_floats(images, path)
    return images.astype(np.float32, copy=False)


def _key(path: Path, names: list[str], wanted: str | None, usual: tuple[str, ...], what: str) -> str:
    if wanted is not None and wanted not in names:
        raise ValueError(f"{path} has no array {wanted!r}; it has {', '.join(names)}")
    found = wanted or next((name for name in usual if name in names), None)
    if found is None and len(names) == 1:
        found = names[0]
    if found is None:
        option = "key" if what == "images" else "labels"
        raise ValueError(
            f"{path} has no array named like {what} ({', '.join(usual)}); say which of {', '.join(names)} it is,"
            f' --world.{option} {names[0]} (in Python {option}="{names[0]}")'
        )
    return found


def _channels_first(images: np.ndarray, path: Path) -> np.ndarray:
    if images.ndim == 3 and 0 not in images.shape:
        return images[:, None]
    if images.ndim == 4 and 0 not in images.shape:
        if images.shape[-1] in (1, 3):
            return np.moveaxis(images, -1, 1)
        if images.shape[1] in (1, 3):
            return images
    hint = "; a table is (row, column)" if images.ndim == 1 else ""
    if images.ndim == 4 and images.shape[-1] == 4:
        hint = "; leave out the fourth channel, which says what is see-through"
    raise ValueError(
        f"{path} holds an array {images.shape}; images are (sample, height, width), (sample, height, width, channel) or"
        f" (sample, channel, height, width), with 1 or 3 channels; with a time axis they need sequences=true{hint}"
    )


def _checked_integers(images: np.ndarray, path: Path) -> np.ndarray:
    if images.dtype != np.uint8:
        _refuse_first((images < 0) | (images > 255), images, path, "[0, 255]")
    # a mask of zeros and ones is black and white, not nearly black
    scale = np.uint8(255 if images.max() == 1 else 1)
    if scale == 1 and images.dtype == np.uint8:
        return images
    return images.astype(np.uint8) * scale


def _check_floats(images: np.ndarray, path: Path) -> None:
    for start in range(0, len(images), 1000):
        block = images[start : start + 1000]
        # written so that NaN counts as outside
        _refuse_first(~((block >= 0) & (block <= 1)), block, path, "[0, 1]", start)


def _refuse_first(outside: np.ndarray, images: np.ndarray, path: Path, allowed: str, start: int = 0) -> None:
    if not outside.any():
        return
    image, channel, row, column = np.argwhere(outside)[0].tolist()
    value = images[image, channel, row, column]
    at = f"image {start + image}, " + (f"channel {channel}, " if images.shape[1] > 1 else "") + f"row {row}"
    hint = " Divide bytes by 255 first." if allowed == "[0, 1]" and 1 < value <= 255 else ""
    if allowed == "[0, 255]" and 255 < value <= 65535:
        hint = " Round 16 bits to bytes first: (images // 257).astype(np.uint8)."
    raise ValueError(f"{path}: {at}, column {column}: {value:g} lies outside {allowed}.{hint}")
