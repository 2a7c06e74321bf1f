"""What loaded data knows of itself: labels and their values, pairs, and where it lies."""

import base64
import io
import re
from copy import copy

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data.factors import Factor, FactorSpace
from unweave.data.notebook import chosen_rows, rows_of
from unweave.data.world import Data, unpack

IMAGES = torch.zeros(6, 1, 2, 2, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([0, 1, 2, 0, 1, 2], 3),
        ([0, 1, 9, 0, 1, 2], 10),
        ([0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 2),
        ([0.5, 1.0, 1.0, 0.0, 1.0, 1.0], 0),
        ([-1, 1, 1, 1, 1, 1], 0),
        ([1999, 2000, 2001, 2001, 2001, 2001], 0),
        ([True, False, True, False, True, True], 2),
        ([0, 0, 0, 0, 0, 0], 1),
    ],
)
def test_whole_numbers_from_zero_are_counted_and_others_are_continuous(values: list, size: int) -> None:
    labels = torch.tensor(values)[:, None]
    assert Data(IMAGES, (1, 2, 2), labels=labels, label_names=("kind",)).label_sizes == (size,)


def test_labels_of_nothing_have_no_values() -> None:
    assert Data(IMAGES[:0], (1, 2, 2), labels=torch.zeros(0, 2), label_names=("kind", "age")).label_sizes == (0, 0)


def test_a_worlds_labels_are_its_factors() -> None:
    space = FactorSpace((Factor("kind", 3), Factor("instance", 2, hidden=True)))
    assert Data(IMAGES, (1, 2, 2), space=space).label_sizes == (3,)
    assert Data(IMAGES, (1, 2, 2)).label_sizes == ()


def test_only_what_is_unpacked_alone_comes_as_stored() -> None:
    plain = Data(IMAGES, (1, 2, 2))
    assert plain.comes_as_stored
    for part in ("nuisance", "composition", "alteration"):
        other = copy(plain)
        object.__setattr__(other, part, object())
        assert not other.comes_as_stored


def test_everything_moves_together() -> None:
    pairs = torch.tensor([[0, 1], [1, 2]])
    data = Data(IMAGES, (1, 2, 2), labels=torch.zeros(6, 1), pairs=pairs).to("meta")
    assert data.store.device == data.labels.device == data.pairs.device == torch.device("meta")


def test_rows_of_factors_take_words_for_what_is_hidden() -> None:
    space = FactorSpace((Factor("kind", 3), Factor("instance", 4, hidden=True), Factor("view", 5)))
    factors = torch.tensor([[2, 1], [0, 4]]).expand(7, 2, 2)
    words = torch.arange(14).view(7, 2, 1) * (2**32 // 14)
    rows = space.rows_of(factors, words)
    assert (space.values(rows) == factors).all()
    assert (space.coordinates(rows)[..., 1] == words[..., 0] * 4 >> 32).all()


def test_samples_of_a_space_are_uniform_over_all_values() -> None:
    space = FactorSpace((Factor("a", 3), Factor("b", 7), Factor("c", 1)))
    drawn = space.sample(6000, 4)
    for place, size in enumerate(space.sizes):
        counts = torch.bincount(drawn[:, place], minlength=size)
        assert len(counts) == size
        assert (counts - 6000 / size).abs().max() < 5 * (6000 / size) ** 0.5


def pictures(n: int) -> Data:
    return Data((torch.arange(n)[:, None, None, None] * 10 % 256).to(torch.uint8).expand(n, 1, 4, 4), (1, 4, 4))


@pytest.mark.parametrize(("n", "rows"), [(3, [0, 1, 2]), (12, list(range(12))), (23, list(range(0, 23, 2)))])
def test_a_notebook_shows_up_to_twelve_from_the_first_to_the_last(n: int, rows: list[int]) -> None:
    shown = pictures(n)._repr_html_()
    content = base64.b64decode(re.search(r"base64,([^\"]+)", shown)[1])
    strip = np.asarray(Image.open(io.BytesIO(content)))
    assert strip.shape == (6, 6 * len(rows))  # with a margin of one pixel
    assert strip[3, 3::6].tolist() == [row * 10 % 256 for row in rows]
    assert set(strip[0].tolist()) == set(strip[:, 0].tolist()) == {128}
    assert f'alt="{len(rows)} examples"' in shown
    assert f"width:{round(6 * len(rows) * 64 / 6)}px" in shown


def test_a_notebook_shows_no_pictures_of_what_has_none() -> None:
    for data in (pictures(0), Data(torch.zeros(3, 2), (2,), "floats")):
        assert data._repr_html_() == f"<p>{data!r}</p>"


@pytest.mark.parametrize(("most", "size"), [(999, 1000), (1000, 0)])
def test_up_to_a_thousand_values_are_classes(most: int, size: int) -> None:
    labels = torch.tensor([0, 1, 2, 3, 4, most])[:, None]
    assert Data(IMAGES, (1, 2, 2), labels=labels, label_names=("kind",)).label_sizes == (size,)


def test_bits_come_highest_first() -> None:
    stored = torch.tensor([[0b10000001, 0b01000000]], dtype=torch.uint8)
    expected = [1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]
    assert unpack(stored, "bits", (1, 4, 4)).flatten().tolist() == expected


@pytest.mark.parametrize(
    ("given", "rows"),
    [(-1, 9), (-10, 0), (9, 9), (slice(None, None, -4), [9, 5, 1]), (slice(2, 8, 3), [2, 5]), ([0, -1], [0, 9])],
)
def test_rows_are_chosen_as_in_a_list(given: object, rows: object) -> None:
    assert chosen_rows(given, 10).tolist() == rows


@pytest.mark.parametrize(("given", "named"), [(10, 10), (-11, -11), ([3, 12], 12), ([-12, 3], -12)])
def test_rows_beyond_the_ends_are_named(given: object, named: int) -> None:
    with pytest.raises(IndexError, match=f"row {named} of 10 examples"):
        chosen_rows(given, 10)


@pytest.mark.parametrize(("n", "more"), [(12, False), (13, True)])
def test_of_many_columns_the_first_are_shown(n: int, more: bool) -> None:
    shown = rows_of([[float(place) for place in range(n)]], [f"c{place}" for place in range(n)])
    assert ("<th>…</th>" in shown) == ("<td>…</td>" in shown) == more
    assert "<td>11</td>" in shown
    assert "c12" not in shown
