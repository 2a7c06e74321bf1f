"""Points from worlds and files: one row a sample, everything else flattened."""

from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.data.micro import Micro
from unweave.evaluation.points import points_of_file, points_of_world


def test_images_are_flattened() -> None:
    data = Micro().load()
    table = points_of_world(Micro()).table
    assert table.shape == (len(data), 1024)
    torch.testing.assert_close(table[3], data.examples(torch.tensor([3]))[0].flatten())


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 4)])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_of_files_are_flattened(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", other=np.zeros(2), codes=values)
    np.testing.assert_array_equal(points_of_file(tmp_path / f"a.{kind}").table, values.reshape(5, -1))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array(3.0), "must hold numbers"),
        (np.array(["a", "b"]), "must hold numbers"),
        (np.array([1.0, np.nan]), "row 2, column 0 is nan"),
    ],
)
def test_what_are_no_points_is_refused(values: np.ndarray, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(ValueError, match=words):
        points_of_file(tmp_path / "a.npy")
