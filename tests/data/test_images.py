"""The user's own images: every kind of source, every kind of fault."""

import gzip
import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from unweave.cli import main
from unweave.config import fingerprint
from unweave.data.images import Images
from unweave.data.pixels import decoded, fitted
from unweave.data.world import called

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 8, 6), dtype=np.uint8)
RGB = RNG.integers(0, 256, (5, 8, 6, 3), dtype=np.uint8)


def folder_of(path: Path, images: np.ndarray, names: list[str] | None = None) -> Path:
    for place, image in enumerate(images):
        file = path / (names[place] if names else f"{place}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "h5", "idx", "idx.gz", "folder"])
def test_every_source_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    content = struct.pack(">HBB3I", 0, 8, 3, *GREY.shape) + GREY.tobytes()
    if kind == "npz":
        np.savez(path, imgs=GREY)
    elif kind == "npy":
        np.save(path, GREY)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["x"] = GREY
    elif kind == "folder":
        folder_of(path, GREY)
    else:
        path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    data = Images(str(path)).load()
    assert data.shape == (1, 8, 6)
    assert data.packing == "bytes"
    assert data.labels is None
    np.testing.assert_array_equal(data.store[:, 0].numpy(), GREY)


def test_layouts(tmp_path: Path) -> None:
    np.save(tmp_path / "last.npy", RGB)
    np.save(tmp_path / "first.npy", RGB.transpose(0, 3, 1, 2))
    last, first = (Images(str(tmp_path / name)).load() for name in ("last.npy", "first.npy"))
    assert last.shape == (3, 8, 6)
    assert torch.equal(last.examples(torch.arange(5)), first.examples(torch.arange(5)))
    np.testing.assert_allclose(first.examples(torch.tensor([2])).numpy()[0] * 255, RGB[2].transpose(2, 0, 1), atol=1e-4)


def test_floats_stay_exact_and_masks_become_white(tmp_path: Path) -> None:
    floats = RNG.random((4, 5, 5)).astype(np.float64)
    np.save(tmp_path / "f.npy", floats)
    data = Images(str(tmp_path / "f.npy")).load()
    assert data.packing == "floats"
    np.testing.assert_array_equal(data.examples(torch.arange(4)).numpy()[:, 0], floats.astype(np.float32))
    mask = RNG.integers(0, 2, (4, 5, 5))
    for number in (np.uint8, np.bool_, np.int64):
        np.save(tmp_path / "m.npy", mask.astype(number))
        np.testing.assert_array_equal(Images(str(tmp_path / "m.npy")).load().examples(torch.arange(4))[:, 0], mask)


def test_colour_is_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "rgb.npy", RGB)
    np.save(tmp_path / "grey.npy", GREY)
    grey = Images(str(tmp_path / "rgb.npy"), colour="grey").load().store.numpy()[:, 0]
    pillow = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in RGB])
    np.testing.assert_allclose(grey.astype(int), pillow, atol=1)
    repeated = Images(str(tmp_path / "grey.npy"), colour="rgb").load()
    assert repeated.shape == (3, 8, 6)
    np.testing.assert_array_equal(repeated.store[:, 2].numpy(), GREY)
    folder_of(tmp_path / "mixed", GREY[:2])
    folder_of(tmp_path / "mixed", RGB[:1], ["z.png"])
    assert Images(str(tmp_path / "mixed")).load().shape == (3, 8, 6)


