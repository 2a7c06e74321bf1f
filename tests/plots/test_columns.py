"""Figures of tables: a panel a column, at most 24, and wrong arrays refused in words."""

import numpy as np
import pytest

from unweave.plots.columns import MOST_PANELS, column_reconstructions, column_traversals
from unweave.plots.save import to_png

STEPS = np.linspace(-2, 2, 5)


def moved(n_columns: int) -> np.ndarray:
    """Two latents: the first moves every column by its number, the second none."""
    return np.stack([STEPS[:, None] * np.arange(n_columns), np.zeros((5, n_columns))])


def test_a_panel_a_column_and_a_line_a_latent() -> None:
    figure = column_traversals(moved(3), ["a", "b", "$c$"], ["active", "passive"], STEPS, [4, 7], [1.0, 1.0, 1.0])
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in panels] == ["a", "b", "$c$"]
    assert all(len(axes.lines) == 2 for axes in panels)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["latent 4", "1 passive"]
    low, high = panels[0].get_ylim()
    assert high - low >= 2, "a column that nothing moves has a panel as high as it is wide"
    assert to_png(figure).startswith(b"\x89PNG")


def test_of_many_columns_those_that_move_most_in_their_order() -> None:
    figure = column_traversals(moved(30), [f"c{n}" for n in range(30)], ["active", "passive"], STEPS, None, np.ones(30))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"c{n}" for n in range(30 - MOST_PANELS, 30)]


def test_reconstructions_against_the_table() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    figure = column_reconstructions(rows, rows, ["a", "b"])
    for axes, column in zip(figure.axes, rows.T):
        np.testing.assert_allclose(np.asarray(axes.collections[0].get_offsets()), np.stack([column, column], axis=1))
    assert to_png(figure).startswith(b"\x89PNG")


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match=r"values must have the axes \[latent, step, column\]"):
        column_traversals(np.zeros((2, 3)), ["a"], ["active"], STEPS)
    with pytest.raises(ValueError, match="columns must have 3 entries, given 2"):
        column_traversals(moved(3), ["a", "b"], ["active", "passive"], STEPS)
    with pytest.raises(ValueError, match="must have one shape"):
        column_reconstructions(np.zeros((3, 2)), np.zeros((4, 2)), ["a", "b"])
