"""Argument checks that all metrics share: anyone's arrays become tensors, or one sentence says why not.

What is accepted everywhere:

- numpy arrays, torch tensors (which stay on their device) and nested lists; a vector is one column;
- codes of any real dtype, sample × latent, where the metric allows it with a leading model axis;
- factors as integers, booleans, strings or integral floats: every column is relabelled 0 … size − 1 in sorted order.
  Floats with a fraction are refused by categorical metrics, for binning them is the caller's decision;
- constant latents, constant factors, a single latent, a single factor, fewer samples than latents: every metric
  documents what it answers.

What is refused, with the array and the column named: NaN and infinity, numbers beyond 1e150, no samples or no
columns, unequal lengths.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.shapes import Float, Int, Tensor

Array = np.ndarray | Tensor
"""What users hand in."""

Score = float | Tensor
"""A number; with a leading model axis, one for every model."""


@dataclass(frozen=True)
class Categories:
    """Factors relabelled 0 … size − 1, column by column, and the number of values that occur in each column."""

    values: Int[Tensor, "sample factor"]
    sizes: tuple[int, ...]


def as_codes(codes: Any, name: str = "codes", *, batched: bool = False) -> Float[Tensor, "*model sample latent"]:
    """Codes as a float tensor (float32 stays float32): sample × latent, or model × sample × latent if ``batched``."""
    table = _as_tensor(codes, name)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 and not (batched and table.ndim == 3):
        shapes = "sample × latent or model × sample × latent" if batched else "sample × latent"
        raise ValueError(f"{name} must be {shapes}, not an array of shape {tuple(table.shape)}")
    if table.is_complex():
        raise ValueError(f"{name} must be real numbers, not {table.dtype}")
    if table.dtype not in (torch.float32, torch.float64):
        half = table.dtype in (torch.float16, torch.bfloat16)
        table = table.to(torch.float32 if half else torch.float64)
    _check_filled(table, name, "latent")
    _check_finite(table, name)
    _check_size(table, name)
    return table


def as_factors(factors: Any, name: str = "factors") -> Categories:
    """Factors as categories. Strings are sorted like words, integral floats like numbers."""
    if not isinstance(factors, Tensor):
        factors = np.asarray(factors)
        if factors.dtype.kind in "OUS":
            factors = _words_to_numbers(factors, name)
    table = _as_table(factors, name)
    if table.is_floating_point():
        _check_finite(table, name)
        _check_integral(table, name)
        table = table.to(torch.int64)
    return _relabel(table.to(torch.int64))


def as_numbers(factors: Any, name: str = "factors") -> Float[Tensor, "sample factor"]:
    """Factors as float64 numbers, for the metrics that take continuous truth."""
    table = _as_table(factors, name)
    if table.is_complex():
        raise ValueError(f"{name} must be real numbers, not {table.dtype}")
    table = table.to(torch.float64)
    _check_finite(table, name)
    _check_size(table, name)
    return table


def as_categories(codes: Float[Tensor, "sample latent"]) -> Categories:
    """Every distinct value of a column as a category of its own, for codes that are discrete by design."""
    columns = [torch.unique(column, return_inverse=True) for column in codes.unbind(-1)]
    return Categories(torch.stack([labels for _, labels in columns], dim=-1), tuple(len(seen) for seen, _ in columns))


def as_codes_and_factors(
    codes: Any, factors: Any, *, batched: bool = False, names: tuple[str, str] = ("codes", "factors")
) -> tuple[Float[Tensor, "*model sample latent"], Categories]:
    """Both tables, of equal length and on the device of the codes."""
    table, truth = as_codes(codes, names[0], batched=batched), as_factors(factors, names[1])
    check_lengths(table, truth.values, names)
    return table, Categories(truth.values.to(table.device), truth.sizes)


def as_score(value: Float[Tensor, "*model"]) -> Score:
    """A float for one representation, a tensor for a fleet of them."""
    return float(value) if value.ndim == 0 else value


def check_lengths(left: Tensor, right: Tensor, names: tuple[str, str] = ("codes", "factors")) -> None:
    """Two tables describe the same samples, row by row."""
    if left.shape[-2] != right.shape[-2]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have one row per sample, given {left.shape[-2]} and {right.shape[-2]} rows"
        )


def check_count(value: Any, name: str, least: int = 1) -> None:
    """A setting that counts something."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")