def test_size_cuts_the_central_square(tmp_path: Path) -> None:
    np.save(tmp_path / "rgb.npy", RGB)
    store = Images(str(tmp_path / "rgb.npy"), size=4).load().store.numpy()
    expected = Image.fromarray(RGB[3][1:7]).resize((4, 4), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(store[3].transpose(1, 2, 0), np.asarray(expected))
    folder_of(tmp_path / "files", RGB)
    np.testing.assert_array_equal(Images(str(tmp_path / "files"), size=4).load().store.numpy(), store)
    steps = np.zeros((2, 9, 9), np.float32)
    steps[:, 4:] = 1
    np.save(tmp_path / "steps.npy", steps)
    small = Images(str(tmp_path / "steps.npy"), size=5).load().store
    assert 0 <= float(small.min()) <= float(small.max()) <= 1


def test_special_files(tmp_path: Path) -> None:
    deep = (RNG.random((8, 6)) * 65535).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    data = Images(str(tmp_path)).load()
    np.testing.assert_allclose(data.store[0, 0].numpy(), deep / 257, atol=0.51)
    (tmp_path / "deep.png").unlink()
    see_through = np.dstack([RGB[0], np.zeros((8, 6), np.uint8)])
    Image.fromarray(see_through).save(tmp_path / "clear.png")
    assert int(Images(str(tmp_path)).load().store.max()) == 0


def test_labels_in_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=GREY, y_train=np.array([3, 1, 2, 2, 0]))
    data = Images(str(tmp_path / "a.npz")).load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [3, 1, 2, 2, 0]
    assert data.label_names == ("y_train",)
    assert Images(str(tmp_path / "a.npz"), labels="none").load().labels is None
    factors = np.array([[0, 0.5], [1, 0.25], [0, 0.5], [1, 0.0], [2, 1.0]])
    np.savez(tmp_path / "b.npz", pictures=GREY, other=GREY[:2], truth=factors)
    data = Images(str(tmp_path / "b.npz"), key="pictures", labels="truth").load()
    assert data.labels is not None
    np.testing.assert_allclose(data.labels.numpy(), factors)
    assert data.label_names == ("truth_0", "truth_1")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["images"] = GREY
        file["labels"] = ["dog", "cat", "dog", "ant", "cat"]
    data = Images(str(tmp_path / "c.h5")).load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [2, 1, 2, 0, 1]


def test_labels_beside_idx_and_npy(tmp_path: Path) -> None:
    images = struct.pack(">HBB3I", 0, 8, 3, *GREY.shape) + GREY.tobytes()
    (tmp_path / "my-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "my-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 5) + bytes([4, 3, 2, 1, 0]))
    data = Images(str(tmp_path / "my-images-idx3-ubyte")).load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [4, 3, 2, 1, 0]
    np.save(tmp_path / "x.npy", GREY)
    np.save(tmp_path / "x_labels.npy", np.arange(5))
    data = Images(str(tmp_path / "x.npy"), labels="x_labels.npy").load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_labels_of_folders(tmp_path: Path) -> None:
    folder_of(tmp_path / "f", GREY, ["b/1.png", "a/2.png", "b/0.png", "a/0.png", "c/0.png"])
    data = Images(str(tmp_path / "f")).load()
    assert data.labels is not None
    assert data.labels[:, 0].tolist() == [0, 0, 1, 1, 2]
    np.testing.assert_array_equal(data.store[:, 0].numpy(), GREY[[3, 1, 2, 0, 4]])
    rows = [f"{name},{age},{kind}" for name, age, kind in (("b/1.png", 3, "x"), ("a/2.png", 5, "y"))]
    rows += ["b/0.png,1,x", "a/0.png,0,z", "c/0.png,9,x"]
    (tmp_path / "f" / "labels.csv").write_text("file,age,kind\n" + "\n".join(rows) + "\n")
    data = Images(str(tmp_path / "f")).load()
    assert data.label_names == ("age", "kind")
    assert data.labels is not None
    assert data.labels.tolist() == [[0, 2], [5, 1], [1, 0], [3, 0], [9, 0]]


