"""What people give a model: images and codes as tensors, arrays, lists or pictures, one or many."""

from typing import Any

import numpy as np
import torch

from unweave.shapes import Float, Tensor

DARK, BRIGHT = -0.5, 2.0
"""Outside these, numbers are no brightness from 0 to 1, whatever the rounding."""


def as_images(given: Any, shape: tuple[int, ...]) -> Float[Tensor, "sample ..."]:
    """Examples of a shape: bytes become 0 … 1, channels may come last, a single one gets an axis."""
    values = _tensor(given, "images")
    for like in _forms(values, shape):
        if like is not None and tuple(like.shape[1:]) == shape:
            return _as_floats(like, len(shape) == 3)
    wanted = " × ".join(map(str, shape))
    axes = "channels × height × width" if len(shape) == 3 else "numbers"
    found = " × ".join(map(str, values.shape)) or "a single number"
    raise ValueError(f"this model takes examples of {wanted} ({axes}), one or many, and was given {found}")


def as_codes(given: Any, latents: int) -> Float[Tensor, "sample latent"]:
    """Codes with so many latents; a single one gets an axis."""
    if hasattr(given, "sampled"):
        raise ValueError("codes are rows of numbers: of what encode gives, take .mean or .sampled")
    values = _tensor(given, "codes")
    values = values[None] if values.dim() == 1 else values
    if values.dim() != 2 or values.shape[1] != latents:
        found = " × ".join(map(str, values.shape)) or "a single number"
        raise ValueError(f"this model has {latents} latents, so codes are rows of {latents} numbers; given {found}")
    return _as_floats(values, False)


def _forms(values: Tensor, shape: tuple[int, ...]) -> list[Tensor | None]:
    """Ways to read the axes, the plainest first."""
    n = values.dim()
    many, single = values if n == len(shape) + 1 else None, values[None] if n == len(shape) else None
    if len(shape) != 3:
        return [many, single]
    last = values.movedim(-1, -3) if n in (3, 4) else None
    grey = values[..., None, :, :] if shape[0] == 1 and n in (2, 3) else None
    return [
        many,
        single,
        *((last if n == 4 else last[None],) if last is not None else ()),
        *((grey if n == 3 else grey[None],) if grey is not None else ()),
    ]


def _tensor(given: Any, what: str) -> Tensor:
    if isinstance(given, Tensor):
        return given.detach()
    try:
        if isinstance(given, list | tuple) and given and isinstance(given[0], Tensor):
            return torch.stack(list(given)).detach()
        array = np.asarray(given)
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=not array.flags.writeable))
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(given).__name__
        raise ValueError(f"{what} are tensors, arrays or lists of numbers of one size, not {kind}") from error


def _as_floats(values: Tensor, pictures: bool) -> Tensor:
    if values.dtype == torch.uint8:
        return values.to(torch.float32) / 255.0
    if values.is_complex():
        raise ValueError("complex numbers were given, and real ones are wanted")
    floats = values.to(torch.float32)
    if not bool(torch.isfinite(floats).all()):
        raise ValueError("some of the numbers that were given are not finite")
    if pictures and floats.numel() and float(floats.max()) > BRIGHT:
        most = f"{float(floats.max()):g}"
        raise ValueError(f"images are bytes (uint8), or numbers from 0 to 1; these go up to {most}: divide by 255")
    if pictures and floats.numel() and float(floats.min()) < DARK:
        least = f"{float(floats.min()):g}"
        raise ValueError(f"images are bytes (uint8), or numbers from 0 to 1; these go down to {least}")
    return floats