def _as_tensor(array: Any, name: str) -> Tensor:
    if isinstance(array, Tensor):
        return array.detach()
    array = np.asarray(array)
    if array.dtype.kind not in "biufc":
        raise ValueError(f"{name} must hold numbers, not {array.dtype}")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    # torch wants native byte order and positive strides, and warns on memory it may not write to
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _as_table(factors: Any, name: str) -> Tensor:
    table = _as_tensor(factors, name)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise ValueError(f"{name} must be sample × factor, not an array of shape {tuple(table.shape)}")
    _check_filled(table, name, "factor")
    return table


def _check_filled(table: Tensor, name: str, column: str) -> None:
    if table.numel() == 0:
        raise ValueError(f"{name} must have at least one sample and one {column}, not the shape {tuple(table.shape)}")


def _check_finite(table: Tensor, name: str) -> None:
    # the sum is finite when all entries are, except for a rare overflow that the exact check then clears
    if not table.is_floating_point() or bool(torch.isfinite(table.sum())) or bool(torch.isfinite(table).all()):
        return
    bad = ~torch.isfinite(table).flatten(0, -2).all(0)
    raise ValueError(f"{name} must be finite: column {int(bad.int().argmax())} holds NaN or infinity; drop those rows")


def _check_size(table: Tensor, name: str) -> None:
    least, most = torch.aminmax(table)
    if max(-float(least), float(most)) > 1e150:
        column = int((table.abs().flatten(0, -2).amax(0) > 1e150).int().argmax())
        raise ValueError(f"{name} must stay below 1e150: the squares of column {column} would overflow; rescale it")


def _check_integral(table: Tensor, name: str) -> None:
    fractional = (table != table.round()).any(0)
    if bool(fractional.any()):
        raise ValueError(
            f"{name} must be categories: column {int(fractional.int().argmax())} holds fractions; put them into bins,"
            " with factor_bins=10 or --factor-bins 10"
        )
    if bool((table.abs() >= 2**53).any()):
        raise ValueError(f"{name} must be categories: floats of 2**53 and more do not tell neighbours apart")


def _words_to_numbers(factors: np.ndarray, name: str) -> np.ndarray:
    columns = factors[:, None] if factors.ndim == 1 else factors
    if columns.ndim != 2:
        raise ValueError(f"{name} must be sample × factor, not an array of shape {factors.shape}")
    return np.stack([_column_to_numbers(column, name, place) for place, column in enumerate(columns.T)], axis=-1)


def _column_to_numbers(column: np.ndarray, name: str, place: int) -> np.ndarray:
    if any(value is None or value != value for value in column):
        raise ValueError(f"{name} must be complete: column {place} holds a missing value; drop those rows")
    if all(isinstance(value, bool | int | float | np.number | np.bool_) for value in column):
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].reshape(-1)


def _relabel(values: Int[Tensor, "sample factor"]) -> Categories:
    labels, sizes = zip(*(_dense(column) for column in values.unbind(-1)))
    return Categories(torch.stack(labels, dim=-1), sizes)


def _dense(column: Int[Tensor, " sample"]) -> tuple[Int[Tensor, " sample"], int]:
    least, most = int(column.min()), int(column.max())
    if most - least > 8 * len(column) + 1024:
        seen, labels = torch.unique(column, return_inverse=True)
        return labels, len(seen)
    # counting is faster than sorting when the values are nearly dense
    place = column - least
    rank = (torch.bincount(place) > 0).cumsum(0) - 1
    return rank[place], int(rank[-1]) + 1
