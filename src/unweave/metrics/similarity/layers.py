"""Activations as similarity measures take them: one row per example, centred."""

from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import as_codes
from unweave.shapes import Float, Tensor

Layers = Any
"""A list of activations of the same examples, a layer each: sample × feature, or sample × channel × height × width."""


def centred_layers(left: Layers, right: Layers) -> tuple[list[Float[Tensor, "sample _"]], int]:
    """All layers with their means taken off and unit Frobenius norm, and how many of them are the left ones.

    A layer that is constant becomes zeros. Without ``right``, the left ones only.
    """
    tables = [*_tables(left, "left"), *([] if right is None else _tables(right, "right"))]
    lengths = sorted({len(table) for table in tables})
    if len(lengths) != 1:
        raise ValueError(
            f"all layers must hold the same examples, given tables of {', '.join(map(str, lengths))} rows; compare"
            " runs of the same world on the same images"
        )
    return [centred(table) for table in tables], len(left)


def centred(table: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample feature"]:
    """Without the mean of each feature, and of unit Frobenius norm; zeros where nothing varies."""
    mean = table.mean(0)
    shifted = table - mean
    norm = _norm(shifted)
    # the mean of n equal numbers is not always that number: what is left then is rounding
    rounding = 8.0 * torch.finfo(table.dtype).eps * len(table) ** 0.5 * _norm(mean[None])
    return shifted.div_(norm) if norm > rounding else shifted.zero_()


def _norm(table: Float[Tensor, "sample feature"]) -> float:
    rows = torch.linalg.vector_norm(table, dim=1)
    if not bool(torch.isfinite(rows).all()):
        # squares beyond the range of float32
        rows = torch.linalg.vector_norm(table, dim=1, dtype=torch.float64)
    return float(torch.linalg.vector_norm(rows, dtype=torch.float64))


def _tables(layers: Layers, name: str) -> list[Tensor]:
    if isinstance(layers, Tensor | np.ndarray):
        raise ValueError(f"{name} must be a list of layers, each sample × feature; put a single one into a list")
    if len(layers) == 0:
        raise ValueError(f"{name} must hold at least one layer, given none")
    tables = []
    for place, layer in enumerate(layers):
        whole = layer if isinstance(layer, Tensor) else torch.as_tensor(np.ascontiguousarray(layer))
        tables.append(as_codes(whole.flatten(1) if whole.ndim > 2 else whole, f"layer {place} of {name}"))
    return tables
