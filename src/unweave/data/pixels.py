"""Pixels of other people's image files: decoded, brought to one colour and one size."""

from pathlib import Path

import numpy as np

from unweave.data.files import reading

GREY = {"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"}
LUMA = (0.299, 0.587, 0.114)
"""Grey from red, green and blue (ITU-R 601)."""


def mode(path: Path) -> str:
    """How an image file holds its colours, as Pillow calls it."""
    from PIL import Image

    with reading(path, "an image"), Image.open(path) as image:
        return image.mode


def decoded(path: Path) -> np.ndarray:
    """An image file as bytes [channel, height, width]; see-through parts are black, 16 bits are rounded to 8."""
    from PIL import Image, ImageOps

    with reading(path, "an image"), Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):
            return np.rint(np.asarray(upright, dtype=np.float64)[None] / 257).clip(0, 255).astype(np.uint8)
        if upright.mode == "F":
            raise ValueError("it holds floating-point pixels: save it as bytes, or give the images as .npy")
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


def square(image: np.ndarray, size: int) -> np.ndarray:
    """The central square of [channel, height, width] at ``size`` pixels."""
    from PIL import Image

    height, width = image.shape[1:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    cut = np.ascontiguousarray(image[:, top : top + side, left : left + side])
    resized = [Image.fromarray(plane).resize((size, size), Image.Resampling.LANCZOS) for plane in cut]
    planes = np.stack([np.asarray(plane) for plane in resized])
    # Lanczos overshoots at edges; bytes are clipped by Pillow itself
    return planes if image.dtype == np.uint8 else planes.clip(0, 1)
