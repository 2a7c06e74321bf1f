"""Own data with pairs: sequences of frames, files of pairs, segments of time, and every way to get them wrong."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from unweave.config import fingerprint, from_plain, to_plain
from unweave.data import WORLDS
from unweave.data.images import Images
from unweave.data.sequences import by_axis, natural, segments_of, sequence_pairs
from unweave.data.world import World

RNG = np.random.default_rng(0)


def picture(value: int, size: int = 4) -> Image.Image:
    return Image.fromarray(np.full((size, size), value, dtype=np.uint8))


def films(folder: Path, frames: dict[str, list[int]]) -> Path:
    """A file for every frame, named by its number without leading zeros, and all of one grey: its number."""
    for name, numbers in frames.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            picture(number).save(folder / name / f"frame{number}.png")
    return folder


def shown(images: torch.Tensor) -> list:
    return images.flatten(1)[:, 0].tolist()


def test_frames_follow_each_other_in_natural_order(tmp_path: Path) -> None:
    world = Images(str(films(tmp_path, {"b": [8, 9, 10, 11], "a": [1, 2, 30]})), sequences=True)
    data = world.load()
    assert data.labels is None
    firsts, seconds = (shown(data.store[rows]) for rows in data.pairs.unbind(-1))
    assert list(zip(firsts, seconds)) == [(1, 2), (2, 30), (8, 9), (9, 10), (10, 11)]
    # the images themselves lie in the order they always had
    assert torch.equal(data.store, Images(str(tmp_path)).load().store)


def test_a_folder_without_sub_folders_is_one_sequence(tmp_path: Path) -> None:
    data = Images(str(films(tmp_path, {".": [2, 10, 9]})), sequences=True).load()
    assert [shown(data.store[pair]) for pair in data.pairs] == [[2, 9], [9, 10]]


def test_natural_order() -> None:
    names = ["frame10.png", "frame2.png", "frame02.png", "b1.png", "1.png", "10.png", "9.png", "x2y10", "x2y9"]
    assert sorted(names, key=natural) == [
        *("1.png", "9.png", "10.png", "b1.png", "frame02.png", "frame2.png", "frame10.png", "x2y9", "x2y10")
    ]


def test_partners_further_away_stop_at_the_end() -> None:
    pairs = sequence_pairs({"a": [5, 6, 7]}, furthest=3)
    assert pairs.tolist() == [[5, 6], [5, 7], [5, 7], [6, 7], [6, 7], [6, 7]]


@pytest.mark.parametrize("kind", ["npz", "h5", "npy"])
@pytest.mark.parametrize("shape", [(3, 5, 4, 6, 3), (3, 5, 3, 4, 6), (3, 5, 4, 6), (15, 4, 6, 3), (15, 4, 6)])
def test_an_array_with_a_time_axis(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    images, path = RNG.integers(0, 256, shape, dtype=np.uint8), tmp_path / f"films.{kind}"
    if kind == "npz":
        np.savez(path, images=images)
    elif kind == "npy":
        np.save(path, images)
    else:
        with h5py.File(path, "w") as file:
            file["images"] = images
    data = Images(str(path), sequences=True).resolve().load()
    assert len(data) == 15
    assert data.shape == ((3, 4, 6) if 3 in shape[2:] else (1, 4, 6))
    n_sequences = shape[0] if shape[0] == 3 else 1
    frames = 15 // n_sequences
    expected = [[row, row + 1] for row in range(14) if (row + 1) % frames]
    assert data.pairs.tolist() == expected
    frame = images.reshape(15, *shape[-3:] if len(shape) == 5 or (15 in shape and len(shape) == 4) else (4, 6))[7]
    seen = data.store[7].numpy()
    assert np.array_equal(seen, frame if frame.shape == seen.shape else np.moveaxis(np.atleast_3d(frame), -1, 0))


def test_time_is_cut_into_segments(tmp_path: Path) -> None:
    data = Images(str(films(tmp_path, {"b": [8, 9, 10, 11], "a": [1, 2, 30]})), sequences=True, segments=2).load()
    assert data.labels is None
    assert data.given_names == ("segment",)
    assert data.label_sizes == (4,)
    assert dict(zip(shown(data.store), data.given(torch.arange(7))[:, 0].tolist())) == {
        1: 0,
        2: 0,
        30: 1,
        8: 2,
        9: 2,
        10: 3,
        11: 3,
    }
    assert segments_of(by_axis(1, 10), 5).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (np.arange(6).reshape(2, 3), ("labels",)),
        (np.arange(12).reshape(2, 3, 2), ("labels_0", "labels_1")),
        (np.array([4, 7]), ("labels",)),
        (np.arange(6), ("labels",)),
    ],
)
def test_labels_of_sequences(tmp_path: Path, labels: np.ndarray, names: tuple[str, ...]) -> None:
    np.savez(tmp_path / "f.npz", images=np.zeros((2, 3, 4, 5), np.uint8), labels=labels)
    data = Images(str(tmp_path / "f.npz"), sequences=True, segments=1).load()
    assert data.label_names == names
    expected = np.repeat(labels, 3) if labels.shape == (2,) else labels.reshape(6, -1)
    assert np.array_equal(data.labels.numpy(), expected.reshape(6, -1))
    assert data.segments.tolist() == [0, 0, 0, 1, 1, 1]


def test_pairs_from_a_file_by_name_or_by_row(tmp_path: Path) -> None:
    films(tmp_path, {"b": [8, 9], "a": [1, 2]})
    (tmp_path / "named.csv").write_text("before,after\nb/frame8.png,a/frame1.png\n\n a/frame2.png , b/frame9.png\n")
    (tmp_path / "rows.csv").write_text("first,second\n2,0\n1,3\n")
    named, rows = (Images(str(tmp_path), pairs=name).load() for name in ("named.csv", "rows.csv"))
    assert named.pairs.tolist() == rows.pairs.tolist() == [[2, 0], [1, 3]]
    assert named.label_names == ("folder",)


def test_pairs_beside_or_inside_an_array_file(tmp_path: Path) -> None:
    pairs = np.array([[0, 3], [2, 1]], dtype=np.int32)
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 5, 5), np.uint8), together=pairs)
    np.save(tmp_path / "x.npy", np.zeros((4, 5, 5), np.uint8))
    (tmp_path / "p.csv").write_text("a,b\n0,3\n2,1\n")
    for world in (
        Images(str(tmp_path / "x.npz"), pairs="together"),
        Images(str(tmp_path / "x.npz"), pairs="p.csv"),
        Images(str(tmp_path / "x.npy"), pairs="p.csv"),
    ):
        assert world.load().pairs.tolist() == pairs.tolist()


def test_new_options_are_part_of_the_identity_only_when_set(tmp_path: Path) -> None:
    old = Images("photos", size=64, digest="ab")
    assert fingerprint(old) == "dc2129bfce70"
    assert set(to_plain(old)) == {"name", "path", "size", "colour", "key", "labels", "digest"}
    new = Images("photos", size=64, digest="ab", sequences=True, segments=3)
    assert fingerprint(new) != fingerprint(old)
    for world in (old, new):
        assert from_plain(World, to_plain(world), {World: WORLDS}) == world


def test_other_pairs_are_other_data(tmp_path: Path) -> None:
    films(tmp_path, {"a": [1, 2, 3]})
    (tmp_path / "p.csv").write_text("a,b\n0,1\n")
    world = Images(str(tmp_path), pairs="p.csv").resolve()
    (tmp_path / "p.csv").write_text("a,b\n0,2\n")
    with pytest.raises(ValueError, match="has changed"):
        world.load()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("first,second\n0,4\n", "line 2: there is no row 4, rows are 0…3"),
        ("first,second\n0,1\n1,-1\n", "line 3: there is no row -1"),
        ("first,second\na/frame1.png,a/frame7.png\n", "line 2: 'a/frame7.png' names no image here"),
        ("first,second\n0,1\n1\n", "line 3 does not name two images: '1'"),
        ("first,second\n0,\n", "line 2 does not name two images"),
        ("first,second\n0,1,2\n", "line 2 does not name two images"),
        ("first,second\n1,1\n", "line 2 pairs 1 with itself"),
        ("first,second\n", "it has a header and no pairs"),
        ("", "it is empty"),
        ("0,1\n1,2\n", "write a header above it, as in first,second"),
        ("a/frame1.png,a/frame2.png\n", "write a header above it"),
        ("first;second\n0;1\n", "columns are divided by commas"),
        ("first,second\n0.5,1\n", "'0.5' names no image here"),
    ],
)
def test_wrong_pairs_are_refused_by_line(tmp_path: Path, content: str, complaint: str) -> None:
    films(tmp_path, {"b": [8, 9], "a": [1, 2]})
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(ValueError, match=complaint) as caught:
        Images(str(tmp_path), pairs="p.csv").load()
    assert str(tmp_path / "p.csv") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        (np.array([[0, 4]]), "pair 0 names row 4, and rows are 0…3"),
        (np.array([[0, 1], [-1, 0]]), "pair 1 names row -1"),
        (np.array([0, 1]), r"int64 of the shape \(2,\); pairs are whole numbers of the shape \(pair, 2\)"),
        (np.array([[0.0, 1.0]]), "float64 of the shape"),
        (np.zeros((0, 2), int), "of the shape"),
    ],
)
def test_wrong_pairs_in_an_array_are_refused_by_place(tmp_path: Path, pairs: np.ndarray, complaint: str) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 5, 5), np.uint8), pairs=pairs)
    with pytest.raises(ValueError, match=complaint):
        Images(str(tmp_path / "x.npz"), pairs="pairs").load()


def test_sequences_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    films(tmp_path / "short", {"a": [1, 2], "b": [3]})
    with pytest.raises(ValueError, match="short: b has one frame only, and a pair needs two"):
        Images(str(tmp_path / "short"), sequences=True).load()
    films(tmp_path / "mixed", {"a": [1, 2], ".": [3]})
    with pytest.raises(ValueError, match=r"frame3.png lies beside the folders of the sequences"):
        Images(str(tmp_path / "mixed"), sequences=True).load()
    films(tmp_path / "one", {"a": [1, 2, 3]})
    with pytest.raises(ValueError, match="1 segment in each of 1 sequence make 1; between 2 and 1000"):
        Images(str(tmp_path / "one"), sequences=True, segments=1).load()
    with pytest.raises(ValueError, match="a has 3 frames, fewer than its 4 segments"):
        Images(str(tmp_path / "one"), sequences=True, segments=4).load()
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 5, 5), np.uint8))
    with pytest.raises(ValueError, match="sequence 0 has one frame only"):
        Images(str(tmp_path / "x.npy"), sequences=True).load()


def test_a_pair_of_different_sizes_is_refused_by_name(tmp_path: Path) -> None:
    films(tmp_path, {"a": [1, 2]})
    picture(3, size=7).save(tmp_path / "a" / "frame3.png")
    with pytest.raises(ValueError, match=r"frame1.png is 4×4 pixels but .*frame3.png is 7×7"):
        Images(str(tmp_path), sequences=True).load()


def test_missing_labels_are_refused_by_name(tmp_path: Path) -> None:
    films(tmp_path, {"a": [1, 2]})
    (tmp_path / "labels.csv").write_text("file,kind\na/frame1.png,cat\n")
    with pytest.raises(ValueError, match=r"it has no row for a/frame2.png"):
        Images(str(tmp_path), sequences=True).load()
    np.savez(tmp_path / "f.npz", images=np.zeros((2, 3, 4, 5), np.uint8), labels=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"the labels labels have the shape \(2, 2\), but there are 6 images"):
        Images(str(tmp_path / "f.npz"), sequences=True).load()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"segments": 2}, "set sequences=true"),
        ({"furthest": 2}, "set sequences=true"),
        ({"sequences": True, "pairs": "p.csv"}, "not from both"),
    ],
)
@pytest.mark.parametrize("use", ["resolve", "load"])
def test_options_that_contradict_each_other(tmp_path: Path, options: dict, complaint: str, use: str) -> None:
    world = Images(str(films(tmp_path, {"a": [1, 2]})), **options)
    with pytest.raises(ValueError, match=complaint):
        getattr(world, use)()


def test_a_missing_file_of_pairs(tmp_path: Path) -> None:
    films(tmp_path, {"a": [1, 2]})
    with pytest.raises(FileNotFoundError, match=r"the pairs p.csv are not in"):
        Images(str(tmp_path), pairs="p.csv").load()
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 5, 5), np.uint8))
    with pytest.raises(ValueError, match="has no array 'together'"):
        Images(str(tmp_path / "x.npz"), pairs="together").load()
