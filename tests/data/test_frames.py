"""Data frames of polars and pandas, whatever their columns hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unweave.data.columns import Columns
from unweave.data.frames import as_frame, is_frame, numbers_of

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
