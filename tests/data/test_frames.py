"""Data frames of polars and pandas, whatever their columns hold."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unweave.data.columns import Columns
from unweave.data.frames import as_frame, is_frame, numbers_of, read_frame

PANDAS = pd.DataFrame(
    {
        "whole": [1, 2, 3],
        "gaps": pd.array([1, None, 3], dtype="Int64"),
        "words": ["a", None, "c"],
        "kinds": pd.Categorical(["x", "y", "x"]),
        "when": pd.to_datetime(["2020-01-01"] * 3),
        "yes": [True, False, True],
    },
    index=[7, 8, 9],
)


def test_frames_are_known() -> None:
    for given in (PANDAS, PANDAS["whole"], pl.DataFrame({"a": [1]}), pl.Series("a", [1]), pl.LazyFrame({"a": [1]})):
        assert is_frame(given)
        assert as_frame(given).height
    assert not any(is_frame(given) for given in (np.zeros((2, 2)), [[1]], "x.csv", {"a": [1]}, None))


def test_columns_of_pandas_keep_their_numbers_and_gaps() -> None:
    frame = as_frame(PANDAS)
    assert frame.columns == list(PANDAS.columns)
    found = {name: numbers_of(frame[name]) for name in frame.columns}
    np.testing.assert_array_equal(found["whole"], [1.0, 2.0, 3.0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(found["gaps"], [1.0, np.nan, 3.0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(found["yes"], [1.0, 0.0, 1.0])  # type: ignore[arg-type]
    assert found["words"] is found["kinds"] is found["when"] is None
    assert frame["words"].to_list() == ["a", None, "c"]
    with pytest.raises(ValueError, match="several columns named 'a'"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_rows_are_read_by_name_and_refused_in_one_sentence() -> None:
    columns = Columns(("b", "a"), (1.0, 0.0), (2.0, 1.0))
    given = pl.DataFrame({"a": [4.0], "more": ["x"], "b": [5.0]})
    assert columns.standardised(given).tolist() == [[2.0, 4.0]]
    assert columns.standardised([5.0, 4.0]).tolist() == [[2.0, 4.0]]
    for bad, words in (
        (given.drop("a"), "reads the column 'a'; the frame has more, b"),
        (given.with_columns(a=pl.lit("x")), "the column 'a' holds words"),
        (np.zeros((2, 3)), r"rows of 2 columns \(b, a\), one or many; given 2 × 3"),
        ("abc", "rows are arrays, tensors, lists or data frames of numbers"),
        ([[1.0, np.inf]], "row 1 of column 'a' is inf"),
    ):
        with pytest.raises(ValueError, match=words):
            columns.standardised(bad)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty: it holds no bytes at all"),
        ("1.5,2\n3,4\n", r"begins with numbers \(1.5,2\): its first line must name the columns"),
        ("a;b\n1;2\n", r"divided by semicolons: save it with commas \(tabs in a .tsv file\)"),
        ("a,b,a\n1,2,3\n", "has several columns named 'a'"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, and the header 2"),
    ],
)
def test_text_that_is_no_table_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_frame(tmp_path / "t.csv")


@pytest.mark.parametrize("head", ["7", "0,1,2", "2019,2020", "a,b"])
def test_names_may_be_numbers_in_turn_or_a_single_one(head: str, tmp_path: Path) -> None:
    cells = ",".join("5" for _ in head.split(","))
    (tmp_path / "t.csv").write_text(f"{head}\n{cells}\n{cells}\n")
    found = read_frame(tmp_path / "t.csv")
    assert found.columns == head.split(",")
    assert found.height == 2


def test_text_of_two_bytes_a_letter_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(ValueError, match="no UTF-8 text"):
        read_frame(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert read_frame(tmp_path / "t.csv").columns == ["a", "b"]


def test_columns_of_words_that_are_numbers() -> None:
    for cells, numbers in (
        (["1", " 2.5 ", ""], [1.0, 2.5, np.nan]),
        ([None, "3", "  "], [np.nan, 3.0, np.nan]),
        (["1", "x", ""], None),
    ):
        found = numbers_of(pl.Series("a", cells))
        assert (found is None) == (numbers is None)
        if numbers is not None:
            np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize("text", ["größe,b\n1,2\n", "a,kind\n1,süß\n"])
def test_text_in_another_encoding_is_refused_and_not_garbled(tmp_path: Path, text: str) -> None:
    path = tmp_path / "words.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"words\.csv is no UTF-8 text \(Latin-1, perhaps\): save it as UTF-8"):
        read_frame(path)
    path.write_bytes(text.encode("utf-8-sig"))
    assert list(read_frame(path).columns) == text.splitlines()[0].split(",")
