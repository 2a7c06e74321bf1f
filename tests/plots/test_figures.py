"""Figures are drawn, have the size they claim, hold what was given, and refuse what they cannot draw."""

import io
import itertools
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unweave import pages, plots
from unweave.plots import images, latents, matrices, training
from unweave.plots.save import to_png, to_svg
from unweave.plots.style import ACTIVE, COLOURS, DPI

TYPES = ["active", "passive", "mixed", "passive"]


def pixels(figure: Any) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(to_png(figure))).convert("RGB")).astype(int)


def colour(words: str) -> np.ndarray:
    return np.array([int(words[place : place + 2], 16) for place in (1, 3, 5)])


def holds(shown: np.ndarray, words: str) -> int:
    """How many pixels have exactly this colour."""
    return int((shown == colour(words)).all(-1).sum())


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.0, 1.0, shape)


def test_kl_bars_are_ordered_and_as_tall_as_their_values() -> None:
    figure = latents.kl_bars([0.5, 0.01, 2.0, 0.0], TYPES)
    axes = figure.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2.0, 0.5, 0.01, 0.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "0", "1", "3"]
    shown = pixels(figure)
    # areas of bars stand to each other as their values do: mixed 2.0, active 0.5
    ratio = holds(shown, COLOURS["mixed"]) / holds(shown, COLOURS["active"])
    assert ratio == pytest.approx(4.0, rel=0.15)


def test_many_latents_stay_legible() -> None:
    kinds = ["active"] * 30 + ["passive"] * 170
    figure = latents.kl_bars(np.linspace(3, 0, 200), kinds)
    assert figure.get_size_inches()[0] <= 14
    assert len(figure.axes[0].get_xticklabels()) <= 40
    latents.latent_history([0, 1], np.zeros((2, 200)), kinds)


def test_latent_history_draws_every_latent() -> None:
    steps, values = np.arange(100), noise(100, 4)
    figure = latents.latent_history(steps, values, TYPES)
    lines = figure.axes[0].get_lines()
    # the passive ones first, then mixed, then active; a slow running mean over one neighbour on each side
    for line, latent in zip(lines, (1, 3, 2, 0)):
        expected = [values[max(i - 1, 0) : i + 2, latent].mean() if 0 < i < 99 else values[i, latent] for i in steps]
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert "2 passive" in [text.get_text() for text in figure.axes[0].texts]


def test_names_of_lines_never_overlap() -> None:
    apart = latents._apart([0.0, 0.0, 0.01, 5.0], 0.1)
    assert apart == pytest.approx([0.0, 0.1, 0.2, 5.0])


def test_bars_of_a_collapsed_model_are_flat() -> None:
    figure = latents.kl_bars([3e-6, 2e-6], ["passive", "passive"])
    low, high = figure.axes[0].get_ylim()
    assert low == 0
    assert high >= 0.1
    assert latents.kl_bars([0.5, 0.2], ["active", "active"]).axes[0].get_ylim()[1] == pytest.approx(0.6)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_no_words_of_histograms_are_cut(n: int) -> None:
    figure = latents.histograms(noise(40, n), noise(40, n), ["mixed"] * n)
    figure.draw_without_rendering()
    for text in (*figure.texts, figure._supxlabel, figure._supylabel):
        box = text.get_window_extent()
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height, text
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width, text


def test_histograms_show_every_latent() -> None:
    mean, sampled = np.random.default_rng(0).normal(size=(2, 500, 5))
    figure = latents.histograms(mean, sampled, [*TYPES, "active"], columns=3)
    assert sum(axes.axison for axes in figure.axes) == 5
    assert pixels(figure).std() > 5


