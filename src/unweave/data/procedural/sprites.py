"""The sprites of Spriteworld (Watters et al., 2019) that Natural Sprites are made of, and how they are drawn."""

import math

import numpy as np

FINER = 5
"""The canvas is this many times as fine as the image, which is then brought down by Lanczos."""


MARGIN = 6
"""Pixels about a sprite within which Lanczos, which reaches three, finds all it needs: the rest stays black."""


def render_sprite(shape: str, x: float, y: float, scale: float, degrees: float, pixels: int) -> np.ndarray:
    """A white sprite on black, bytes [height, width]; (0, 0) is at the bottom left, a scale of 1 the image's area."""
    from PIL import Image, ImageDraw

    turn = math.radians(degrees)
    rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    outline = (SHAPES[shape] * scale @ rotation + (x, y)) * (pixels * FINER)
    low = np.clip(np.floor(outline.min(0) / FINER) - MARGIN, 0, pixels - 1).astype(int)
    high = np.clip(np.ceil(outline.max(0) / FINER) + MARGIN, low + 1, pixels).astype(int)
    width, height = (high - low).tolist()
    canvas = Image.new("L", (width * FINER, height * FINER))
    ImageDraw.Draw(canvas).polygon([tuple(corner) for corner in (outline - low * FINER).tolist()], fill=255)
    small = canvas.resize((width, height), Image.Resampling.LANCZOS)
    image = np.zeros((pixels, pixels), dtype=np.uint8)
    image[low[1] : high[1], low[0] : high[0]] = np.asarray(small)
    return image[::-1]


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
