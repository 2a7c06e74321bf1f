"""An image of one's own: decoded with care, fitted to what the model knows, encoded."""

import base64
import io
import warnings

import numpy as np
import torch

from unweave.shapes import Float, Tensor
from unweave.web.decoding import pixels
from unweave.web.numbers import number
from unweave.web.open_runs import OpenRun
from unweave.web.schema import EncodedAnswer

LARGEST_FILE = 8 * 2**20
MOST_PIXELS = 40_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats with decoders that are widely used, and so widely tested; nothing that can call other programs."""


def encoded_answer(opened: OpenRun, content: bytes) -> EncodedAnswer:
    """The code of an uploaded image."""
    image = fitted(content, opened.shape)
    code = opened.run.encode(image[None])
    return EncodedAnswer(
        code=code.mean[0].tolist(),
        variance=code.variance[0].tolist(),
        kl=[number(value) or 0.0 for value in code.kl[0]],
        picture=base64.b64encode(png(pixels(image[None])[0])).decode(),
    )


def fitted(content: bytes, shape: tuple[int, ...]) -> Float[Tensor, "channel height width"]:
    """An image file as the model wants it: its middle square, its colours, its size."""
    from PIL import Image, ImageOps

    if len(shape) != 3 or shape[0] not in (1, 3):
        raise ValueError("this model was not trained on pictures, so it cannot be shown one")
    if not content:
        raise ValueError("the file is empty; choose a PNG, JPEG, WebP, GIF or BMP image")
    if len(content) > LARGEST_FILE:
        raise ValueError(f"an image may have {LARGEST_FILE // 2**20} MB at most; make it smaller")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
                _check_size(opened.size)
                small = opened.convert("RGB" if shape[0] == 3 else "L")
    except ValueError:
        raise
    except Exception as error:  # a decoder may fail in many ways; none of them is ours
        raise ValueError(f"this is not an image that can be read: {type(error).__name__}") from error
    square = ImageOps.fit(small, (shape[2], shape[1]), Image.Resampling.LANCZOS)
    array = np.asarray(square, dtype=np.float32) / 255.0
    return torch.from_numpy(array[None] if shape[0] == 1 else np.moveaxis(array, -1, 0).copy())


def png(picture: np.ndarray) -> bytes:
    """A picture [height, width, channel] of bytes as a PNG."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture[..., 0] if picture.shape[-1] == 1 else picture).save(content, format="PNG")
    return content.getvalue()


def _check_size(size: tuple[int, int]) -> None:
    if size[0] * size[1] > MOST_PIXELS:
        raise ValueError(f"an image may have {MOST_PIXELS // 10**6} million pixels at most, this one is {size}")
