"""Pixels of other people's image files: decoded, brought to one colour and one size."""

from pathlib import Path
from typing import Literal

import numpy as np

from unweave.data.files import reading

Fit = Literal["crop", "pad", "stretch"]
GREY = {"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"}
LUMA = (0.299, 0.587, 0.114)
"""Grey from red, green and blue (ITU-R 601)."""


ORIENTATION, LYING = 0x0112, (5, 6, 7, 8)
"""The tag of a photograph that says how it was held, and those of its values by which it lies on its side."""


def mode(path: Path) -> str:
    """How an image file holds its colours, as Pillow calls it."""
    from PIL import Image

    with reading(path, "an image"), Image.open(path) as image:
        return image.mode


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of an image file as it is shown: upright, as its camera says."""
    from PIL import Image

    with reading(path, "an image"), Image.open(path) as image:
        lies = image.getexif().get(ORIENTATION, 1) in LYING
        return image.size[::-1] if lies else image.size


def decoded(path: Path) -> np.ndarray:
    """An image file as bytes [channel, height, width]; see-through parts are black, 16 bits are rounded to 8."""
    from PIL import Image, ImageOps

    with reading(path, "an image"), Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):
            return np.rint(np.asarray(upright, dtype=np.float64)[None] / 257).clip(0, 255).astype(np.uint8)
        if upright.mode == "F":
            raise ValueError(f"{path} holds floating-point pixels: save it as bytes, or give the images as .npy")
        if upright.mode in GREY and upright.mode in ("1", "L"):
            return np.asarray(upright.convert("L"))[None]
        rgba = upright.convert("RGBA")
        solid = np.asarray(Image.alpha_composite(Image.new("RGBA", rgba.size, "black"), rgba).convert("RGB"))
        return np.moveaxis(solid, -1, 0) if upright.mode not in GREY else solid[None, :, :, 0]


def coloured(images: np.ndarray, colour: str) -> np.ndarray:
    """Images [sample, channel, height, width] as grey or rgb ones."""
    n_channels = images.shape[1]
    if n_channels == (1 if colour == "grey" else 3):
        return images
    if colour == "rgb":
        return np.repeat(images, 3, axis=1)
    grey = np.tensordot(images, np.array(LUMA, np.float32), axes=(1, 0))[:, None]
    return np.rint(grey).astype(np.uint8) if images.dtype == np.uint8 else grey.astype(np.float32).clip(0, 1)


def fitted(image: np.ndarray, width: int, height: int, fit: Fit) -> np.ndarray:
    """An image [channel, height, width] at a size, by Lanczos: its middle, all of it on black, or stretched."""
    from PIL import Image

    if fit == "crop":
        image = _middle(image, width, height)
    inner = _inside(image, width, height) if fit == "pad" else (width, height)
    resized = [Image.fromarray(plane).resize(inner, Image.Resampling.LANCZOS) for plane in image]
    planes = np.stack([np.asarray(plane) for plane in resized])
    # Lanczos overshoots at edges; bytes are clipped by Pillow itself
    planes = planes if image.dtype == np.uint8 else planes.clip(0, 1)
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    spare = ((0, 0), (top, height - inner[1] - top), (left, width - inner[0] - left))
    return np.pad(planes, spare) if fit == "pad" else planes


def _middle(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """The largest central part with the proportions of a size."""
    rows, columns = image.shape[1:]
    wide = min(columns, max(1, round(rows * width / height)))
    high = min(rows, max(1, round(columns * height / width)))
    top, left = (rows - high) // 2, (columns - wide) // 2
    return np.ascontiguousarray(image[:, top : top + high, left : left + wide])


def _inside(image: np.ndarray, width: int, height: int) -> tuple[int, int]:
    """Width and height of the whole image within a size, in its own proportions."""
    rows, columns = image.shape[1:]
    scale = min(width / columns, height / rows)
    return max(1, round(columns * scale)), max(1, round(rows * scale))
