"""Spriteworld's sprites: area, place and turn of what is drawn."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from unweave.data.procedural.sprites import SHAPES, render_sprite


def moments(image: np.ndarray) -> tuple[float, float, float]:
    weight = image.astype(float) / 255
    rows, columns = np.indices(image.shape) + 0.5
    area = weight.sum()
    return (weight * columns).sum() / area / 64, 1 - (weight * rows).sum() / area / 64, area / 64**2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("degrees", [0.0, 9.0, 126.0])
def test_a_sprite_has_its_area_at_its_place(shape: str, degrees: float) -> None:
    x, y, area = moments(render_sprite(shape, 0.4, 0.6, 0.3, degrees, 64))
    assert (x, y) == pytest.approx((0.4, 0.6), abs=0.008)
    assert area == pytest.approx(0.09, rel=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_have_area_one_about_the_origin(shape: str) -> None:
    x, y = SHAPES[shape].T
    twice = x * np.roll(y, -1) - np.roll(x, -1) * y
    assert twice.sum() / 2 == pytest.approx(1)
    assert np.allclose(((SHAPES[shape] + np.roll(SHAPES[shape], -1, 0)) * twice[:, None]).sum(0), 0, atol=1e-12)


def test_angles_turn_anticlockwise_and_up_is_up() -> None:
    upright = render_sprite("triangle", 0.5, 0.5, 0.3, 0.0, 64)
    wide = (upright > 127).sum(1)
    assert wide[wide > 0][0] < wide[wide > 0][-1]
    turned = render_sprite("triangle", 0.5, 0.5, 0.3, 90.0, 64)
    assert np.abs(np.rot90(upright).astype(int) - turned).mean() < 2
    assert moments(render_sprite("square", 0.5, 0.8, 0.2, 0.0, 64))[1] > 0.75


@pytest.mark.parametrize("place", [(0.5, 0.5), (0.02, 0.97), (-0.3, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize("scale", [0.03, 0.3, 1.4])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sprite_is_that_of_the_whole_canvas(shape: str, place: tuple[float, float], scale: float) -> None:
    for degrees in (0.0, 27.0):
        turn = np.deg2rad(degrees)
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        outline = ((SHAPES[shape] * scale @ rotation.T) + place) * 320
        canvas = Image.new("L", (320, 320))
        ImageDraw.Draw(canvas).polygon([tuple(corner) for corner in outline.tolist()], fill=255)
        expected = np.flipud(np.asarray(canvas.resize((64, 64), Image.Resampling.LANCZOS)))
        found = render_sprite(shape, *place, scale, degrees, 64)
        assert np.abs(found.astype(int) - expected).max() <= 1


def test_a_square_is_the_pixels_it_covers() -> None:
    image = render_sprite("square", 0.5, 0.5, 0.25, 0.0, 64)
    assert (image[26:38, 26:38] > 250).all()
    assert (image[:20] == 0).all()
    assert (image[:, 44:] == 0).all()
