"""The user's own images: a folder of image files, or one npz, npy, HDF5 or idx file, with labels and pairs if any."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from unweave.config import later, noted, number, text, word
from unweave.data.cells import NUMBER, as_column, packed
from unweave.data.files import Progress, converted, data_folder
from unweave.data.image_sources import (
    ARRAYS,
    MEMBERS,
    checked,
    content_digest,
    image_files,
    member_names,
    other_files,
    read_array,
    read_labels,
    read_member,
)
from unweave.data.kept_images import KeptImages, Known
from unweave.data.labels_csv import read_labels_csv
from unweave.data.mnist import read_idx
from unweave.data.pairs_csv import checked_pairs, read_pairs_csv
from unweave.data.pixels import GREY, Fit, coloured, decoded, fitted, mode, size_of
from unweave.data.sequences import Sequences, by_axis, by_folder, frames_of, segments_of, sequence_pairs
from unweave.data.world import Card, Data, World
from unweave.files import require_file
from unweave.words import number_of

Colour = Literal["auto", "grey", "rgb"]
BESIDE = (".csv", ".npz", ".npy", "-ubyte", ".idx", ".gz")
"""How files of labels end."""
Labels = tuple[tuple[str, ...], np.ndarray]


@dataclass(frozen=True)
class Images(World):
    """Any images. ``size`` brings all to so many pixels by Lanczos: squares, unless a ``height`` is given.

    ``fit`` says how: by cutting out the middle, by adding black, or by stretching.

    ``key`` names the array of images in an npz or HDF5 file. ``labels`` names the labels: an array in the same file, a
    file beside it (csv, npz, npy or idx), or ``none``; left out, the usual names, a labels.csv and sub-folders are
    tried. ``digest`` is the hash of the contents that :meth:`resolve` fills in, so that other data are another run.
    What is see-through is shown on black, 16 bits are rounded to 8, and photographs are turned upright as their cameras
    say.

    The pictures of a folder are kept in the data folder as they were read, with their labels. So a run still opens when
    its folder has grown, changed or gone.

    ``sequences`` says that each sub-folder, or the first axis of an array, is a sequence in time: a frame and one of
    the next ``furthest`` are a pair, and ``segments`` cuts the time of each into so many parts, of which methods with
    labels are told.
    ``pairs`` names a csv file of pairs beside the images, or an array of pairs of rows in the same npz or HDF5 file.
    """

    name: ClassVar[str] = "images"
    path: str = text("", "a folder of images, or a npz, npy, HDF5 or idx file")
    size: int | None = number(None, least=1, most=4096, help="pixels across; else the images' own size, one for all")
    colour: Colour = text("auto", "grey, rgb, or auto: grey where all images are")
    key: str | None = text(None, "the array of images in an npz or HDF5 file, where it has no usual name")
    labels: str | None = text(None, "an array in the same file, a csv, npz, npy or idx file beside it, or none")
    digest: str = word("", "0123456789abcdef", help="of the contents; filled in by itself")
    sequences: bool = later(False, help="sub-folders, or the first axis of an array, are sequences of frames")
    furthest: int = later(1, least=1, most=1000, help="frames between the two of a pair, at most")
    segments: int | None = later(None, least=1, most=1000, help="parts into which time is cut, for methods with labels")
    pairs: str | None = later(None, help="a csv file of pairs beside the images, or an array in the same file")
    height: int | None = later(None, least=1, most=4096, help="pixels down, where images of a size are no squares")
    fit: Fit = later(
        "crop", help="how images come to the size: crop cuts the middle out, pad adds black, stretch neither"
    )
    called: str = noted("", help="what tables and titles call the data; else the name of the folder or file")
    where: str = noted("", help="the full path; filled in by itself", hidden=True)
    found: tuple[int, ...] = noted(
        (), help="how many images, channels, rows and columns", hidden=True, least=0, most=10**12
    )

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be at least 1 pixel, not {self.size}")
        if self.colour not in ("auto", "grey", "rgb"):
            raise ValueError(f"colour must be auto, grey or rgb, not {self.colour!r}")
        if self.fit not in ("crop", "pad", "stretch"):
            raise ValueError(f"fit must be crop, pad or stretch, not {self.fit!r}")

    def card(self) -> Card:
        here = bool(self.path) and self._place().exists()
        n_images, *shape = self.found or (self._glance() if here else (0, 3, 0, 0))
        get = "give the path of a folder of images, or of an npz, npy, HDF5 or idx file, as path"
        note = "" if n_images else "sizes are known once the images have been read"
        title = (self.called or Path(self.path).stem) if self.path else "Your own images"
        labels, pairs = ("yours: labels.csv, sub-folders, an array",), "yours: sequences of frames, or a file of pairs"
        return Card(title, tuple(shape), n_images or None, None, here, get, note, labels, pairs, "yours: of sequences")

    def resolve(self) -> World:
        if self.digest and self.colour != "auto" and self.found:
            return self
        digest = self.digest or content_digest(self._sources(), self._root())
        array = self._array_of_file()
        if not self.digest and self._count(array) < 2:
            raise ValueError(
                f"{self.path} holds a single image, and a model learns how images differ: give a folder or file of many"
            )
        known = replace(self, digest=digest, colour=self._colour(array), where=str(self._root().absolute()))
        called = self.called or self._root().absolute().stem
        return replace(known, found=known._look(array), called=called, path=_plain_path(self.path))

    def near(self, folder: Path) -> World:
        """Where the images were, where the path says, or beside the run."""
        beside = folder.absolute().parent / self.path
        places = [place for place in (Path(self.where), Path(self.path).expanduser(), beside) if self.path]
        # a run may be called after its images
        there = [place for place in places if place.exists() and not (place / "SHA256SUMS").exists()]
        return replace(self, where=str(next(iter(there), self.where)))

    def sizes(self) -> list[tuple[int, int]]:
        """Width and height of the images of a folder before they come to ``size``, each once, the smallest first."""
        files = image_files(self._root()) if self._root().is_dir() else []
        return sorted({size_of(path) for path in files}, key=lambda size: (size[0] * size[1], size))

    def told(self, data: Data) -> str:
        """What was found, in a line."""
        height, width = data.shape[1:]
        kind = "grey" if data.shape[0] == 1 else "colour"
        labels = f"labels: {', '.join(data.label_names)}" if data.label_names else "no labels"
        fitted = "" if self.size is None else {"crop": ", cut", "pad": ", padded", "stretch": ", stretched"}[self.fit]
        found = f"{number_of(len(data), 'image')} of {width} × {height} pixels{fitted}, {kind}; {labels}"
        return f"{self.card().title}: {found}{self._passed_over()}"

    def _passed_over(self) -> str:
        """Files of the folder that are no images this library reads, by their endings."""
        root = self._place()
        others = Counter(path.suffix or "without an ending" for path in other_files(root)) if root.is_dir() else {}
        for file in (self._beside(), self._pairs_file()) if others else ():
            if file is not None and file.is_relative_to(root):
                others[file.suffix] -= 1
        told = [f"{n} {ending}" for ending, n in sorted(others.items()) if n > 0]
        return f"; not read: {', '.join(told)}" if told else ""

    def load(self, progress: Progress | None = None) -> Data:
        digest = content_digest(self._sources(), self._root()) if self._place().exists() else ""
        if self.digest and digest != self.digest:
            return _as_data(*self._kept(digest))
        if self._root().is_dir():
            colour = self._colour(None)
            images, sequences = self._from_folder(colour, digest, progress)
        else:
            array, sequences = self._array()
            colour = self._colour(array)
            images = self._from_file(array, colour)
        names, labels = self._labels(len(images), sequences)
        more = {"pairs": self._pairs(len(images), sequences), "segments": self._segments(sequences)}
        known = {name: array for name, array in more.items() if array is not None}
        known |= {"names": np.array(names), "labels": labels} if names else {}
        if self._root().is_dir():
            self._copy(digest, colour).keep(known)
        return _as_data(images, known)

    def _copy(self, digest: str, colour: str) -> KeptImages:
        size = "own" if self.size is None else f"{self.size}" if self.height is None else f"{self.size}x{self.height}"
        pictures = f"{digest[:32]}-{size}{'' if self.fit == 'crop' else f'-{self.fit}'}-{colour}"
        ways = repr((self.labels, self.sequences, self.furthest, self.segments, self.pairs))
        known = f"{pictures}-{hashlib.sha256(ways.encode()).hexdigest()[:8]}.npz"
        return KeptImages(data_folder() / self.name / f"{pictures}.npy", data_folder() / self.name / known)

    def _kept(self, digest: str) -> tuple[np.ndarray, Known]:
        """The images as they were when they were first read, where they were kept."""
        copy = self._copy(self.digest, self.colour)
        now = f"{self.path} has changed" if digest else f"{self.where or self.path} is not there any more"
        if (kept := copy.read()) is None:
            raise ValueError(
                f"{now}, and no copy of the {self._how_many()} that this run was trained on was kept. Its model can"
                " still be used on any images, with Run.encode and Run.decode; to measure it, bring the old ones back"
            )
        warnings.warn(f"{now}; going on with the {self._how_many()} that were kept in {copy.pictures}", stacklevel=2)
        return kept

    def _how_many(self) -> str:
        return number_of(self.found[0], "image") if self.found else "images"

    def _glance(self) -> tuple[int, ...]:
        """The same for a card, which refuses nothing."""
        try:
            return self._look(self._array_of_file())
        except (ValueError, OSError):
            return 0, 3, 0, 0

    def _look(self, array: np.ndarray | None) -> tuple[int, ...]:
        """How many images, and the shape of the first."""
        root, colour = self._root(), self._colour(array)
        if array is None:
            files = image_files(root)
            return len(files), *self._read(files[0], colour).shape
        first = coloured(checked(array[:1], root), colour)[0]
        return len(array), *(first if self.size is None else self._fitted(first)).shape

    def _fitted(self, image: np.ndarray) -> np.ndarray:
        assert self.size is not None
        return fitted(image, self.size, self.height or self.size, self.fit)

    def _place(self) -> Path:
        given = Path(self.path).expanduser()
        return Path(self.where) if self.where and (Path(self.where).exists() or not given.exists()) else given

    def _root(self) -> Path:
        path = self._place()
        if not self.path or not path.exists():
            raise FileNotFoundError(f"images needs the path of a folder or file; {self.path!r} is not there")
        if path.is_dir():
            return path
        require_file(path, "a folder of images, or a .npz, .npy, .h5 or idx file")
        if not path.name.endswith(ARRAYS):
            raise ValueError(f"{path} is none of a folder, .npz, .npy, .h5 or idx file")
        return path

    def _sources(self) -> list[Path]:
        self._check_together()
        root = self._root()
        beside = [file for file in (self._beside(), self._pairs_file()) if file]
        return (image_files(root) if root.is_dir() else [root]) + beside

    def _check_together(self) -> None:
        if self.size is None and (self.height is not None or self.fit != "crop"):
            raise ValueError("height and fit say how images come to a size: give size with them")
        if not self.sequences and (self.segments is not None or self.furthest != 1):
            raise ValueError("segments and furthest cut sequences: set sequences=true with them")
        if self.sequences and self.pairs is not None:
            raise ValueError(f"pairs come from the sequences or from {self.pairs}, not from both: leave one out")

    def _beside(self) -> Path | None:
        """The file of labels beside the images, where there is one."""
        root = self._root()
        folder = root if root.is_dir() else root.parent
        usual = "labels.csv" if root.is_dir() else root.name.replace("images-idx3", "labels-idx1")
        named = self.labels is not None and self.labels != "none"
        if named and root.suffix in MEMBERS and not str(self.labels).endswith(BESIDE):
            return None
        place = folder / (str(self.labels) if named else usual)
        if named and not place.exists():
            raise FileNotFoundError(f"the labels {self.labels} are not in {folder}")
        there = self.labels != "none" and place != root and place.exists()
        return require_file(place, "a file of labels") if there else None

    def _count(self, array: np.ndarray | None) -> int:
        root = self._root()
        return len(image_files(root)) if array is None else len(checked(array, root))

    def _pairs_file(self) -> Path | None:
        """The file of pairs beside the images, where there is one."""
        root = self._root()
        if self.pairs is None or (root.suffix in MEMBERS and not self.pairs.endswith(".csv")):
            return None
        folder = root if root.is_dir() else root.parent
        if not (folder / self.pairs).exists():
            raise FileNotFoundError(f"the pairs {self.pairs} are not in {folder}")
        return require_file(folder / self.pairs, "a file of pairs")

    def _colour(self, array: np.ndarray | None) -> Literal["grey", "rgb"]:
        return self._own_colour(array) if self.colour == "auto" else self.colour

    def _own_colour(self, array: np.ndarray | None) -> Literal["grey", "rgb"]:
        root = self._root()
        if array is None:
            return "grey" if all(mode(path) in GREY for path in image_files(root)) else "rgb"
        return "grey" if checked(array[:1], root).shape[1] == 1 else "rgb"

    def _array_of_file(self) -> np.ndarray | None:
        """The images of a file as they lie there; None of a folder."""
        return None if self._root().is_dir() else self._array()[0]

    def _array(self) -> tuple[np.ndarray, Sequences | None]:
        """The images of a file, one after the other, and the sequences they make."""
        images = read_array(self._root(), self.key)
        if not self.sequences:
            return images, None
        n_sequences, frames = frames_of(images)
        return frames, by_axis(n_sequences, len(frames) // max(1, n_sequences))

    def _from_file(self, array: np.ndarray, colour: str) -> np.ndarray:
        images = coloured(checked(array, self._root()), colour)
        return images if self.size is None else np.stack([self._fitted(image) for image in images])

    def _from_folder(self, colour: str, digest: str, progress: Progress | None) -> tuple[np.ndarray, Sequences | None]:
        root = self._root()
        files = image_files(root)
        first = self._read(files[0], colour)
        cache = self._copy(digest, colour).pictures

        def fill(array: np.ndarray) -> None:
            for row, path in enumerate(files):
                image = self._read(path, colour)
                if image.shape != first.shape:
                    sizes = [f"{shape[2]}×{shape[1]}" for shape in (first.shape, image.shape)]
                    differ = f"{files[0]} is {sizes[0]} pixels but {path} is {sizes[1]}"
                    raise ValueError(f"{differ}: give one size for all, --world.size 64 (in Python size=64)")
                array[row] = image
                if progress and row % 500 == 0:
                    progress(f"reading {root.name}", row, len(files))

        sequences = by_folder([path.relative_to(root) for path in files]) if self.sequences else None
        return converted(cache, (len(files), *first.shape), fill, progress), sequences

    def _read(self, path: Path, colour: str) -> np.ndarray:
        image = coloured(decoded(path)[None], colour)[0]
        return image if self.size is None else self._fitted(image)

    def _segments(self, sequences: Sequences | None) -> np.ndarray | None:
        if sequences is None or self.segments is None:
            return None
        return self._refused_here(lambda: segments_of(sequences, self.segments or 1))

    def _labels(self, n_images: int, sequences: Sequences | None) -> Labels:
        root, beside = self._root(), self._beside()
        if self.labels == "none":
            return (), np.empty((n_images, 0))
        if root.is_dir():
            files = [path.relative_to(root) for path in image_files(root)]
            if beside is None and sequences is not None:
                return (), np.empty((n_images, 0))
            if beside is None:
                return _from_folders(files)
            return _from_csv(beside, files) if beside.suffix == ".csv" else _from_arrays(beside, n_images, sequences)
        if beside is not None and root.suffix in MEMBERS:
            return _from_arrays(beside, n_images, sequences)
        if root.suffix in MEMBERS:
            found = read_labels(root, self.labels)
            return ((), np.empty((n_images, 0))) if found is None else _columns(*found, n_images, root, sequences)
        if beside is None:
            return (), np.empty((n_images, 0))
        return _from_arrays(beside, n_images, sequences)

    def _pairs(self, n_images: int, sequences: Sequences | None) -> np.ndarray | None:
        root, beside = self._root(), self._pairs_file()
        if sequences is not None:
            return self._refused_here(lambda: sequence_pairs(sequences, self.furthest))
        if beside is not None:
            files = [path.relative_to(root).as_posix() for path in image_files(root)] if root.is_dir() else []
            return read_pairs_csv(beside, n_images, files)
        if self.pairs is None:
            return None
        return checked_pairs(read_member(root, self.pairs), n_images, f"{root}: the array {self.pairs}")

    def _refused_here(self, made: Callable[[], np.ndarray]) -> np.ndarray:
        try:
            return made()
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error


def _as_data(images: np.ndarray, known: Known) -> Data:
    packing: Any = "floats" if images.dtype == np.float32 else "bytes"
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in known.items() if name != "names"}
    names = tuple(known["names"].tolist()) if "names" in known else ()
    return Data(torch.from_numpy(images), images.shape[1:], packing, label_names=names, **tensors)


def _from_arrays(beside: Path, n_images: int, sequences: Sequences | None) -> Labels:
    """Labels in a file of their own, in the order of the images."""
    if beside.suffix == ".csv":
        raise ValueError(
            f"{beside} goes with a folder of images, whose files it names; give an npz or npy file of labels"
        )
    if beside.suffix in MEMBERS:
        usual = read_labels(beside, None)
        every = [usual] if usual else [read_labels(beside, name) for name in member_names(beside)]
        parts = [_columns(*one, n_images, beside, sequences) for one in every if one]
        return tuple(name for names, _ in parts for name in names), np.concatenate([array for _, array in parts], 1)
    values = read_array(beside, None) if beside.suffix == ".npy" else read_idx(beside)
    return _columns("label", values, n_images, beside, sequences)


def _from_folders(files: list[Path]) -> Labels:
    folders = [file.parent.as_posix() for file in files]
    if set(folders) == {"."}:
        return (), np.empty((len(files), 0))
    numbers = {name: float(name) for name in set(folders) if NUMBER.fullmatch(name)}
    if len(numbers) < len(set(folders)):
        # numbers by their size, then words by the alphabet
        order = sorted(set(folders), key=lambda name: (name not in numbers, numbers.get(name, 0.0), name))
        return ("folder",), np.array([order.index(name) for name in folders], dtype=np.int64)[:, None]
    return ("folder",), packed(as_column(folders, lambda row: f"the folder of {files[row]}"))[:, None]


def _from_csv(path: Path, files: list[Path]) -> Labels:
    columns = read_labels_csv(path, [file.as_posix() for file in files])
    return tuple(columns), np.stack([packed(column) for column in columns.values()], axis=1)


def _columns(name: str, values: np.ndarray, n_images: int, path: Path, sequences: Sequences | None = None) -> Labels:
    if sequences is not None:
        values = _over_time(values, len(sequences), n_images)
    if values.ndim not in (1, 2) or len(values) != n_images:
        raise ValueError(f"{path}: the labels {name} have the shape {values.shape}, but there are {n_images} images")
    if values.ndim == 1:
        return (name,), packed(as_column(values, lambda row: f"{path}: the label of image {row}"))[:, None]
    names = tuple(f"{name}_{place}" for place in range(values.shape[1]))
    columns = [
        as_column(column, lambda row, place=place: f"{path}: column {place} of the label of image {row}")  # type: ignore[misc]
        for place, column in enumerate(values.T)
    ]
    return names, np.stack([packed(column) for column in columns], axis=1)


def _over_time(values: np.ndarray, n_sequences: int, n_images: int) -> np.ndarray:
    """Labels (sequence, time[, label]) one frame after the other; (sequence,) holds for all frames of a sequence."""
    if values.ndim > 1 and values.shape[0] * values.shape[1] == n_images and len(values) == n_sequences:
        return values.reshape(n_images, *values.shape[2:])
    return np.repeat(values, n_images // n_sequences) if values.shape == (n_sequences,) else values


def _plain_path(given: str) -> str:
    """One way to write ``photos``, ``photos/``, ``./photos`` and its full path: from the working folder if it is there.

    The path is part of a run's id.
    """
    place, here = Path(os.path.abspath(given)), Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else os.path.normpath(given)
