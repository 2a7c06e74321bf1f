"""Lines with bands."""

import itertools

import numpy as np

from unweave.plots.bands import Band, bands


def test_long_numbers_have_room_on_the_axis() -> None:
    line = Band(*(np.linspace(0.0, 375_000.0, 7) for _ in range(4)))
    figure = bands({"long": {"one": line}}, "step", "Δ_KL")
    (axes,) = figure.axes
    figure.canvas.draw()
    shown = [label for label in axes.get_xticklabels() if label.get_text()]
    assert "100,000" in [label.get_text() for label in shown]
    boxes = [label.get_window_extent() for label in shown]
    assert all(first.x1 < second.x0 for first, second in itertools.pairwise(boxes))