def test_other_contents_are_another_run(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "f", GREY)
    world = Images(str(path)).resolve()
    assert world.resolve() == world
    assert world.colour == "grey"
    assert len(world.load()) == 5
    names = [fingerprint(world)]
    changed = GREY[0].copy()
    changed[0, 0] ^= 1
    Image.fromarray(changed).save(path / "0.png")
    names.append(fingerprint(Images(str(path)).resolve()))
    with pytest.warns(UserWarning, match="f has changed; going on with the 5 images that were kept in"):
        assert torch.equal(world.load().store[0, 0], torch.from_numpy(GREY[0]))
    (path / "0.png").rename(path / "7.png")
    names.append(fingerprint(Images(str(path)).resolve()))
    (path / "labels.csv").write_text("file,n\n")
    names.append(fingerprint(Images(str(path)).resolve()))
    assert len(set(names)) == 4


def test_a_folder_is_one_however_its_path_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "f", GREY)
    monkeypatch.chdir(tmp_path)
    ways = ("f", "f/", "./f", "f//", str(tmp_path / "f"), "../" + tmp_path.name + "/f")
    assert len({fingerprint(Images(path).resolve()) for path in ways}) == 1
    assert Images("f/").resolve().card().title == "f"
    monkeypatch.chdir(tmp_path / "f")
    assert Images(".").resolve().card().title == "f"


def test_a_run_survives_a_folder_that_grows_moves_or_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = folder_of(tmp_path / "photos" / "a", GREY).parent
    folder_of(tmp_path / "photos" / "b", GREY)
    world = Images("photos").resolve()
    before = world.load()
    assert before.label_names == ("folder",)
    monkeypatch.chdir("/")
    assert torch.equal(world.load().store, before.store)  # it is known where the folder was
    Image.fromarray(GREY[0]).save(path / "b" / "new.png")
    with pytest.warns(UserWarning, match="photos has changed; going on with the 10 images"):
        kept = world.load()
    assert torch.equal(kept.store, before.store)
    assert torch.equal(kept.labels, before.labels)
    path.rename(tmp_path / "gone")
    with pytest.warns(UserWarning, match="photos is not there any more; going on with the 10 images"):
        assert world.load().label_names == ("folder",)
    (tmp_path / "gone" / "b" / "new.png").unlink()
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    (tmp_path / "new").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "new" / "photos")
    assert torch.equal(world.near(tmp_path / "new" / "run").load().store, before.store)  # it moved with its run


def test_a_changed_file_is_refused_where_no_copy_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, images=GREY)
    world = Images(str(path)).resolve()
    np.savez(path, images=GREY[::-1])
    refused(world, "own.npz has changed, and no copy of the 5 images that this run was trained on was kept")


def test_the_card_knows_shape_number_and_name(tmp_path: Path) -> None:
    wide = np.zeros((4, 20, 30, 3), np.uint8)
    np.savez(tmp_path / "cells.npz", images=wide)
    for world, shape in (
        (Images(str(tmp_path / "cells.npz")), (3, 20, 30)),
        (Images(str(tmp_path / "cells.npz"), size=16), (3, 16, 16)),
        (Images(str(tmp_path / "cells.npz"), size=24, height=8, colour="grey"), (1, 8, 24)),
    ):
        for one in (world, world.resolve()):
            card = one.card()
            assert (card.shape, card.n_examples, card.title) == (shape, 4, "cells")
    named = Images(str(tmp_path / "cells.npz"), called="my cells").resolve()
    assert called(named) == "my cells"
    assert fingerprint(named) == fingerprint(Images(str(tmp_path / "cells.npz")).resolve())
    (tmp_path / "cells.npz").unlink()
    assert named.card().shape == (3, 20, 30)


def test_images_come_to_a_size_by_cutting_padding_or_stretching(tmp_path: Path) -> None:
    image = np.zeros((2, 8, 16), np.uint8)
    image[:, :, 4:12] = 255  # the middle half is white
    np.savez(tmp_path / "own.npz", images=image)

    def at(**how: object) -> np.ndarray:
        return Images(str(tmp_path / "own.npz"), **how).load().store[0, 0].numpy()

    assert (at(size=8) == 255).all()
    assert at(size=16, height=8, fit="stretch").tolist() == image[0].tolist()
    padded = at(size=16, fit="pad")
    assert padded.shape == (16, 16)
    assert padded[4:12].tolist() == image[0].tolist()
    assert not padded[:4].any()
    assert not padded[12:].any()
    stretched = at(size=8, fit="stretch")
    assert (stretched[:, 3:5] > 250).all()
    assert (stretched[:, [0, 7]] < 20).all()
    with pytest.raises(ValueError, match="give size with them"):
        Images(str(tmp_path / "own.npz"), fit="pad").resolve()


