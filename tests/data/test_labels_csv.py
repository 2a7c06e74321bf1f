"""labels.csv: the order of numbers is never lost, and every fault is named by its place."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave.data.images import Images

FILES = ("0.png", "1.png", "sub/2.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for value, name in enumerate(FILES):
        Image.fromarray(np.full((4, 4), value, np.uint8)).save(tmp_path / name)
    return tmp_path


def labels_of(folder: Path, content: str | bytes) -> list[list[float]]:
    (folder / "labels.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    labels = Images(str(folder)).load().labels
    assert labels is not None
    found: list[list[float]] = labels.tolist()
    return found


def rows(*cells: str, header: str = "file,n", ends: str = "\n") -> str:
    return ends.join([header, *(f"{file},{cell}" for file, cell in zip(FILES, cells)), ""])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (rows("9", "10", "11"), [[9], [10], [11]]),
        (rows("9", " 10", "11 "), [[9], [10], [11]]),
        (rows('"9"', '"10"', '"11"'), [[9], [10], [11]]),
        (rows("9", "10", "11", ends="\r\n"), [[9], [10], [11]]),
        ("\ufeff" + rows("9", "10", "11"), [[9], [10], [11]]),
        ("\n\n" + rows("9", "10", "11") + "\n,\n", [[9], [10], [11]]),
        ("file,n\nsub/2.png,11\n1.png,10\n0.png,9\n", [[9], [10], [11]]),
        (rows("9.5", "1e1", "-11."), [[9.5], [10], [-11]]),
        (rows("b", "a", "b"), [[1], [0], [1]]),
        (rows("b1", "b10", "b2"), [[0], [1], [2]]),
        (rows('"b, c"', '"a ""x"""', "b"), [[2], [0], [1]]),
        (rows("9,b", "10,a", "11,b", header="file,n,kind"), [[9, 1], [10, 0], [11, 1]]),
        ("file,n\n./0.png,9\n././1.png,10\nsub\\2.png,11\n", [[9], [10], [11]]),
        (rows("1e40", "1.00000000001", "1.00000000002"), [[1e40], [1.00000000001], [1.00000000002]]),
    ],
)
def test_numbers_by_their_size_words_by_the_alphabet(folder: Path, content: str, expected: list[list[float]]) -> None:
    assert labels_of(folder, content) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (rows("9", "", "11"), r"column 'n' of 1\.png \(line 3\) is empty"),
        (rows("9", "  ", "11"), r"column 'n' of 1\.png \(line 3\) is empty"),
        (rows("9", "10", "NaN"), r"column 'n' of sub/2\.png \(line 4\) is NaN, which is no number"),
        (rows("9", "-inf", "11"), r"column 'n' of 1\.png \(line 3\) is -inf, which is no number"),
        (rows("9", "1e999", "11"), r"column 'n' of 1\.png \(line 3\) is inf, which is no number"),
        (rows("cat", "nan", "dog"), r"column 'n' of 1\.png \(line 3\) is nan, which is no number"),
        (rows("9", "ten", "11"), r"1\.png \(line 3\) is the word 'ten', but .*0\.png \(line 2\) is the number 9"),
        (rows('"9,5"', '"10,5"', '"11,5"'), r"0\.png \(line 2\) is '9,5': write numbers as 1234\.5"),
        (rows("1_000", "2_000", "10_000"), r"is '1_000': write numbers as 1234\.5"),
        (rows("1", "2", "9007199254740993"), r"sub/2\.png \(line 4\) is 9007199254740993: beyond 2\*\*53"),
        (rows("1", "2", "3") + "0.png,4\n", r"lines 2 and 5 are both of 0\.png"),
        (rows("1", "2"), r"no row for sub/2\.png"),
        (rows("1"), r"no row for 1\.png and 1 more"),
        (rows("1", "2", "3") + "x.png,4\n", r"line 5: 'x\.png' names no image here"),
        (rows("1", "2,3", "3"), "line 3 has 3 cells, the header has 2"),
        (rows("1", "2", "3", header="0.png,7"), "write a header above it"),
        (rows("1", "2", "3", header="file"), "no column of labels beside the file names"),
        ("file;n\n0.png;1\n", "columns are divided by commas"),
        (rows("1,2", "1,2", "1,2", header="file,a,a"), "2 columns are named 'a'"),
        (rows("1,2", "1,2", "1,2", header="file,a,"), "column 3 has no name"),
        (rows("1", '"2', "3"), "quotes come in pairs"),
        (rows("1", "2", "3").encode("utf-16"), "no UTF-8 text"),
        (rows("1", "2", "3").encode("utf-16-le"), "zero bytes"),
        (rows("1", "zwölf", "3").encode("latin-1"), "no UTF-8 text"),
        ("", "it is empty"),
        ("\n \n", "it is empty"),
    ],
)
def test_faults_are_named(folder: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        labels_of(folder, content)
    assert str(folder / "labels.csv") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbered_folders_keep_their_order(tmp_path: Path) -> None:
    for name in ("9", "10", "11"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / name / "a.png")
    labels = Images(str(tmp_path)).load().labels
    assert labels is not None
    assert sorted(labels[:, 0].tolist()) == [9, 10, 11]
    (tmp_path / "other").mkdir()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "other" / "a.png")
    labels = Images(str(tmp_path)).load().labels
    assert labels is not None
    assert labels[:, 0].tolist() == [1, 2, 0, 3]  # of 10, 11, 9, other


def test_text_in_arrays_keeps_its_order(tmp_path: Path) -> None:
    images = np.zeros((3, 4, 4), np.uint8)
    for values, expected in ((["9", "10", "11"], [9, 10, 11]), ([b"b", b"a", b"c"], [1, 0, 2])):
        np.savez(tmp_path / "x.npz", images=images, labels=np.array(values))
        labels = Images(str(tmp_path / "x.npz")).load().labels
        assert labels is not None
        assert labels[:, 0].tolist() == expected
    for bad, words in (
        (np.array(["9", "", "11"]), "image 1 is empty"),
        (np.array([1.0, np.inf, 3.0]), "image 1 is inf"),
        (np.array([1, 2, 2**63], dtype=np.uint64), r"image 2 is 9223372036854775808: beyond 2\*\*53"),
        (np.array([1, 2, 3], dtype=complex), "neither a number nor a word"),
    ):
        np.savez(tmp_path / "x.npz", images=images, labels=bad)
        with pytest.raises(ValueError, match=words):
            Images(str(tmp_path / "x.npz")).load()


@pytest.mark.parametrize("cell", ["0", "0.PNG"])
def test_the_image_that_was_meant_is_named(folder: Path, cell: str) -> None:
    with pytest.raises(ValueError, match=rf"line 2: '{cell}' names no image here; write 0\.png"):
        labels_of(folder, f"file,n\n{cell},1\n1.png,2\nsub/2.png,3\n")