def test_variance_scatter_puts_points_where_they_belong() -> None:
    x, y = [0.01, 1.0, 0.5, 0.97], [0.0, 0.001, 0.2, 0.0]
    figure = latents.variance_scatter(x, y, TYPES)
    found = np.concatenate([points.get_offsets() for points in figure.axes[0].collections])
    expected = np.array([(0.01, 0.0), (0.5, 0.2), (1.0, 0.001), (0.97, 0.0)])
    np.testing.assert_allclose(found, expected)
    left, right = figure.axes[0].patches
    assert (left.get_x(), left.get_width()) == pytest.approx((0.0, 0.1))
    assert (right.get_x(), right.get_width()) == pytest.approx((0.9, 0.2))
    # the top of a region is at α: its height is a share of the axes
    low, high = figure.axes[0].get_ylim()
    assert low + (left.get_y() + left.get_height()) * (high - low) == pytest.approx(0.1)
    assert low + left.get_y() * (high - low) == pytest.approx(0.0)


def test_deterministic_codes_can_be_drawn() -> None:
    to_png(latents.variance_scatter([0.0, 0.0], [0.0, 0.0], ["active", "active"]))
    to_png(latents.kl_bars([0.0, 0.0], ["active", "active"]))


def test_loss_curves() -> None:
    terms = {"loss": 500 * np.exp(-np.arange(50) / 10) + 20, "kl": np.linspace(-1, 3, 50), "made$ up_": 1 + noise(50)}
    figure = training.loss_curves(np.arange(50), terms, columns=2)
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == ["loss", "KL", "made$ up "]
    assert [axes.get_yscale() for axes in figure.axes[:3]] == ["log", "linear", "linear"]
    np.testing.assert_allclose(figure.axes[1].get_lines()[0].get_ydata(), terms["kl"])
    assert holds(pixels(figure), ACTIVE) > 500


def test_a_failed_run_has_curves_too() -> None:
    to_png(training.loss_curves([0, 50, 100], {"loss": [3.0, 2.0, np.nan]}))
    to_png(training.loss_curves([0], {"loss": [3.0]}))
    to_png(latents.latent_history([0], [[1.0, 0.0]], ["active", "passive"]))


def test_running_mean_is_a_plain_mean() -> None:
    values = noise(31)
    slow = [values[i - min(4, i, 30 - i) : i + min(4, i, 30 - i) + 1].mean() for i in range(31)]
    np.testing.assert_allclose(training.running_mean(values, 4), slow)


def test_long_names_of_a_heat_map_are_not_cut_off() -> None:
    names = [f"{number} passive" for number in range(10)]
    figure = matrices.heat_map(np.eye(10), names, names, diverging=True)
    to_png(figure)
    assert all(label.get_window_extent().x0 > 0 for label in figure.axes[0].get_yticklabels())


def test_heat_map_colours_and_words() -> None:
    figure = matrices.heat_map([[0.0, 0.5], [1.0, np.nan]], ["a", "b"], ["$x", "y"], "MI <b>")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.00", "0.50", "1.00", "–"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["$x", "y"]
    assert axes.images[0].get_clim() == (0.0, 1.0)
    assert holds(pixels(figure), matrices.EMPTY) > 1000
    assert [text.get_color() for text in axes.texts][:3:2] == [matrices.ON_LIGHT, matrices.ON_DARK]


def test_diverging_maps_are_centred_and_split() -> None:
    figure = matrices.heat_map([[0.2, -0.6], [0.1, 0.3]], diverging=True, splits=([1], [1]))
    assert figure.axes[0].images[0].get_clim() == (-0.6, 0.6)
    assert figure.axes[0].texts[1].get_text() == "−0.60"
    assert {tuple(line.get_ydata()) for line in figure.axes[0].get_lines()} == {(0.5, 0.5), (0, 1)}


def test_large_and_constant_maps() -> None:
    assert not matrices.heat_map(noise(40, 40)).axes[0].texts
    to_png(matrices.heat_map(np.zeros((2, 3))))
    to_png(matrices.heat_map(np.full((2, 2), np.nan), limits=(0, 1)))


