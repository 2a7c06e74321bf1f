"""MNIST and Fashion-MNIST from small idx files, and from the real ones where they are."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import mnist
from unweave.data.mnist import FILES, MNIST, FashionMNIST, read_idx


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(mnist, "N_EXAMPLES", {"train": 6, "test": 4, "all": 10})
    monkeypatch.setattr(MNIST, "published", tuple(replace(file, checksum="", n_bytes=None) for file in MNIST.published))
    (tmp_path / "mnist").mkdir()
    return tmp_path / "mnist"


def write(folder: Path, zipped: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (10, 28, 28), dtype=np.uint8), np.arange(10)
    for name, values in zip(FILES, (images[:6], labels[:6], images[6:], labels[6:])):
        path = folder / (name + (".gz" if zipped else ""))
        path.write_bytes(gzip.compress(idx(values)) if zipped else idx(values))
    return images, labels


@pytest.mark.parametrize("zipped", [True, False])
def test_splits(folder: Path, zipped: bool) -> None:
    images, labels = write(folder, zipped)
    for split, rows in (("train", slice(0, 6)), ("test", slice(6, 10)), ("all", slice(0, 10))):
        data = MNIST(split).load()
        np.testing.assert_array_equal(data.store[:, 0].numpy(), images[rows])
        assert data.labels is not None
        assert data.labels[:, 0].tolist() == labels[rows].tolist()
        assert data.label_names == ("digit",)


def test_frame_and_enlargement(folder: Path) -> None:
    images, _ = write(folder)
    framed = MNIST(size=32).load().store.numpy()[:, 0]
    np.testing.assert_array_equal(framed[:, 2:30, 2:30], images[:6])
    assert framed.sum() == images[:6].sum(dtype=np.int64)
    large = MNIST(size=64).load().store.numpy()[:, 0]
    expected = Image.fromarray(framed[3]).resize((64, 64), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(large[3], np.asarray(expected))


def test_missing_and_damaged_files_are_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mnist needs train-images-idx3-ubyte"):
        MNIST().load()
    write(folder)
    path = folder / "train-images-idx3-ubyte.gz"
    content = path.read_bytes()
    for broken in (
        content[:-50],
        b"",
        gzip.compress(b"\x00\x00\x0d\x03" + bytes(100)),
        gzip.compress(idx(np.zeros(9))[:-1]),
    ):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz cannot be read as an idx file"):
            MNIST().load()
    path.write_bytes(gzip.compress(idx(np.zeros((5, 28, 28)))))
    with pytest.raises(ValueError, match=r"images-idx3-ubyte\.gz holds uint8 \(5, 28, 28\)"):
        MNIST().load()


def test_size_and_both_checksums_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    (tmp_path / "fashion_mnist").mkdir()
    write(tmp_path / "fashion_mnist")
    with pytest.raises(ValueError, match="the published file has 26421880"):
        FashionMNIST().load()
    sha256, md5 = FashionMNIST.published[0].checksum.split()
    for checksum, expected in ((sha256, "3aede38d618639"), (md5, "8d4fb7e6c68d591d4c3dfef9ec88bf0d")):
        known = tuple(replace(file, checksum=checksum, n_bytes=None) for file in FashionMNIST.published)
        monkeypatch.setattr(FashionMNIST, "published", known)
        with pytest.raises(ValueError, match=f"expected {expected}"):
            FashionMNIST().load()


def test_npz_with_missing_part_is_named(folder: Path) -> None:
    np.savez(folder / "mnist.npz", x_train=np.zeros((6, 28, 28), np.uint8))
    with pytest.raises(ValueError, match=r"mnist\.npz cannot be read as MNIST.*y_train"):
        MNIST().load()


def test_idx_of_any_rank(tmp_path: Path) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    (tmp_path / "x.idx").write_bytes(idx(values))
    np.testing.assert_array_equal(read_idx(tmp_path / "x.idx"), values)


@pytest.mark.parametrize("world", [MNIST, FashionMNIST])
def test_real_files(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: type) -> None:
    source = shared / "data" / f"{world.name}.npz"
    if not source.exists():
        pytest.skip(f"{source.name} is not here")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    (tmp_path / world.name).mkdir()
    (tmp_path / world.name / source.name).symlink_to(source)
    data = world("test").load()
    with np.load(source) as file:
        np.testing.assert_array_equal(data.store[:, 0].numpy(), file["x_test"])
        np.testing.assert_array_equal(data.labels[:, 0].numpy(), file["y_test"])
    assert data.examples(torch.arange(3)).shape == (3, 1, 28, 28)
    assert torch.bincount(data.labels[:, 0]).shape == (10,)


def test_a_world_is_on_disk_with_all_its_files_or_with_an_npz(folder: Path) -> None:
    assert not MNIST().card().on_disk
    write(folder, zipped=False)
    assert MNIST().card().on_disk
    (folder / FILES[3]).unlink()
    assert not MNIST().card().on_disk
    np.savez(folder / "mnist.npz")
    assert MNIST().card().on_disk


def test_images_and_labels_must_each_fit(folder: Path) -> None:
    good = {"x_train": np.zeros((6, 28, 28), np.uint8), "y_train": np.arange(6)}
    for name, wrong in (("x_train", np.zeros((6, 28, 28))), ("x_train", np.zeros((6, 28, 27), np.uint8)),
                        ("y_train", np.arange(5))):  # fmt: skip
        np.savez(folder / "mnist.npz", **(good | {name: wrong}))
        with pytest.raises(ValueError, match=r"mnist\.npz holds .*expected uint8 \(6, 28, 28\)"):
            MNIST().load()
    np.savez(folder / "mnist.npz", **good)
    assert MNIST().load().labels[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00\x00\x08", "it begins with 000008, expected"),
        (b"\x00\x00\x08\x00", r"it holds 0 bytes, its header promises \[\]"),
        (b"\x00\x01\x08\x01\x00\x00\x00\x00", "it begins with 00010801, expected"),
    ],
)
def test_short_idx_files_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "x.idx").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        read_idx(tmp_path / "x.idx")
    (tmp_path / "x.idx").write_bytes(b"\x00\x00\x08\x00\x07")
    assert read_idx(tmp_path / "x.idx") == 7
