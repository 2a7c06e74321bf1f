"""Data as people handle it in a notebook: a sequence of pictures that shows itself."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.world import Data

DATA = uw.world("micro")


def test_data_is_a_sequence():
    assert len(DATA) == 2048
    assert DATA[0].shape == (1, 32, 32)
    assert torch.equal(DATA[-1], DATA[2047])
    for rows in (slice(3, 6), [3, 4, 5], np.array([3, 4, 5]), torch.tensor([3, 4, 5]), range(3, 6)):
        assert torch.equal(DATA[rows], DATA.examples(torch.tensor([3, 4, 5])))
        assert torch.equal(DATA.images(rows), DATA[rows])
    assert torch.equal(DATA[::-1][0], DATA[2047])
    mask = np.zeros(2048, dtype=bool)
    mask[7] = True
    assert torch.equal(DATA[mask], DATA[[7]])
    few = Data(DATA.store[:300], DATA.shape)
    assert sum(1 for _ in few) == 300
    assert all(torch.equal(one, other) for one, other in zip(few, few.images()))
    assert DATA.images(5).shape == (1, 1, 32, 32)


def test_a_loader_of_pytorch_takes_it():
    batch = next(iter(torch.utils.data.DataLoader(DATA, batch_size=16)))  # type: ignore[arg-type]
    assert torch.equal(batch, DATA[:16])


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (2048, IndexError, "row 2048 of 2,048 examples"),
        ([0, -2049], IndexError, "row -2049 of 2,048 examples"),
        (0.5, TypeError, "rows are whole numbers"),
        ([[1, 2]], TypeError, "rows are whole numbers"),
        (np.array([True, False]), TypeError, "one True or False for each of the 2,048 examples"),
        ("first", TypeError, "rows are numbers, slices, lists or arrays of numbers, not str"),
    ],
)
def test_rows_that_are_none_are_refused(rows: object, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        DATA[rows]


def test_it_shows_itself():
    assert repr(DATA) == "Data: 2,048 examples of 1 × 32 × 32; factors x (16), y (16), size (8)"
    assert "data:image/png;base64," in DATA._repr_html_()
    points = uw.world("synth_lin")
    assert "<img" not in points._repr_html_()
    labelled = Data(DATA.store[:2], DATA.shape, labels=torch.zeros(2, 1), label_names=("<b>",))
    assert "&lt;b&gt;" in labelled._repr_html_()
