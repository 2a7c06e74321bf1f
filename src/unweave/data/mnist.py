"""MNIST (LeCun et al., 1998) and Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017), from the idx files or an npz."""

import gzip
import math
from abc import ABC
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from unweave.data.files import Progress, Published, absent, data_folder, how_to_get, open_npz, place_of, reading, verify
from unweave.data.resize import lanczos
from unweave.data.world import Card, Data, World

Split = Literal["train", "test", "all"]

N_EXAMPLES = {"train": 60_000, "test": 10_000, "all": 70_000}
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@dataclass(frozen=True)
class _Digits(World, ABC):
    """What the two share. ``size`` 32 sets a black frame of two pixels around 28, 64 doubles that by Lanczos."""

    title: ClassVar[str]
    published: ClassVar[tuple[Published, ...]]
    label: ClassVar[str]
    split: Split = "train"
    size: Literal[28, 32, 64] = 28

    def __post_init__(self) -> None:
        if self.split not in N_EXAMPLES:
            raise ValueError(f"split must be one of {', '.join(N_EXAMPLES)}, not {self.split!r}")
        if self.size not in (28, 32, 64):
            raise ValueError(f"size must be 28, 32 or 64, not {self.size!r}")

    def files(self) -> tuple[Published, ...]:
        return self.published

    def card(self) -> Card:
        on_disk = self._npz().exists() or all(_idx(self.name, file).exists() for file in self.published)
        get = how_to_get(self.name, self.published) + f"\nor put {self._npz().name} at {self._npz()}"
        shape, n_examples = (1, self.size, self.size), N_EXAMPLES[self.split]
        return Card(self.title, shape, n_examples, None, on_disk, get, labels=(self.label,))

    def load(self, progress: Progress | None = None) -> Data:
        read = self._from_npz if self._npz().exists() else self._from_idx
        parts = [read(part, progress) for part in (("train", "test") if self.split == "all" else (self.split,))]
        images, labels = (np.concatenate(arrays) for arrays in zip(*parts))
        store = torch.from_numpy(_grow(images, self.size)[:, None])
        label = torch.from_numpy(labels.astype(np.int64))[:, None]
        return Data(store, (1, self.size, self.size), labels=label, label_names=(self.label,))

    def _npz(self) -> Path:
        return data_folder() / self.name / f"{self.name}.npz"

    def _from_npz(self, part: str, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
        path = self._npz()
        what = f"{self.title} (npz with x_train, y_train, x_test, y_test)"
        with open_npz(path, what) as file:
            return _checked(path, file[f"x_{part}"], file[f"y_{part}"], part)

    def _from_idx(self, part: str, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
        files = self.published[:2] if part == "train" else self.published[2:]
        paths = [_idx(self.name, file) for file in files]
        if missing := [file for path, file in zip(paths, files) if not path.exists()]:
            raise absent(self.name, missing)
        for path, file in zip(paths, files):
            if path.name == file.file:
                verify(path, file, progress)
        images, labels = (read_idx(path) for path in paths)
        return _checked(paths[0], images, labels, part)


def _published(address: str, *known: tuple[int, str, str]) -> tuple[Published, ...]:
    # sizes and sha256 as TensorFlow Datasets records them, md5 as torchvision checks its downloads
    return tuple(
        Published(f"{file}.gz", f"{address}{file}.gz", f"sha256:{sha256} md5:{md5}", n_bytes)
        for file, (n_bytes, sha256, md5) in zip(FILES, known)
    )


@dataclass(frozen=True)
class MNIST(_Digits):
    """Handwritten digits."""

    name: ClassVar[str] = "mnist"
    title: ClassVar[str] = "MNIST"
    label: ClassVar[str] = "digit"
    published: ClassVar[tuple[Published, ...]] = _published(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        (
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        ),
        (
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "d53e105ee54ea40749a09fcbcd1e9432",
        ),
        (
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "9fb629c4189551a2d022fa330f9573f3",
        ),
        (
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    )


@dataclass(frozen=True)
class FashionMNIST(_Digits):
    """Articles of clothing."""

    name: ClassVar[str] = "fashion_mnist"
    title: ClassVar[str] = "Fashion-MNIST"
    label: ClassVar[str] = "article"
    published: ClassVar[tuple[Published, ...]] = _published(
        # the authors' bucket by https; the address that they give knows http only
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
        (
            26_421_880,
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        ),
        (
            29_515,
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "25c81989df183df01b3e8a0aad5dffbe",
        ),
        (
            4_422_102,
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "bef4ecab320f06d8554ea6380940ec79",
        ),
        (
            5_148,
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    )


def read_idx(path: Path) -> np.ndarray:
    """An idx file of bytes: two zeros, the type 0x08, the number of axes, the sizes (big-endian), then the bytes."""
    with reading(path, "an idx file of bytes"):
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read()
        if len(content) < 4 or content[:3] != b"\x00\x00\x08":
            raise ValueError(f"it begins with {content[:4].hex()}, expected 000008 and the number of axes")
        sizes = np.frombuffer(content, ">u4", count=content[3], offset=4).tolist()
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * len(sizes))
        if len(values) != math.prod(sizes):
            raise ValueError(f"it holds {len(values)} bytes, its header promises {sizes}")
        return values.reshape(sizes).copy()


def _idx(world: str, file: Published) -> Path:
    path = place_of(world, file)
    return path.with_suffix("") if not path.exists() and path.with_suffix("").exists() else path


def _checked(path: Path, images: np.ndarray, labels: np.ndarray, part: str) -> tuple[np.ndarray, np.ndarray]:
    expected = (N_EXAMPLES[part], 28, 28)
    if images.shape != expected or images.dtype != np.uint8 or labels.shape != expected[:1]:
        raise ValueError(
            f"{path} holds {images.dtype} {images.shape} with {labels.shape} labels, expected uint8 {expected}"
        )
    return images, labels


def _grow(images: np.ndarray, size: int) -> np.ndarray:
    if size == 28:
        return images.copy()
    framed = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    return framed if size == 32 else lanczos(framed, size, size)
