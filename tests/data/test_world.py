"""What loaded data knows of itself: labels and their values, pairs, and where it lies."""

from copy import copy

import pytest
import torch

from unweave.data.factors import Factor, FactorSpace
from unweave.data.world import Data

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