def test_bars_and_intervals() -> None:
    figure = matrices.bars([0.2, 0.5], ["shape", "x$"], [[0.1, 0.4], [0.5, 0.5]], "MIG")
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.2, 0.5]
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.200", "0.500"]
    segments = figure.axes[0].collections[0].get_segments()
    np.testing.assert_allclose(segments[0], [(0.1, 0), (0.4, 0)])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["bytes", "floats"])
def test_every_pixel_of_a_grid_is_shown_as_it_is(channels: int, dtype: str) -> None:
    given = (255 * noise(5, channels, 12, 16)).astype(np.uint8)
    figure = images.grid(given if dtype == "bytes" else given / 255.0, columns=3)
    shown = pixels(figure)
    scale, gap, pad = -(-images.CELL // 16), 1, round(6 * DPI / 100)
    for place, image in enumerate(given):
        top = pad + scale * (12 + gap) * (place // 3)
        left = pad + scale * (16 + gap) * (place % 3)
        block = shown[top : top + 12 * scale, left : left + 16 * scale]
        expected = np.broadcast_to(image, (3, 12, 16)).transpose(1, 2, 0).repeat(scale, 0).repeat(scale, 1)
        np.testing.assert_array_equal(block, expected)
    # the sixth place is empty: the ground shows
    assert (shown[top + scale * 2 : top + 11 * scale, left + scale * 18 : left + scale * 30] == 254).all()


def test_traversals_have_their_labels() -> None:
    figure = images.traversals(noise(4, 5, 3, 8, 8), TYPES, [2.5, 0, 1, 0.001], [-2, -1, 0, 1, 2], [7, 3, 1, 0])
    words = [text.get_text() for text in figure.texts]
    assert words[:4] == ["latent 7", "active · 2.50 nats", "latent 3", "passive · 0.00 nats"]
    assert words[8:] == ["−2", "−1", "0", "1", "2", "value of the latent, in deviations"]
    assert figure.texts[0].get_color() == COLOURS["active"]
    renderer, width = figure.canvas.get_renderer(), figure.get_size_inches()[0] * DPI
    assert all(text.get_window_extent(renderer).x0 >= 0 for text in figure.texts)
    assert all(text.get_window_extent(renderer).x1 <= width for text in figure.texts)


def test_reconstructions_stand_below_originals() -> None:
    first, second = np.zeros((3, 1, 8, 8)), np.ones((3, 1, 8, 8))
    shown = pixels(images.reconstructions(first, second))
    column = shown[:, -20, 0]
    assert (column == 0).sum() == pytest.approx((column == 255).sum(), abs=1)
    assert np.flatnonzero(column == 0).max() < np.flatnonzero(column == 255).min()
    assert len(images.reconstructions(noise(13, 1, 8, 8), noise(13, 1, 8, 8)).texts) == 4


def test_named_rows_have_their_names() -> None:
    drawn = images.named_rows(noise(3, 4, 1, 8, 8), ("original", "change", "altered"))
    assert [text.get_text() for text in drawn.texts] == ["original", "change", "altered"]
    with pytest.raises(ValueError, match="names"):
        images.named_rows(noise(3, 4, 1, 8, 8), ("original",))


def test_planes() -> None:
    figure = images.plane(noise(2, 3, 1, 8, 8), [0.5, 1.0], [1, 2, 3], "latent 1", "latent $0")
    assert [text.get_text() for text in figure.texts] == ["0.5", "1", "latent 1", "1", "2", "3", "latent $0"]
    assert pixels(images.plane(noise(2, 3, 1, 8, 8))).std() > 20


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: latents.kl_bars([[1.0]], ["active"]),
            r"kl must have the axes \[latent\], given an array of shape \(1, 1\)",
        ),
        (lambda: latents.kl_bars([], []), "kl is empty"),
        (lambda: latents.kl_bars([1.0, np.nan], ["active"] * 2), "kl must be finite"),
        (lambda: latents.kl_bars([1.0], ["active", "mixed"]), "one type for each of 1 latents, given 2"),
        (lambda: latents.kl_bars([1.0], ["asleep"]), "active, mixed or passive, not 'asleep'"),
        (lambda: latents.latent_history([0, 1], noise(3, 2), ["active"] * 2), "2 entries along row, given 3"),
        (lambda: latents.histograms(noise(9, 2), noise(9, 3), ["active"] * 2), "2 entries along latent, given 3"),
        (lambda: latents.variance_scatter([1.0], [1.0, 2.0], ["active"]), "1 entries along latent, given 2"),
        (lambda: training.loss_curves([0, 1], {}), "at least one term"),
        (lambda: training.loss_curves([0, 1], {"loss": [1.0]}), "loss must have 2 entries along row"),
        (lambda: training.loss_curves([0], {"loss": ["high"]}), "loss must hold numbers"),
        (lambda: images.grid(noise(3, 2, 8, 8)), "1 or 3 channels"),
        (lambda: images.grid(noise(3, 8, 8)), r"\[image, channel, height, width\]"),
        (lambda: images.grid(255 * noise(3, 1, 8, 8)), "Divide by 255"),
        (lambda: images.grid(noise(3, 1, 8, 8), columns=0), "at least 1"),
        (lambda: images.reconstructions(noise(2, 1, 8, 8), noise(3, 1, 8, 8)), "must have one shape"),
        (
            lambda: images.traversals(noise(1, 3, 1, 8, 8), ["active"], [1.0], [0, 1]),
            "values must have 3 entries along step",
        ),
        (lambda: matrices.heat_map(noise(2, 2), ["a"]), "row_names must have 2 entries"),
        (lambda: matrices.heat_map(noise(2, 2), limits=(1, 0)), "low below high"),
        (lambda: matrices.heat_map(noise(2, 2), splits=([2], [])), "split must lie in 1…1"),
        (lambda: matrices.bars([0.5], ["x"], [[0.6, 0.7]]), "every interval must hold its value"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_slight_overshoot_of_a_gaussian_decoder_is_clipped() -> None:
    shown = pixels(images.grid(np.full((1, 1, 8, 8), 1.2)))
    assert (shown[shown.shape[0] // 2, shown.shape[1] // 2] == 255).all()


def test_saving_is_exact_and_repeatable(tmp_path: Path) -> None:
    content = to_png(latents.kl_bars([1.0, 0.0], ["active", "passive"]), tmp_path / "new" / "kl.png")
    assert (tmp_path / "new" / "kl.png").read_bytes() == content
    assert to_png(latents.kl_bars([1.0, 0.0], ["active", "passive"])) == content
    vector = to_svg(latents.kl_bars([1.0, 0.0], ["active", "passive"]), tmp_path / "kl.svg")
    assert (tmp_path / "kl.svg").read_bytes() == vector
    assert vector == to_svg(latents.kl_bars([1.0, 0.0], ["active", "passive"]))
    assert b"KL per latent</text>" in vector
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kl.svg", "new"]


def test_saving_twice_keeps_the_layout() -> None:
    figure = latents.kl_bars([1.0, 0.0], ["active", "passive"])
    first = to_png(figure)
    to_svg(figure)
    assert to_png(figure) == first


def test_nothing_global_is_touched() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    to_svg(matrices.heat_map(noise(2, 2)))
    assert dict(matplotlib.rcParams) == before


def test_matplotlib_is_imported_late() -> None:
    found = [pkgutil.iter_modules(package.__path__, f"{package.__name__}.") for package in (plots, pages)]
    lines = [f"import {module.name}" for module in itertools.chain(*found)]
    code = "; ".join(["import sys", *lines, "print([m for m in ('matplotlib', 'PIL', 'plotly') if m in sys.modules])"])
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.strip() == "[]"


def test_colours_of_types_stand_out_from_the_ground() -> None:
    # WCAG 2: graphics need a contrast of 3 to 1 at least
    def luminance(words: str) -> float:
        linear = [(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in colour(words) / 255]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    for words in COLOURS.values():
        assert re.fullmatch(r"#[0-9a-f]{6}", words)
        assert 1.05 / (luminance(words) + 0.05) >= 3.0
