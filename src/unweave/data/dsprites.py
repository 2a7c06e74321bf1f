"""dSprites (Matthey et al., 2017) and its Color, Noisy and Scream variants (Locatello et al., 2019).

Two sources show the same factors: the published file, and our own renderer, whose images differ from the published
ones by about a fifth of a pixel each. They are cached under different names and never stand in for each other: a
resolved config names its source.
"""

import warnings
import zipfile
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np
import torch

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Progress, Published, cached_array, data_folder, place_of, reading, require, verify
from unweave.data.procedural.dsprites import N_BYTES, SIZES, render_grid
from unweave.data.procedural.nuisances import Backdrop, Noise, Tint
from unweave.data.world import Card, Data, Nuisance, World
from unweave.shapes import Tensor, UInt8

Source = Literal["auto", "published", "rendered"]

SPACE = FactorSpace(
    (
        Factor("shape", SIZES[0], "categorical"),
        Factor("scale", SIZES[1]),
        Factor("orientation", SIZES[2], "cyclic"),
        Factor("x", SIZES[3]),
        Factor("y", SIZES[4]),
    )
)

PUBLISHED = Published(
    file="dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    address="https://github.com/deepmind/dsprites-dataset/raw/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    # not given by its authors; the value on which the downloaders of at least five independent code bases agree
    checksum="md5:7da33b31b13a06f4b04a70402ce90c2e",
)

SCREAM = Published(file="scream.jpg", address="https://upload.wikimedia.org/wikipedia/commons/f/f4/The_Scream.jpg")
"""Munch's painting. The address may serve a newer scan than the published study used, so no checksum is asked for."""

NOTES = {
    "published": "the published images",
    "rendered": "re-rendered images: the same factors, about 0.2 pixels an image away from the published ones",
}


@dataclass(frozen=True)
class DSprites(FactorWorld):
    """White sprites on black. ``auto`` takes the published file when it is on this machine and renders otherwise."""

    name: ClassVar[str] = "dsprites"
    source: Source = "auto"

    def card(self) -> Card:
        return _card("dSprites", (1, 64, 64), self.source, cached=_cache(_resolved(self.source)).exists())

    def load(self, progress: Progress | None = None) -> Data:
        source = _resolved(self.source)
        bits = cached_array(_cache(source), lambda: _build(source, progress), progress)
        if bits.shape != (SPACE.n_cells, N_BYTES) or bits.dtype != np.uint8:
            raise ValueError(f"{_cache(source)} holds {bits.dtype} {bits.shape}, not dSprites. Delete it to rebuild.")
        return self.weighted(Data(torch.from_numpy(bits), shape=(1, 64, 64), packing="bits", space=SPACE))

    def files(self) -> tuple[Published, ...]:
        return () if self.source == "rendered" else (PUBLISHED,)

    def resolve(self) -> World:
        return replace(self, source=_resolved(self.source))


@dataclass(frozen=True)
class _Variant(FactorWorld):
    """dSprites with something drawn afresh for every example."""

    title: ClassVar[str]
    source: Source = "auto"

    @abstractmethod
    def nuisance(self) -> Nuisance:
        """What is drawn for every example."""

    def card(self) -> Card:
        return _card(self.title, (3, 64, 64), self.source, cached=_cache(_resolved(self.source)).exists())

    def load(self, progress: Progress | None = None) -> Data:
        nuisance = self.nuisance()
        plain = DSprites(self.source).load(progress)
        return self.weighted(replace(plain, shape=(3, 64, 64), nuisance=nuisance))

    def resolve(self) -> World:
        return replace(self, source=_resolved(self.source))


@dataclass(frozen=True)
class ColorDSprites(_Variant):
    """Sprites in a random bright colour on black."""

    name: ClassVar[str] = "color_dsprites"
    title: ClassVar[str] = "Color-dSprites"

    def nuisance(self) -> Tint:
        return Tint()


@dataclass(frozen=True)
class NoisyDSprites(_Variant):
    """White sprites on uniform noise."""

    name: ClassVar[str] = "noisy_dsprites"
    title: ClassVar[str] = "Noisy-dSprites"

    def nuisance(self) -> Noise:
        return Noise()


@dataclass(frozen=True)
class ScreamDSprites(_Variant):
    """Sprites as the negative of a random patch of Munch's *The Scream*."""

    name: ClassVar[str] = "scream_dsprites"
    title: ClassVar[str] = "Scream-dSprites"

    def nuisance(self) -> Backdrop:
        path = require(self.name, SCREAM)
        verify(path, SCREAM)
        return Backdrop(read_painting(path))

    def card(self) -> Card:
        place = place_of(self.name, SCREAM)
        card = super().card()
        get = f"{card.how_to_get} The painting: put {SCREAM.address} at {place} (no checksum is known)."
        return replace(card, on_disk=card.on_disk and place.exists(), how_to_get=get)

    def files(self) -> tuple[Published, ...]:
        return (SCREAM,)


