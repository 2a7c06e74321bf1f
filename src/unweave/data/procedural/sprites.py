"""The sprites of Spriteworld (Watters et al., 2019) that Natural Sprites are made of, and how they are drawn."""

import math

import numpy as np

FINER = 5
"""The canvas is this many times as fine as the image, which is then brought down by Lanczos."""


def render_sprite(shape: str, x: float, y: float, scale: float, degrees: float, pixels: int) -> np.ndarray:
    """A white sprite on black, bytes [height, width]; (0, 0) is at the bottom left, a scale of 1 the image's area."""
    from PIL import Image, ImageDraw

    turn, side = math.radians(degrees), pixels * FINER
    rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    outline = (SHAPES[shape] * scale @ rotation + (x, y)) * side
    canvas = Image.new("L", (side, side))
    ImageDraw.Draw(canvas).polygon([(float(across), float(up)) for across, up in outline], fill=255)
    return np.asarray(canvas.resize((pixels, pixels), Image.Resampling.LANCZOS))[::-1]


def _around(n: int, start: float) -> np.ndarray:
    """n points on the unit circle."""
    angles = start + np.arange(n) * 2 * math.pi / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _polygon(n: int, start: float) -> np.ndarray:
    # area n sin(π/n) cos(π/n)
    return _around(n, start) / math.sqrt(n * math.sin(math.pi / n) * math.cos(math.pi / n))


def _star(n: int, start: float) -> np.ndarray:
    """Points twice as far out as the dents between them."""
    outline = np.stack([_around(n, start), 2 * _around(n, start + math.pi / n)], axis=1).reshape(-1, 2)
    return outline / math.sqrt(2 * n * math.sin(math.pi / n))


def _spokes(n: int, start: float) -> np.ndarray:
    """A polygon with a rectangle on each side."""
    corners, before, after = _around(n, start), _around(n, start - math.pi / n), _around(n, start + math.pi / n)
    outline = np.stack([corners + before, corners, corners + after], axis=1).reshape(-1, 2)
    return outline / math.sqrt(n * math.sin(math.pi / n) * (2 + math.cos(math.pi / n)))


SHAPES = {
    "square": _polygon(4, math.pi / 4),
    "triangle": _polygon(3, math.pi / 2),
    "star_4": _star(4, math.pi / 4),
    "spoke_4": _spokes(4, math.pi / 4),
}
"""Outlines of area 1 about the origin, in the order of their numbers."""
