"""Labels as numbers that a network can read."""

import math
from functools import cache
from typing import Literal

import torch

from unweave.shapes import Float, Tensor

Encoding = Literal["one_hot", "values"]

Sizes = tuple[int, ...]
"""How many values each label has; 0 for a continuous number."""


def label_columns(sizes: Sizes, encoding: Encoding) -> int:
    """How many inputs of a network some labels are."""
    return sum(size or 1 for size in sizes) if encoding == "one_hot" else len(sizes)


def encode_labels(
    labels: Float[Tensor, "batch label"], sizes: Sizes, encoding: Encoding
) -> Float[Tensor, "batch column"]:
    """One column for every value of a label (``one_hot``), or one for every label, from 0 to 1 (``values``).

    Continuous numbers stay as they are.
    """
    if encoding == "values":
        return scaled_labels(labels, sizes)
    columns = [_one_hot(labels[:, place], size) for place, size in enumerate(sizes)]
    return torch.cat(columns, dim=1)


def scaled_labels(labels: Float[Tensor, "batch label"], sizes: Sizes) -> Float[Tensor, "batch label"]:
    """Values 0 … n − 1 of every label as 0 … 1; continuous numbers as they are."""
    return labels / constants(tuple(max(1, size - 1) for size in sizes), labels.dtype, labels.device)


def centred_labels(labels: Float[Tensor, "batch label"], sizes: Sizes) -> Float[Tensor, "batch label"]:
    """Every label on [−1, 1]: one with a single value is −1, and a continuous one stays as it is."""
    spans = tuple(max(1, size - 1) if size else 2 for size in sizes)
    starts = tuple(int(size > 0) for size in sizes)
    kind = labels.dtype, labels.device
    return labels * (2.0 / constants(spans, *kind)) - constants(starts, *kind)


def standardised_labels(labels: Float[Tensor, "batch label"], sizes: Sizes) -> Float[Tensor, "batch label"]:
    """Values 0 … n − 1 of every label less their mean, divided by their deviation, each value counted once."""
    means = constants(tuple((size - 1) / 2 for size in sizes), labels.dtype, labels.device)
    deviations = tuple(math.sqrt((size * size - 1) / 12) or 1.0 for size in sizes)
    return (labels - means) / constants(deviations, labels.dtype, labels.device)


@cache
def constants(numbers: tuple[float | int, ...], dtype: torch.dtype, device: torch.device) -> Float[Tensor, " number"]:
    """Numbers on a device, copied there once and kept: a CUDA graph must not copy, and remembers where they lie."""
    return torch.tensor(numbers, dtype=dtype, device=device)


def _one_hot(label: Float[Tensor, " batch"], size: int) -> Float[Tensor, "batch value"]:
    if not size:
        return label[:, None]
    return (label[:, None] == torch.arange(size, device=label.device)).to(label.dtype)