def test_sizes_that_differ_are_told_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lying = Image.Exif()
    lying[0x0112] = 6
    Image.new("RGB", (30, 20), "red").save(tmp_path / "b.png")
    Image.new("RGB", (12, 10), "blue").save(tmp_path / "a.jpg", exif=lying)
    Image.new("RGB", (64, 48)).save(tmp_path / "c.png")
    assert Images(str(tmp_path)).sizes() == [(10, 12), (30, 20), (64, 48)]
    assert decoded(tmp_path / "a.jpg").shape == (3, 12, 10)
    assert main(["worlds", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "3, 10 × 12 … 64 × 48 pixels, colour" in told
    assert "needs one size for all: add --world.size 64" in told
    assert main(["worlds", str(tmp_path), "--json"]) == 0
    (plain,) = json.loads(capsys.readouterr().out).values()
    assert (plain["shape"], plain["sizes"]) == ([3, None, None], [[10, 12], [64, 48]])
    for name in ("a.jpg", "c.png"):
        (tmp_path / name).unlink()
    Image.new("RGB", (30, 20)).save(tmp_path / "d.png")
    assert main(["worlds", str(tmp_path)]) == 0
    assert "2, each 3×20×30" in capsys.readouterr().out


def test_labels_come_from_a_second_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", images=GREY)
    np.savez(tmp_path / "more.npz", labels=np.arange(5))
    np.save(tmp_path / "more.npy", np.arange(5) * 2)
    for name, factor in (("more.npz", 1), ("more.npy", 2)):
        found = Images(str(tmp_path / "own.npz"), labels=name).load()
        assert found.labels[:, 0].tolist() == [factor * row for row in range(5)]
    folder = folder_of(tmp_path / "f", GREY)
    np.save(folder / "of.npy", np.arange(5))
    assert Images(str(folder), labels="of.npy").load().labels[:, 0].tolist() == [0, 1, 2, 3, 4]
    refused(Images(str(tmp_path / "own.npz"), labels="none.npz"), "the labels none.npz are not in")


def refused(world: Images, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        world.load()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.7, r"x\.npy: image 3, row 2, column 4: 1\.7 lies outside \[0, 1\]\. Divide bytes by 255 first"),
        (-0.1, r"image 3, row 2, column 4: -0\.1 lies outside"),
        (np.nan, "image 3, row 2, column 4: nan lies outside"),
        (np.inf, "image 3, row 2, column 4: inf lies outside"),
    ],
)
def test_pixels_outside_are_placed(tmp_path: Path, value: float, message: str) -> None:
    images = np.full((5, 6, 7), 0.5)
    images[3, 2, 4] = value
    images[4, 0, 0] = value
    np.save(tmp_path / "x.npy", images)
    refused(Images(str(tmp_path / "x.npy")), message)
    if np.isfinite(value):
        np.save(tmp_path / "i.npy", np.where(images == value, 300, 7)[..., None].repeat(3, axis=-1))
        refused(Images(str(tmp_path / "i.npy")), r"image 3, channel 0, row 2, column 4: 300 lies outside \[0, 255\]")


def test_every_image_of_many_is_looked_at(tmp_path: Path) -> None:
    images = np.full((2001, 1, 1), 0.5)
    for place in (999, 1000, 1001, 2000):
        np.save(tmp_path / "x.npy", np.where(np.arange(2001)[:, None, None] == place, 2.0, images))
        refused(Images(str(tmp_path / "x.npy")), f"image {place}, row 0, column 0: 2 lies outside")


