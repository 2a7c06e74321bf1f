"""Curves of studies: what is drawn is what was given."""

import numpy as np
import pytest

from unweave.plots.curves import line_bands, stacked_types
from unweave.plots.save import to_png


def test_a_line_goes_through_the_means_and_its_band_from_least_to_largest():
    figure = line_bands({"a": {1.0: [1.0, 3.0], 10.0: [4.0]}, "b": {1.0: [0.0]}}, "x", "y", "title", marks={"n": 10.0})
    axes = figure.axes[0]
    first = next(line for line in axes.lines if line.get_label() == "a")
    assert first.get_xydata().tolist() == [[0.0, 2.0], [1.0, 4.0]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10"]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1.0, 4.0)
    assert to_png(figure).startswith(b"\x89PNG")


def test_uneven_places_stand_where_they_are():
    axes = line_bands({"a": {1.0: [1.0], 10.0: [2.0]}}, "x", "y", even=False, marks={"n": 3.5}).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1.0, 10.0]
    assert list(axes.lines[1].get_xdata()) == [3.5, 3.5]


def test_bars_are_stacked_in_the_order_of_types():
    counts = {"active": [3.0, 2.0], "mixed": [1.0, 0.5], "passive": [0.0, 1.5]}
    axes = stacked_types([1.0, 16.0], counts, x="β", title="types").axes[0]
    bottoms = np.array([bar.get_y() for bar in axes.patches]).reshape(3, 2)
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(3, 2)
    assert bottoms.tolist() == [[0.0, 0.0], [3.0, 2.0], [4.0, 2.5]]
    assert heights.sum(0) == pytest.approx([4.0, 4.0])
