"""KITTI Masks from a small file of the published layout."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unweave.data.files import data_folder
from unweave.data.kitti_masks import KittiMasks
from unweave.data.sequences import sequence_pairs


def published(held: Any, protocol: int = 3) -> Path:
    """Put a pickle where the published one is looked for."""
    path = data_folder() / "kitti_masks" / "kitti_peds_v2.pickle"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(held, protocol))
    return path


def films(*lengths: int) -> dict[str, list[np.ndarray]]:
    generator = np.random.default_rng(1)
    return {
        "pedestrians": [generator.random((n, 64, 64)) > 0.7 for n in lengths],
        "pedestrians_latents": [generator.random((n, 3)).astype(np.float32) for n in lengths],
    }


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))


@pytest.mark.parametrize("protocol", [3, 4])
def test_masks_labels_and_pairs(protocol: int) -> None:
    held = films(4, 2, 7)
    published(held, protocol)
    for _ in range(2):  # read, then from the cache
        data = KittiMasks().load()
        masks = np.concatenate(held["pedestrians"])
        assert data.shape == (1, 64, 64)
        assert np.array_equal(data.examples(torch.arange(13)).numpy()[:, 0], masks.astype(np.float32))
        assert np.array_equal(data.labels.numpy(), np.concatenate(held["pedestrians_latents"]))
        assert data.label_names == ("y", "x", "area")
        assert data.label_sizes == (0, 0, 0)
        expected = sequence_pairs({"a": range(4), "b": range(4, 6), "c": range(6, 13)}, 5)
        assert data.pairs.tolist() == expected.tolist()
    assert KittiMasks(furthest=1).load().pairs.tolist() == [
        *([row, row + 1] for row in range(3)), [4, 5], *([row, row + 1] for row in range(6, 12))
    ]  # fmt: skip


def test_pairs_are_spread_as_in_the_original() -> None:
    """A uniform start, then 1 to 5 frames on, or the last one: as the authors' loader draws them."""
    published(films(9, 3))
    pairs = KittiMasks().load().pairs
    starts = [start for length, first in ((9, 0), (3, 9)) for start in range(first, first + length - 1)]
    drawn = [[start, min(start + step, 8 if start < 9 else 11)] for start in starts for step in range(1, 6)]
    assert sorted(pairs.tolist()) == sorted(drawn)


@pytest.mark.parametrize(
    ("held", "complaint"),
    [
        ([], "no list of arrays 'pedestrians'"),
        ({"pedestrians": []}, "no list of arrays 'pedestrians_latents'"),
        ({"pedestrians": [], "pedestrians_latents": []}, "it holds 0 sequences"),
        (films(3) | {"pedestrians_latents": []}, "it holds 1 sequences and labels of 0"),
        (films(3) | {"pedestrians": [np.zeros((3, 64, 60), bool)]}, r"sequence 0 is bool \(3, 64, 60\)"),
        (films(3) | {"pedestrians": [np.zeros((3, 64, 64))]}, "sequence 0 is float64"),
        (films(3) | {"pedestrians_latents": [np.zeros((2, 3))]}, r"3 masks and labels \(2, 3\)"),
        (films(1), r"1 masks and labels \(1, 3\), expected two or more"),
    ],
)
def test_other_files_are_refused_by_name(held: Any, complaint: str) -> None:
    path = published(held)
    with pytest.raises(ValueError, match=complaint) as caught:
        KittiMasks().load()
    assert str(path) in str(caught.value)


def test_a_torn_file_is_refused_by_name() -> None:
    path = published(films(4))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match="cannot be read as the published KITTI Masks"):
        KittiMasks().load()


def test_lists_of_other_things_are_refused() -> None:
    published(films(3) | {"pedestrians": [np.zeros((3, 64, 64), bool), 5]})
    with pytest.raises(ValueError, match="it has no list of arrays 'pedestrians'"):
        KittiMasks().load()
    published(films(3) | {"pedestrians": (np.zeros((3, 64, 64), bool),)})
    with pytest.raises(ValueError, match="it has no list of arrays 'pedestrians'"):
        KittiMasks().load()


def test_two_frames_are_a_sequence() -> None:
    assert not KittiMasks().card().on_disk
    published(films(2))
    assert KittiMasks(furthest=1).load().pairs.tolist() == [[0, 1]]
    assert KittiMasks().card().on_disk
