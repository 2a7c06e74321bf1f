"""A layer of convolutions between two images, as kernels see it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Join:
    """One layer's sizes: the small image, both channel counts, the kernel, and where its weights lie in a row."""

    height: int
    width: int
    n_big: int
    n_small: int
    kernel: int
    weight_at: int
    bias_at: int
