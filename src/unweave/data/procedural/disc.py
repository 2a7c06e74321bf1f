"""A disc with soft edges: three factors that nobody can mistake (position and size)."""

import torch

from unweave.shapes import Float, Tensor, UInt8

N_PIXELS = 32
# the largest disc ends one pixel inside the image wherever it is: 8 - 7 = 1
CENTRES = (8.0, 24.0)
RADII = (3.0, 7.0)


def render_discs(
    n_x: int, n_y: int, n_sizes: int, width: float = 1.0, reach: float = 1.0
) -> UInt8[Tensor, "sample 1 height width"]:
    """All discs of the grid (x, y, size), the last running fastest.

    Edges are soft: a step in size or position is a fraction of a pixel, which a hard edge would show in a few pixels
    only or, where two steps round alike, not at all. ``width`` is how far they go to the sides, as a share of how far
    they go up and down, ``reach`` how far they go there, as a share of ``CENTRES``.
    """
    middle, far = sum(CENTRES) / 2, reach * (CENTRES[1] - CENTRES[0]) / 2
    xs, ys = (_steps((middle - way, middle + way), n) for way, n in ((width * far, n_x), (far, n_y)))
    return discs_at(*torch.meshgrid(xs, ys, _steps(RADII, n_sizes), indexing="ij"))


def discs_at(x: Tensor, y: Tensor, radius: Tensor) -> UInt8[Tensor, "sample 1 height width"]:
    """A disc for every centre and radius, in pixels."""
    pixel = torch.arange(N_PIXELS) + 0.5
    across = pixel.view(1, 1, -1) - x.reshape(-1, 1, 1)
    down = pixel.view(1, -1, 1) - y.reshape(-1, 1, 1)
    # share of a pixel inside the disc, taking the edge within the pixel as straight
    covered = (radius.reshape(-1, 1, 1) - torch.hypot(across, down) + 0.5).clamp(0.0, 1.0)
    return (255.0 * covered).round().to(torch.uint8)[:, None]


def _steps(ends: tuple[float, float], n: int) -> Float[Tensor, " step"]:
    return torch.linspace(*ends, n, dtype=torch.float64)
