"""Arrays at the edge of a figure: converted, counted and checked before anything is drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

TYPES = ("active", "mixed", "passive")
"""What a latent can be, from the busiest to the idlest."""

OVERSHOOT = 1.0
"""How far a pixel may leave [0, 1] before it is taken for a mistake: a Gaussian decoder overshoots, bytes do not."""


def checked(name: str, values: ArrayLike, axes: str, *, finite: bool = True, **sizes: int) -> np.ndarray:
    """``values`` as an array with these axes, given as words: ``"latent step"``. ``sizes`` fixes some of them."""
    array = np.asarray(values)
    words = axes.split()
    if array.ndim != len(words):
        raise ValueError(f"{name} must have the axes [{', '.join(words)}], given an array of shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, given {array.dtype}")
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}): there is nothing to draw")
    for word, size in zip(words, array.shape):
        if sizes.get(word, size) != size:
            raise ValueError(f"{name} must have {sizes[word]} entries along {word}, given {size}")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite everywhere, but {int((~np.isfinite(array)).sum())} values are not")
    return array


def pictures(name: str, images: ArrayLike, axes: str) -> np.ndarray:
    """Images as float [*axes, height, width, 3] in [0, 1], from bytes or floats with one channel or three."""
    array = checked(name, images, f"{axes} channel height width")
    if array.shape[-3] not in (1, 3):
        raise ValueError(f"{name} must have 1 or 3 channels before height and width, given shape {array.shape}")
    array = array / 255.0 if array.dtype == np.uint8 else array.astype(np.float64)
    if array.min() < -OVERSHOOT or array.max() > 1.0 + OVERSHOOT:
        raise ValueError(
            f"{name} must hold pixels in [0, 1] or bytes, given {array.min():.3g} to {array.max():.3g}. Divide by 255?"
        )
    colours = np.moveaxis(np.clip(array, 0.0, 1.0), -3, -1)
    return np.broadcast_to(colours, (*colours.shape[:-1], 3))


def checked_types(types: Sequence[str], n_latents: int) -> list[str]:
    """The type of every latent, each one of TYPES."""
    found = [str(kind) for kind in types]
    if len(found) != n_latents:
        raise ValueError(f"types must name one type for each of {n_latents} latents, given {len(found)}")
    if wrong := sorted(set(found) - set(TYPES)):
        raise ValueError(f"a latent is {', '.join(TYPES[:-1])} or {TYPES[-1]}, not {wrong[0]!r}")
    return found


def checked_names(name: str, names: Sequence[Any] | None, size: int) -> list[str]:
    """One name for each of ``size`` places; the numbers 0, 1, … where none are given."""
    found = [str(place) for place in range(size)] if names is None else [str(one) for one in names]
    if len(found) != size:
        raise ValueError(f"{name} must have {size} entries, given {len(found)}")
    return found
