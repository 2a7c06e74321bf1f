"""Figures of studies: what is drawn is what was given, and every point says what it is."""

import html
import itertools
import re

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from unweave.pages.live_chart import live_chart
from unweave.plots.bands import Band, bands
from unweave.plots.forest import forest
from unweave.plots.histogram import histogram
from unweave.plots.save import to_pdf
from unweave.plots.scatter import scatter
from unweave.plots.violins import outline, spread_out, violins


def test_the_outline_of_a_violin_is_scipys_density() -> None:
    values = np.random.default_rng(0).normal(size=40)
    heights, widths = outline(values)
    density = gaussian_kde(values)(heights)
    assert widths == pytest.approx(density / density.max())
    assert (heights[0], heights[-1]) == (values.min(), values.max())


def test_a_violin_shows_its_median_and_all_of_few_values() -> None:
    samples = [[0.1, 0.2, 0.9], [0.5, 0.5], [], [0.3, float("nan")]]
    figure = violins(samples, ["a", "b", "nothing", "d"], "title", "score", families=[0, 0, 1, 1])
    axes = figure.axes[0]
    dots = {one.get_label(): np.asarray(one.get_offsets())[:, 1] for one in axes.collections if len(one.get_offsets())}
    assert dots["a, median"] == pytest.approx([0.2])
    assert sorted(dots["a"]) == pytest.approx([0.1, 0.2, 0.9])
    assert dots["d"] == pytest.approx([0.3])
    assert "nothing" not in dots
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b", "nothing", "d"]


def test_points_are_spread_evenly_and_alike_every_time() -> None:
    places = spread_out(1000)
    assert np.abs(np.histogram(places, 10, (-1, 1))[0] - 100).max() <= 3
    assert np.array_equal(places, spread_out(1000))


def test_bands_hold_what_was_given_and_leave_unknown_ends_open() -> None:
    x = np.arange(3.0)
    one = Band(x, x**2, x**2 - 1, np.array([1.0, np.nan, 5.0]))
    figure = bands({"left": {"a": one, "b": one}, "right": {"b": one}}, "x", "y", tick_names=["p", "q", "r"])
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["a", "b"]
    assert right.lines[0].get_color() == left.lines[1].get_color()
    assert left.lines[0].get_ydata() == pytest.approx([0, 1, 4])
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["p", "q", "r"]


def test_histograms_count_shares_over_common_bins() -> None:
    figure = histogram({"a": [0.0, 0.1, 0.9, 1.0], "b": [0.5]}, n_bins=2)
    heights = [patch.get_height() for patch in figure.axes[0].containers[0]]
    assert heights == pytest.approx([0.5, 0.5])


def test_a_forest_shows_intervals_and_published_values() -> None:
    figure = forest([0.5, 0.7], [[0.4, 0.6], [np.nan, np.nan]], [0.55, np.nan], ["one", "two"])
    lines = figure.axes[0].collections[0].get_segments()
    assert lines[0] == pytest.approx(np.array([[0.4, 0], [0.6, 0]]))


@pytest.mark.parametrize("n_rows", [2, 5, 30])
def test_a_forest_has_room_for_its_names_and_its_legend(n_rows: int) -> None:
    name = "n by a search on a world with a long name, which has two factors, and a few words more"
    figure = forest([0.5] * n_rows, [[0.4, 0.6]] * n_rows, [0.55] * n_rows, [name] * n_rows)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    axes, legend = figure.axes[0], figure.legends[0]
    boxes = [label.get_window_extent(renderer) for label in (*axes.get_yticklabels(), legend)]
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    # names do not stand on each other, and the half of the width is left to the numbers
    assert all(above.y0 >= below.y1 for above, below in itertools.pairwise(boxes[:-1]))
    assert axes.get_window_extent(renderer).width > figure.bbox.width / 2


def test_every_point_of_a_scatter_speaks_and_hostile_words_stay_words() -> None:
    words = ["run 0, <script>", 'run 1, "quoted"']
    figure = scatter({"a": ([0.0, 1.0, np.nan], [1.0, 2.0, 3.0])}, "t", "x", "y", names={"a": [*words, "left out"]})
    page = live_chart(figure, "chart", "Figure.")
    found = [html.unescape(word) for word in re.findall(r'data-tip="([^"]*)"', page)]
    assert found == words
    assert "<script>" not in page


def test_points_without_words_tell_their_coordinates() -> None:
    band = Band([0.0, 1.0], [0.25, 0.5], [0.2, 0.4], [0.3, 0.6])
    page = live_chart(bands({"p": {"curve": band}}), "chart", "Figure.")
    assert re.findall(r'data-tip="([^"]*)"', page) == ["curve: 0, 0.25", "curve: 1, 0.5"]


def test_a_crowd_of_points_becomes_a_picture() -> None:
    many = np.random.default_rng(0).random((2, 5000))
    page = live_chart(scatter({"a": (many[0], many[1])}), "chart", "Figure.")
    assert "data-tip" not in page
    assert "<image" in page
    assert len(page) < 400_000


def test_equal_figures_are_equal_pdfs() -> None:
    assert to_pdf(histogram({"a": [1.0, 2.0]})) == to_pdf(histogram({"a": [1.0, 2.0]}))
    assert to_pdf(histogram({"a": [1.0, 2.0]})).startswith(b"%PDF")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: violins([], []),
        lambda: violins([[1.0]], ["a"], families=[0, 1]),
        lambda: scatter({}),
        lambda: bands({}),
        lambda: histogram({}),
        lambda: histogram({"a": [float("nan")]}),
        lambda: scatter({"a": ([1.0], [1.0, 2.0])}),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"empty|entries|finite"):
        wrong()
