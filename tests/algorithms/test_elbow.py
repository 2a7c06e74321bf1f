"""Elbows of curves whose bend is known."""

import pytest

from unweave.algorithms.elbow import elbow


def test_a_hyperbola_bends_where_its_slope_is_the_chord():
    # 1/n on 1…16: −1/n² = (1/16 − 1)/15 = −1/16, so n = 4
    sizes = list(range(1, 17))
    found = elbow(sizes, [1.0 / n for n in sizes])
    assert (found.size, found.found) == (4, True)
    # scaled: (1 − 1/4)/(1 − 1/16) − (4 − 1)/15
    assert found.distance == pytest.approx(0.8 - 0.2)


def test_a_corner_is_its_own_elbow_rising_or_falling():
    sizes = [1, 2, 3, 5, 8, 13]
    loss = [10.0, 6.0, 2.0, 2.0, 2.0, 2.0]
    assert elbow(sizes, loss).size == 3
    assert elbow(sizes, [1.0 - value / 10.0 for value in loss]).size == 3
    assert elbow(sizes, [3.0 + 7.0 * value for value in loss]) == elbow(sizes, loss)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0], [0.0, 0.1, 0.5, 4.0]])
def test_straight_flat_and_late_curves_have_none(values):
    assert not elbow([1, 2, 3, 4], values).found


@pytest.mark.parametrize(("sizes", "values"), [([1, 2], [1.0, 2.0]), ([1, 2, 3], [1.0, 2.0]), ([1, 3, 3], [1.0] * 3)])
def test_bad_curves(sizes, values):
    with pytest.raises(ValueError, match="sizes"):
        elbow(sizes, values)
