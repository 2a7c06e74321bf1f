"""dSprites re-rendered from formulas (after Matthey et al., 2017, "dSprites").

Outlines were fitted to genuine frames: of 320 at hand, 316 come out identical and 8 pixels in 1.3 million are wrong.
A pixel is lit when its centre lies inside the outline; there is no anti-aliasing. Screen axes: x to the right, y down.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt64

SIZES = (3, 6, 40, 32, 32)
"""Shape (square, ellipse, heart), scale, orientation, x, y."""

N_PIXELS = 64
N_BYTES = N_PIXELS * N_PIXELS // 8

# centre = 16 + 32 k / 31 pixels: a step is 1.032 pixels, so sprites are not whole-pixel translates of each other
CENTRES = 16.0 + 32.0 * np.arange(32) / 31.0
SCALES = np.linspace(0.5, 1.0, 6)
# linspace(0, 2 pi, 40) holds both ends: orientation 39 is orientation 0, exactly so because of the remainder
ANGLES = 2.0 * np.pi * (np.arange(40) % 39) / 39.0


def render(factors: Int[np.ndarray, "sample factor"]) -> UInt8[np.ndarray, "sample byte"]:
    """Images of rows of factor values, eight pixels a byte, the first pixel in the highest bit."""
    factors = np.asarray(factors)
    _check(factors)
    images = np.empty((len(factors), N_BYTES), dtype=np.uint8)
    outlines, which = np.unique(factors[:, :3], axis=0, return_inverse=True)
    for number, (shape, scale, orientation) in enumerate(outlines.tolist()):
        here = np.flatnonzero(which.reshape(-1) == number)
        images[here] = all_positions(shape, scale, orientation)[factors[here, 3], factors[here, 4]]
    return images


def render_grid(progress: Callable[[str, int, int], None] | None = None) -> UInt8[np.ndarray, "sample byte"]:
    """All 737,280 images in the order of the published file: the last factor (y) runs fastest."""
    n_outlines = SIZES[0] * SIZES[1] * SIZES[2]
    images = np.empty((n_outlines, 32, 32, N_BYTES), dtype=np.uint8)
    for number, outline_factors in enumerate(np.ndindex(SIZES[:3])):
        images[number] = all_positions(*outline_factors)
        if progress:
            progress("rendering dsprites", number + 1, n_outlines)
    return images.reshape(-1, N_BYTES)


def all_positions(shape: int, scale: int, orientation: int) -> UInt8[np.ndarray, "x y byte"]:
    """The 32 × 32 images of one outline, by scan lines.

    A row of pixels is one 64-bit word. Every crossing of the outline with the row's line toggles the pixels on its
    left; an even number of toggles leaves the outside dark.
    """
    corners = _turn(outline(shape) * SCALES[scale], ANGLES[orientation])
    # heights of all pixel rows relative to all centres, (32 y) × (64 rows) of them
    heights = (np.arange(N_PIXELS) + 0.5 - CENTRES[:, None]).reshape(-1)
    met = np.flatnonzero((heights > corners[:, 1].min()) & (heights < corners[:, 1].max()))
    crossings = _crossings(corners, heights[met])
    rows = np.zeros((32, len(heights)), dtype=np.uint64)
    # pixel i lies left of crossing c when i + 1/2 - centre < c: the first ceil(c + centre - 1/2) pixels
    n_left = np.ceil(crossings[None] + (CENTRES[:, None, None] - 0.5)).clip(0, N_PIXELS).astype(np.intp)
    rows[:, met] = np.bitwise_xor.reduce(_first_pixels()[n_left], axis=1)
    return rows.astype(">u8").view(np.uint8).reshape(32, 32, N_BYTES)


def outline(shape: int) -> Float[np.ndarray, "corner 2"]:
    """The corners of a sprite at scale 1 and orientation 0, about its position."""
    if shape == 0:
        return 9.598 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    if shape == 1:
        # the 54-gon of the genuine renderer: its long axis ends in an edge, not in a corner
        t = 2.0 * np.pi * (np.arange(54) + 0.5) / 54
        return np.stack([12.77 * np.cos(t), 7.23 * np.sin(t)], axis=-1)
    # 250 to 310 corners fit the genuine frames equally well, the smooth curve slightly worse
    t = 2.0 * np.pi * np.arange(280) / 280
    x = 0.5997 * 16.0 * np.sin(t) ** 3
    y = -0.6622 * (13.0 * np.cos(t) - 5.0 * np.cos(2.0 * t) - 2.0 * np.cos(3.0 * t) - np.cos(4.0 * t)) - 1.437
    return np.stack([x, y], axis=-1)


def _turn(corners: Float[np.ndarray, "corner 2"], angle: float) -> Float[np.ndarray, "corner 2"]:
    # anticlockwise on the screen; y points down, hence the signs
    cosine, sine = np.cos(angle), np.sin(angle)
    return corners @ np.array([[cosine, -sine], [sine, cosine]])


def _crossings(
    corners: Float[np.ndarray, "corner 2"], heights: Float[np.ndarray, " height"]
) -> Float[np.ndarray, "crossing height"]:
    """Where each horizontal line meets the outline; -inf fills up lines with fewer crossings than the most."""
    (x0, y0), (x1, y1) = corners.T, np.roll(corners, -1, axis=0).T
    crossed: Bool[np.ndarray, "height corner"] = (y0 > heights[:, None]) != (y1 > heights[:, None])
    line, edge = np.nonzero(crossed)
    counts = np.bincount(line, minlength=len(heights))
    place = np.arange(len(line)) - (np.cumsum(counts) - counts)[line]
    found = np.full((counts.max(initial=0), len(heights)), -np.inf)
    found[place, line] = x0[edge] + (heights[line] - y0[edge]) * (x1[edge] - x0[edge]) / (y1[edge] - y0[edge])
    return found


def _first_pixels() -> UInt64[np.ndarray, " count"]:
    """Words whose first n pixels (highest bits) are lit, for n = 0 … 64."""
    return np.array([(1 << 64) - (1 << (64 - n)) for n in range(N_PIXELS + 1)], dtype=np.uint64)


def _check(factors: np.ndarray) -> None:
    if factors.ndim != 2 or factors.shape[1] != len(SIZES) or not np.issubdtype(factors.dtype, np.integer):
        raise ValueError(f"factors must be whole numbers of shape [sample, 5], not {factors.dtype} {factors.shape}")
    if factors.size and ((factors < 0).any() or (factors >= np.array(SIZES)).any()):
        given = f"{factors.min(axis=0).tolist()} to {factors.max(axis=0).tolist()}"
        raise ValueError(f"factors must lie below {SIZES} (shape, scale, orientation, x, y), given {given}")
