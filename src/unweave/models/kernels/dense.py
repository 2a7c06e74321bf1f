"""Stacked dense layers in Triton: forward, input gradient and weight gradient of every model's own weights.

A library's batched product chooses its algorithm by the number of models; this one does not, so a model's bits never
depend on its partners.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass

# ruff: noqa: N803
import torch
import triton
import triton.language as tl

from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Affine:
    """One layer's sizes, and where its weights [output, input] and bias lie in a row."""

    n_inputs: int
    n_outputs: int
    weight_at: int
    bias_at: int


def dense_forward(
    layer: Affine, x: Tensor, weights: Tensor, product: str, *, activate: bool, dtype: torch.dtype
) -> Float[Tensor, "model batch output"]:
    """x Wᵀ + b, rectified with ``activate``."""
    out = torch.empty(*x.shape[:2], layer.n_outputs, dtype=dtype, device=x.device)
    sizes = (x.shape[1], layer.n_outputs, layer.n_inputs)
    strides = (x.stride(0), weights.stride(0), out.stride(0), layer.n_inputs, 1, 1, layer.n_inputs, layer.n_outputs)
    _launch(x, weights, out, sizes, strides, product, b_at=layer.weight_at, bias_at=layer.bias_at, activate=activate)
    return out


def dense_input_gradient(
    layer: Affine, gradient: Tensor, weights: Tensor, product: str, *,
    dtype: torch.dtype, like: Tensor | None = None, add: Tensor | None = None,
) -> Float[Tensor, "model batch input"]:  # fmt: skip
    """g W, plus ``add``, where ``like`` is positive."""
    out = torch.empty(*gradient.shape[:2], layer.n_inputs, dtype=dtype, device=gradient.device)
    sizes = (gradient.shape[1], layer.n_inputs, layer.n_outputs)
    strides = (
        gradient.stride(0),
        weights.stride(0),
        out.stride(0),
        layer.n_outputs,
        1,
        layer.n_inputs,
        1,
        layer.n_inputs,
    )
    _launch(gradient, weights, out, sizes, strides, product, b_at=layer.weight_at, like=like, add=add)
    return out


def dense_weight_gradient(
    layer: Affine, gradient: Tensor, x: Tensor, gradients: Float[Tensor, "model size"], product: str
) -> None:
    """gᵀ x and the sum of g over the batch, written into the rows."""
    sizes = (layer.n_outputs, layer.n_inputs, x.shape[1])
    strides = (
        gradient.stride(0),
        x.stride(0),
        gradients.stride(0),
        1,
        layer.n_outputs,
        layer.n_inputs,
        1,
        layer.n_inputs,
    )
    _launch(
        gradient, x, gradients, sizes, strides, product, out_at=layer.weight_at, sum_at=layer.bias_at, summed=True
    )  # fmt: skip


def _launch(
    a: Tensor, b: Tensor, out: Tensor, sizes: tuple[int, int, int], strides: tuple[int, ...], product: str, *,
    b_at: int = 0, out_at: int = 0, bias_at: int = -1, sum_at: int = 0, activate: bool = False, summed: bool = False,
    like: Tensor | None = None, add: Tensor | None = None,
) -> None:  # fmt: skip
    rows, columns, inner = (min(64, max(16, triton.next_power_of_2(size))) for size in sizes)
    tiles = triton.cdiv(sizes[0], rows), triton.cdiv(sizes[1], columns)
    _matmul[(a.shape[0] * tiles[0] * tiles[1],)](
        a, b, out, out if like is None else like, out if add is None else add,
        *sizes, *strides, tiles[0], tiles[1], b_at, out_at, bias_at, sum_at,
        bias_at >= 0, activate, summed, like is not None, add is not None,
        rows, columns, inner, product, num_warps=4, num_stages=3,
    )  # fmt: skip


@triton.jit
def _matmul(
    a, b, out, like, add, n_rows, n_columns, N_INNER: tl.constexpr, a_model, b_model, out_model,
    a_row, a_inner, b_inner, b_column, out_row, tiles_down, tiles_across, b_at, out_at, bias_at, sum_at,
    BIASED: tl.constexpr, ACTIVATE: tl.constexpr, SUMMED: tl.constexpr, MASKED: tl.constexpr, ADDED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % (tiles_down * tiles_across)
    model = (tl.program_id(0) // (tiles_down * tiles_across)).to(tl.int64)
    row = tile // tiles_across * ROWS + tl.arange(0, ROWS)
    column = tile % tiles_across * COLUMNS + tl.arange(0, COLUMNS)
    rows_ok, columns_ok = row < n_rows, column < n_columns
    a += model * a_model
    b += model * b_model
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    summed = tl.zeros((ROWS,), dtype=tl.float32)
    for begin in range(0, N_INNER, INNER):
        k = begin + tl.arange(0, INNER)
        k_ok = k < N_INNER
        left = tl.load(
            a + row[:, None] * a_row + k[None, :] * a_inner, mask=rows_ok[:, None] & k_ok[None, :], other=0.0
        )
        places = b_at + k[:, None] * b_inner + column[None, :] * b_column
        right = tl.load(b + places, mask=k_ok[:, None] & columns_ok[None, :], other=0.0)
        total = tl.dot(left, right.to(left.dtype), total, input_precision=PRODUCT)
        if SUMMED:
            summed += tl.sum(left.to(tl.float32), axis=1)
    if BIASED:
        total += tl.load(b + bias_at + column, mask=columns_ok, other=0.0).to(tl.float32)[None, :]
    if ACTIVATE:
        total = tl.maximum(total, 0.0)
    ok = rows_ok[:, None] & columns_ok[None, :]
    place = model * out_model + row[:, None] * out_row + column[None, :]
    if ADDED:
        total += tl.load(add + place, mask=ok, other=0.0).to(tl.float32)
    if MASKED:
        total = tl.where(tl.load(like + place, mask=ok, other=0.0) > 0, total, 0.0)
    tl.store(out + out_at + place, total.to(out.dtype.element_ty), mask=ok)
    if SUMMED:
        tl.store(out + model * out_model + sum_at + row, summed, mask=rows_ok & (tile % tiles_across == 0))
