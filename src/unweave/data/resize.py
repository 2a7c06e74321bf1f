"""Resizing by Lanczos' windowed sinc (three lobes), as Pillow does it and as the published studies did."""

from collections.abc import Iterable

import numpy as np


def lanczos(images: Iterable[np.ndarray], height: int, width: int) -> np.ndarray:
    """Images [height, width] or [height, width, 3] of bytes at another size, one after the other."""
    from PIL import Image

    resized = [np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS)) for image in images]
    return np.stack(resized)
