"""Squares as models of two latents see them."""

import numpy as np
import pytest

from unweave.plots.code_planes import code_planes


def test_one_panel_a_restart():
    square = np.random.default_rng(0).random((50, 2))
    figure = code_planes({"one": square, "two": -square}, {"one": square, "two": square}, ("z0", "z1"))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    first = figure.axes[0].collections[0]
    assert np.allclose(first.get_offsets(), square)
    # more of the first factor is more red, more of the second is darker
    colours = first.get_facecolors()[:, :3]
    assert np.corrcoef(square[:, 0], colours[:, 0] - colours[:, 2])[0, 1] > 0.5
    assert np.corrcoef(square[:, 1], colours.sum(1))[0, 1] < -0.5


def test_a_constant_factor_has_one_colour():
    figure = code_planes({"one": np.ones((3, 2))}, {"one": np.ones((3, 2))})
    assert len(np.unique(figure.axes[0].collections[0].get_facecolors(), axis=0)) == 1


def test_bad_shapes_get_one_sentence():
    with pytest.raises(ValueError, match="codes is empty"):
        code_planes({}, {})
    with pytest.raises(ValueError, match="must have 2 entries along latent"):
        code_planes({"one": np.ones((3, 3))}, {"one": np.ones((3, 2))})