def test_wrong_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for shape in ((5, 6), (5, 6, 7, 4), (5, 2, 6, 7), (0, 6, 7), (1, 2, 3, 4, 5)):
        np.save(path, np.zeros(shape, np.uint8))
        refused(Images(str(path)), r"x\.npy holds an array")
    np.save(path, np.array([[["a"]]]))
    refused(Images(str(path)), "not images")
    np.savez(tmp_path / "x.npz", a=GREY, b=GREY)
    pasted = r'say which of a, b it is, --world.key a \(in Python key="a"\)'
    refused(Images(str(tmp_path / "x.npz")), f"no array named like images .*{pasted}")
    refused(Images(str(tmp_path / "x.npz"), key="c"), r"x\.npz has no array 'c'; it has a, b")
    np.savez(tmp_path / "y.npz", images=GREY, labels=np.zeros(4))
    refused(Images(str(tmp_path / "y.npz")), r"y\.npz: the labels labels have the shape \(4,\), but there are 5 images")
    np.savez(tmp_path / "y.npz", images=GREY, labels=np.array([0, 1, np.nan, 0, 0]))
    refused(Images(str(tmp_path / "y.npz")), r"y\.npz: the label of image 2 is nan")
    np.savez(tmp_path / "o.npz", images=np.array([{}, None], dtype=object))
    refused(Images(str(tmp_path / "o.npz")), r"o\.npz holds Python objects, which are never read: save numbers in it")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=GREY)
    np.save(tmp_path / "x.npy", GREY)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = GREY
    for name in ("x.npz", "x.npy", "x.h5"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-200])
        refused(Images(str(path)), rf"{name} cannot be read")
    folder_of(tmp_path / "f", RGB)
    bad = tmp_path / "f" / "3.png"
    bad.write_bytes(bad.read_bytes()[:-80])
    refused(Images(str(tmp_path / "f")), r"3\.png cannot be read as an image")
    bad.write_text("no image")
    refused(Images(str(tmp_path / "f")), r"3\.png cannot be read as an image")


def test_faults_of_folders_are_named(tmp_path: Path) -> None:
    refused(Images(), "needs the path")
    refused(Images(str(tmp_path / "absent")), "absent' is not there")
    refused(Images(str(tmp_path)), "holds no image file")
    (tmp_path / "notes.txt").write_text("hello")
    refused(Images(str(tmp_path / "notes.txt")), "none of a folder")
    folder_of(tmp_path / "f", GREY)
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "f" / "9.png")
    (tmp_path / "one").mkdir()
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "one" / "9.png")
    np.save(tmp_path / "one.npy", np.zeros((1, 9, 9), np.uint8))
    for name in ("one", "one.npy"):
        with pytest.raises(ValueError, match=f"{name} holds a single image, and a model learns how images differ"):
            Images(str(tmp_path / name)).resolve()
    refused(Images(str(tmp_path / "f")), r"0\.png is 6×8 pixels but .*9\.png is 9×9: give one size")
    assert Images(str(tmp_path / "f"), size=6).load().shape == (1, 6, 6)
    (tmp_path / "f" / "labels.csv").write_text("file,n\n0.png,1\n")
    refused(Images(str(tmp_path / "f"), size=6), r"labels\.csv cannot be read .*no row for 1\.png")
    (tmp_path / "f" / "labels.csv").write_text("file,n\nx.png,1\n")
    refused(Images(str(tmp_path / "f"), size=6), r"labels\.csv cannot be read .*'x\.png' names no image here")
    refused(Images(str(tmp_path / "f"), labels="mine.csv"), r"the labels mine\.csv are not in")
    with pytest.raises(ValueError, match="size must be at least 1 pixel, not 0"):
        Images("x", size=0)