def read_published(path: Path, progress: Progress | None = None) -> UInt8[np.ndarray, "sample byte"]:
    """The images of the published npz as bits, read block by block: whole they would take 3 GB of memory."""
    with reading(path, "the published dSprites npz"), zipfile.ZipFile(path) as archive:
        with _member(archive, "latents_classes") as file:
            _check_order(path, file)
        with _member(archive, "imgs") as file:
            return _pack(path, file, progress)


def read_painting(path: Path) -> UInt8[Tensor, "3 high wide"]:
    """The painting at the size of the reference implementation: at most 350 × 274, its proportions kept."""
    from PIL import Image

    with reading(path, "a picture"), Image.open(path) as picture:
        small = picture.convert("RGB")
    small.thumbnail((350, 274))
    if min(small.size) <= 64:
        raise ValueError(
            f"{path} has only {small.size} pixels; patches of 64 × 64 are cut from it: put a larger picture"
        )
    return torch.from_numpy(np.array(small)).movedim(2, 0).contiguous()


def _resolved(source: Source) -> Literal["published", "rendered"]:
    if source not in ("auto", "published", "rendered"):
        raise ValueError(f"source must be auto, published or rendered, not {source!r}")
    if source != "auto":
        return source
    here = place_of("dsprites", PUBLISHED).exists() or _cache("published").exists()
    return "published" if here else "rendered"


def _cache(source: str) -> Path:
    return data_folder() / "dsprites" / f"{source}-v1.npy"


def _build(source: str, progress: Progress | None) -> UInt8[np.ndarray, "sample byte"]:
    if source == "rendered":
        return render_grid(progress)
    path = require("dsprites", PUBLISHED)
    verify(path, PUBLISHED, progress)
    return read_published(path, progress)


def _card(title: str, shape: tuple[int, ...], source: Source, *, cached: bool) -> Card:
    found, place = _resolved(source), place_of("dsprites", PUBLISHED)
    get = {
        "published": f"Put {PUBLISHED.address} at {place} ({PUBLISHED.checksum}), or run: unweave worlds get dsprites.",
        "rendered": f"Rendered on first use, in seconds. For the published images put {PUBLISHED.address} at {place}.",
    }
    on_disk = cached or found == "rendered" or place.exists()
    return Card(title, shape, SPACE.n_cells, SPACE, on_disk=on_disk, how_to_get=get[found], note=NOTES[found])


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipExtFile:
    return cast(zipfile.ZipExtFile, archive.open(f"{name}.npy"))


def _check_order(path: Path, file: zipfile.ZipExtFile) -> None:
    """The published rows must be our rows: colour (constant), then our five factors, the last running fastest."""
    shape, dtype = _header(file)
    wanted = (SPACE.n_cells, 1 + len(SPACE.axes))
    if shape != wanted or not np.issubdtype(dtype, np.integer):
        raise ValueError(f"{path}: latents_classes is {dtype} {shape}, expected whole numbers {wanted}")
    classes = np.frombuffer(_exactly(file, SPACE.n_cells * wanted[1] * dtype.itemsize), dtype).reshape(wanted)
    ours = SPACE.coordinates(torch.arange(SPACE.n_cells)).numpy()
    if (classes[:, 0] != 0).any() or (classes[:, 1:] != ours).any():
        raise ValueError(f"{path}: the images are not in the published order. Fetch {PUBLISHED.address} again.")


def _pack(path: Path, file: zipfile.ZipExtFile, progress: Progress | None) -> UInt8[np.ndarray, "sample byte"]:
    shape, dtype = _header(file)
    if shape != (SPACE.n_cells, 64, 64) or dtype != np.uint8:
        raise ValueError(f"{path}: imgs is {dtype} {shape}, expected uint8 {(SPACE.n_cells, 64, 64)}")
    bits = np.empty((SPACE.n_cells, N_BYTES), dtype=np.uint8)
    for start in range(0, len(bits), 4096):
        block = bits[start : start + 4096]
        images = np.frombuffer(_exactly(file, len(block) * 4096), np.uint8).reshape(len(block), 4096)
        if images.max() > 1:
            raise ValueError(f"{path}: imgs goes up to {images.max()}, expected 0 and 1 only")
        block[:] = np.packbits(images, axis=1)
        if progress:
            progress("converting dsprites", start + len(block), len(bits))
    return bits


def _header(file: zipfile.ZipExtFile) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # the file was written by Python 2, of which numpy warns every reader
        warnings.simplefilter("ignore", UserWarning)
        shape, columns_first, dtype = read(file)
    if columns_first or dtype.hasobject:
        raise ValueError(f"a stored array is {dtype} in Fortran order or of objects, expected plain numbers in C order")
    return shape, dtype


def _exactly(file: zipfile.ZipExtFile, n_bytes: int) -> bytes:
    read = file.read(n_bytes)
    if len(read) != n_bytes:
        raise EOFError(f"{n_bytes - len(read)} bytes are missing")
    return read
