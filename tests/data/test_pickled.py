"""Pickles are read, never run."""

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unweave.data.pickled import read_pickled


def written(path: Path, value: Any, protocol: int) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_and_arrays_come_out(tmp_path: Path, protocol: int) -> None:
    generator = np.random.default_rng(0)
    arrays = [
        generator.random((3, 4, 5)) > 0.5,
        generator.random((7, 3)).astype(np.float32),
        np.asfortranarray(generator.random((4, 6))),
        np.arange(5, dtype=">i4"),
        np.zeros((0, 2)),
    ]
    value = {"a": arrays, "b": [1, -2, 3.5, None, True, "Füße", b"\x00\xff", (), (1, 2), (1, 2, 3, 4)], "c": 2**40}
    # not every protocol writes arrays in line
    if protocol == 5:
        value["a"] = []
    found = read_pickled(written(tmp_path / "x.pickle", value, protocol))
    assert found["b"] == value["b"]
    assert found["c"] == 2**40
    for one, other in zip(found["a"], value["a"], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_what_is_used_twice_is_one(tmp_path: Path) -> None:
    shared = np.arange(3.0)
    found = read_pickled(written(tmp_path / "x.pickle", [shared, shared], 4))
    assert np.array_equal(found[0], found[1])


class Hostile:
    def __reduce__(self) -> Any:
        return os.system, ("touch hostile",)


@pytest.mark.parametrize(
    "value",
    [
        Hostile(),
        [Hostile()],
        OrderedDict(a=1),
        {1, 2},
        np.array([{}], dtype=object),
        Path("x"),
        np.dtype("f4"),
        complex,
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_everything_else_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="it "):
        read_pickled(written(tmp_path / "x.pickle", value, protocol))
    assert not (tmp_path / "hostile").exists()