def test_floats_become_grey_by_their_luma(tmp_path: Path) -> None:
    colours = np.zeros((2, 2, 2, 3), np.float32)
    colours[0, 0, 0], colours[0, 0, 1], colours[0, 1, 0], colours[0, 1, 1] = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)
    np.save(tmp_path / "x.npy", colours)
    grey = Images(str(tmp_path / "x.npy"), colour="grey").load().store
    np.testing.assert_allclose(grey[0, 0].numpy(), [[0.299, 0.587], [0.114, 1.0]], atol=1e-6)
    assert 0 <= float(grey.min()) <= float(grey.max()) <= 1
    np.save(tmp_path / "x.npy", (colours * 255).astype(np.uint8))
    assert Images(str(tmp_path / "x.npy"), colour="grey").load().store[0, 0].tolist() == [[76, 150], [29, 255]]


def test_deep_and_see_through_pixels(tmp_path: Path) -> None:
    for value, expected in ((-900, 0), (0, 0), (128, 0), (129, 1), (65535, 255), (70_000, 255)):
        Image.fromarray(np.full((2, 2), value, np.int32)).save(tmp_path / "x.tiff")
        assert decoded(tmp_path / "x.tiff").tolist() == [[[expected] * 2] * 2]
    half = Image.merge("LA", [Image.new("L", (3, 2), 200), Image.new("L", (3, 2), 127)])
    half.save(tmp_path / "half.png")
    found = decoded(tmp_path / "half.png")
    assert found.shape == (1, 2, 3)  # grey stays grey
    np.testing.assert_allclose(found, 200 * 127 / 255, atol=1)
    Image.fromarray(np.zeros((2, 2), np.float32)).save(tmp_path / "f.tiff")
    with pytest.raises(ValueError, match="holds floating-point pixels"):
        decoded(tmp_path / "f.tiff")


def test_something_is_left_of_the_narrowest_images() -> None:
    tall = np.arange(100, dtype=np.uint8).reshape(1, 100, 1).repeat(10, axis=2)
    assert set(fitted(tall, 100, 1, "crop").flatten().tolist()) == {49}  # one row, the middle one
    wide = tall.transpose(0, 2, 1)
    assert set(fitted(np.ascontiguousarray(wide), 1, 100, "crop").flatten().tolist()) == {49}
    line = np.full((1, 1, 100), 255, np.uint8)
    padded = fitted(line, 10, 10, "pad")[0]
    assert [row for row in range(10) if padded[row].any()] == [4]
    padded = fitted(np.ascontiguousarray(line.transpose(0, 2, 1)), 10, 10, "pad")[0]
    assert [column for column in range(10) if padded[:, column].any()] == [4]


def test_two_images_are_enough_and_progress_is_told(tmp_path: Path) -> None:
    path, told = folder_of(tmp_path / "f", GREY[:2]), []
    world = Images(str(path)).resolve()
    assert world.found == (2, 1, 8, 6)
    world.load(lambda *said: told.append(said))
    assert [one for one in told if one[0] == "reading f"] == [("reading f", 0, 2)]
    np.save(tmp_path / "two.npy", GREY[:2])
    assert Images(str(tmp_path / "two.npy")).resolve().found == (2, 1, 8, 6)


def test_what_was_found_is_said(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "f", RGB, ["a.png", "b.png", "c.png", "d.png", "e.png"])
    (path / "labels.csv").write_text("file,n\n" + "".join(f"{name}.png,1\n" for name in "abcde"))
    for name in ("x.txt", "y.txt", "README"):
        (path / name).write_text("not an image")
    world = Images(str(path), size=6, height=8)
    said = "f: 5 images of 6 × 8 pixels, cut, colour; labels: n; not read: 2 .txt, 1 without an ending"
    assert world.told(world.load()) == said


def test_a_folder_of_other_sizes_is_refused_by_both(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "f", RGB)
    Image.fromarray(RGB[0][:5]).save(path / "9.png")
    refused(Images(str(path)), r"0\.png is 6×8 pixels but .*9\.png is 6×5: give one size for all")
