"""Stacked dense layers in Triton: forward, input gradient and weight gradient of every model's own weights.

A library's batched product chooses its algorithm by the number of models; this one does not, so a model's bits never
depend on its partners. Products of fp32 are six of bf16 (`unweave.models.kernels.products`): on an H200 they are nearer
to float64 than the compiler's three of tf32, and quicker, gradients nearly twice (benchmarks/NOTES.md).
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from unweave.models.kernels.adam import adagrad_at, adam_at
from unweave.models.kernels.convolutions import Tiles
from unweave.models.kernels.elementwise import tanh
from unweave.models.kernels.products import multiplied
from unweave.shapes import Bool, Float, Tensor

TUNED = {
    "narrow": Tiles(64, 128, 4, 3),
    "narrow in fp32": Tiles(64, 64, 4, 3),
    "wide": Tiles(128, 256, 8, 3),
    "wide in fp32": Tiles(64, 64, 4, 3, 32),
    "gradient in fp32": Tiles(64, 128, 4, 1),
    "update": Tiles(64, 64, 8, 2),
    "update in fp32": Tiles(64, 32, 4, 1),
}
"""Rows and columns of a tile, warps, stages and inner portion, for an H200 (benchmarks/tune.py and NOTES.md)."""

WIDE = 512
"""Inputs and outputs from which a layer is wide."""


@dataclass(frozen=True)
class Affine:
    """One layer's sizes, and where its weights [output, input] and bias lie in a row.

    ``leak`` is the slope of its rectifier below 0.
    """

    n_inputs: int
    n_outputs: int
    weight_at: int
    bias_at: int
    leak: float = 0.0


@dataclass(frozen=True)
class AdamStack:
    """What a fused update reads and writes; see :func:`unweave.models.kernels.adam.adam_stack`.

    ``rates`` are divided by 1 − β₁ᵗ already.
    """

    parameters: Float[Tensor, "model size"]
    first: Float[Tensor, "model size"]
    second: Float[Tensor, "model size"]
    rounded: Tensor | None
    rates: Float[Tensor, " model"]
    root: Float[Tensor, ""]
    good: Bool[Tensor, " model"]
    beta1: float
    beta2: float
    epsilon: float


@dataclass(frozen=True)
class AdaGradStack:
    """The same for AdaGrad; see :func:`unweave.models.kernels.adam.adagrad_stack`."""

    parameters: Float[Tensor, "model size"]
    squares: Float[Tensor, "model size"]
    rounded: Tensor | None
    rates: Float[Tensor, " model"]
    good: Bool[Tensor, " model"]
    epsilon: float


PRODUCTS = {"ieee": "ieee", "tf32": "six", "tf32x3": "six"}
"""How products are made that a precision asks for. Layers in tf32 have fp32's digits too: they cost little, and the
single product was once seen to give zeros on an H200 with Triton 3.6 (benchmarks/NOTES.md)."""


def dense_forward(
    layer: Affine, x: Tensor, weights: Tensor, product: str, *,
    activate: bool, dtype: torch.dtype, out: Tensor | None = None, curved: bool = False,
) -> Float[Tensor, "model batch output"]:  # fmt: skip
    """x Wᵀ + b, with ``activate`` rectified, or through tanh where ``curved``; into ``out`` where given."""
    if out is None:
        out = torch.empty(*x.shape[:2], layer.n_outputs, dtype=dtype, device=x.device)
    sizes = (x.shape[1], layer.n_outputs, layer.n_inputs)
    strides = (x.stride(0), weights.stride(0), out.stride(0), x.stride(1), 1, 1, layer.n_inputs, out.stride(1))
    _launch(
        x, weights, out, sizes, strides, product,
        b_at=layer.weight_at, bias_at=layer.bias_at, activate=activate, leak=layer.leak, curved=curved,
    )  # fmt: skip
    return out


def dense_input_gradient(
    layer: Affine, gradient: Tensor, weights: Tensor, product: str, *,
    dtype: torch.dtype, like: Tensor | None = None, add: Tensor | None = None, leak: float = 0.0, curved: bool = False,
) -> Float[Tensor, "model batch input"]:  # fmt: skip
    """g W, plus ``add``; times ``leak`` where ``like`` is not positive, or 1 − ``like``² where ``curved``."""
    out = torch.empty(*gradient.shape[:2], layer.n_inputs, dtype=dtype, device=gradient.device)
    sizes = (gradient.shape[1], layer.n_inputs, layer.n_outputs)
    strides = (
        gradient.stride(0), weights.stride(0), out.stride(0), gradient.stride(1), 1, layer.n_inputs, 1, out.stride(1)
    )  # fmt: skip
    _launch(
        gradient, weights, out, sizes, strides, product,
        b_at=layer.weight_at, like=like, add=add, leak=leak, curved=curved,
    )  # fmt: skip
    return out


def dense_weight_gradient(
    layer: Affine, gradient: Tensor, x: Tensor, gradients: Float[Tensor, "model size"], product: str
) -> None:
    """gᵀ x and the sum of g over the batch, written into the rows."""
    sizes = (layer.n_outputs, layer.n_inputs, x.shape[1])
    strides = (
        gradient.stride(0), x.stride(0), gradients.stride(0), 1, gradient.stride(1), x.stride(1), 1, layer.n_inputs
    )  # fmt: skip
    _launch(
        gradient, x, gradients, sizes, strides, product, out_at=layer.weight_at, sum_at=layer.bias_at, summed=True
    )  # fmt: skip


def dense_update(layer: Affine, gradient: Tensor, x: Tensor, state: AdamStack | AdaGradStack, product: str) -> None:
    """One update of a layer's weights and bias by Adam or AdaGrad; the gradients gᵀ x and Σ g are never stored."""
    n_models, n_batch = x.shape[:2]
    chosen = TUNED["update" if x.dtype == torch.bfloat16 else "update in fp32"]
    sizes = (layer.n_outputs, layer.n_inputs)
    rows, columns = (min(m, max(16, triton.next_power_of_2(n))) for m, n in zip((chosen.rows, chosen.run), sizes))
    tiles = triton.cdiv(layer.n_outputs, rows), triton.cdiv(layer.n_inputs, columns)
    moments = (
        *_moments(state), state.parameters.stride(0), *_numbers(state), gradient.stride(0), gradient.stride(1),
        layer.n_outputs, n_batch,
    )  # fmt: skip
    _update[(n_models * tiles[0] * tiles[1],)](
        gradient, x, *moments, x.stride(0), x.stride(1), layer.n_inputs, layer.weight_at,
        tiles[0] * tiles[1], tiles[1], rows, columns, min(64, triton.next_power_of_2(n_batch)),
        PRODUCTS[product],
        num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip
    _update_bias[(n_models * tiles[0],)](gradient, *moments, layer.bias_at, tiles[0], rows, 32, num_warps=4)


def _moments(state: AdamStack | AdaGradStack) -> tuple[Tensor | None, ...]:
    """What the kernels change and read; AdaGrad has one moment and no root."""
    if isinstance(state, AdamStack):
        first, second, root = state.first, state.second, state.root
        return state.parameters, first, second, state.rounded, state.rates, root, state.good
    return state.parameters, state.squares, None, state.rounded, state.rates, None, state.good


def _numbers(state: AdamStack | AdaGradStack) -> tuple[float, ...]:
    if isinstance(state, AdamStack):
        return state.beta1, state.beta2, 1.0 - state.beta1, 1.0 - state.beta2, state.epsilon
    return 0.0, 0.0, 0.0, 0.0, state.epsilon


def _launch(
    a: Tensor, b: Tensor, out: Tensor, sizes: tuple[int, int, int], strides: tuple[int, ...], product: str, *,
    b_at: int = 0, out_at: int = 0, bias_at: int = -1, sum_at: int = 0, activate: bool = False, summed: bool = False,
    like: Tensor | None = None, add: Tensor | None = None, leak: float = 0.0, curved: bool = False,
) -> None:  # fmt: skip
    chosen = TUNED[_tiles(sizes, a.dtype)]
    most = (chosen.rows, chosen.run, chosen.inner)
    rows, columns, inner = (min(m, max(16, triton.next_power_of_2(size))) for m, size in zip(most, sizes))
    tiles = triton.cdiv(sizes[0], rows), triton.cdiv(sizes[1], columns)
    _matmul[(a.shape[0] * tiles[0] * tiles[1],)](
        a, b, out, out if like is None else like, out if add is None else add,
        0 if like is None else like.stride(0), 0 if add is None else add.stride(0), *strides[:3],
        *sizes, *strides[3:], tiles[0], tiles[1], b_at, out_at, bias_at, sum_at,
        bias_at >= 0, activate, summed, like is not None, add is not None, curved, leak,
        rows, columns, inner, PRODUCTS[product], num_warps=chosen.warps, num_stages=chosen.stages,
    )  # fmt: skip


def _tiles(sizes: tuple[int, int, int], dtype: torch.dtype) -> str:
    if min(sizes[1:]) >= WIDE:
        # bound by the weights' bytes: all rows of a batch in one tile read them once
        return "wide" if dtype == torch.bfloat16 else "wide in fp32"
    if dtype == torch.bfloat16:
        return "narrow"
    return "gradient in fp32" if min(sizes[:2]) >= WIDE else "narrow in fp32"


@triton.jit
def _matmul(
    a, b, out, like, add, like_model, add_model, a_model, b_model, out_model,
    N_ROWS: tl.constexpr, N_COLUMNS: tl.constexpr, N_INNER: tl.constexpr,
    A_ROW: tl.constexpr, A_INNER: tl.constexpr, B_INNER: tl.constexpr, B_COLUMN: tl.constexpr, OUT_ROW: tl.constexpr,
    TILES_DOWN: tl.constexpr, TILES_ACROSS: tl.constexpr, B_AT: tl.constexpr, OUT_AT: tl.constexpr,
    BIAS_AT: tl.constexpr, SUM_AT: tl.constexpr,
    BIASED: tl.constexpr, ACTIVATE: tl.constexpr, SUMMED: tl.constexpr, MASKED: tl.constexpr, ADDED: tl.constexpr,
    CURVED: tl.constexpr, LEAK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    # sizes and strides are constants: only so does the compiler know that rows of 1,000 values begin on 16 bytes
    tile = tl.program_id(0) % (TILES_DOWN * TILES_ACROSS)
    model = (tl.program_id(0) // (TILES_DOWN * TILES_ACROSS)).to(tl.int64)
    row = tile // TILES_ACROSS * ROWS + tl.arange(0, ROWS)
    column = tile % TILES_ACROSS * COLUMNS + tl.arange(0, COLUMNS)
    rows_ok, columns_ok = row < N_ROWS, column < N_COLUMNS
    a += model * a_model
    b += model * b_model
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    summed = tl.zeros((ROWS,), dtype=tl.float32)
    for begin in range(0, N_INNER, INNER):
        k = begin + tl.arange(0, INNER)
        k_ok = k < N_INNER
        left = tl.load(
            a + row[:, None] * A_ROW + k[None, :] * A_INNER, mask=rows_ok[:, None] & k_ok[None, :], other=0.0
        )
        places = B_AT + k[:, None] * B_INNER + column[None, :] * B_COLUMN
        right = tl.load(b + places, mask=k_ok[:, None] & columns_ok[None, :], other=0.0)
        total = multiplied(left, right.to(left.dtype), total, PRODUCT)
        if SUMMED:
            summed += tl.sum(left.to(tl.float32), axis=1)
    if BIASED:
        total += tl.load(b + BIAS_AT + column, mask=columns_ok, other=0.0).to(tl.float32)[None, :]
    if ACTIVATE and CURVED:
        total = tanh(total)
    elif ACTIVATE:
        total = tl.maximum(total, LEAK * total) if LEAK > 0 else tl.maximum(total, 0.0)
    ok = rows_ok[:, None] & columns_ok[None, :]
    inside = row[:, None] * OUT_ROW + column[None, :]
    if ADDED:
        total += tl.load(add + model * add_model + inside, mask=ok, other=0.0).to(tl.float32)
    if MASKED:
        # rows of ``like`` are as long as the result's
        seen = tl.load(like + model * like_model + inside, mask=ok, other=0.0).to(tl.float32)
        if CURVED:  # noqa: SIM108
            total = total * (1.0 - seen * seen)
        else:
            total = tl.where(seen > 0, total, LEAK * total if LEAK > 0 else 0.0)
    tl.store(out + model * out_model + OUT_AT + inside, total.to(out.dtype.element_ty), mask=ok)
    if SUMMED:
        tl.store(out + model * out_model + SUM_AT + row, summed, mask=rows_ok & (tile % TILES_ACROSS == 0))


@triton.jit
def _update(
    gradient, x, parameters, first, second, rounded, rates, root, good, row_of_model,
    beta1, beta2, rest1, rest2, epsilon, gradient_model, GRADIENT_ROW: tl.constexpr, N_OUTPUTS: tl.constexpr,
    N_BATCH: tl.constexpr, x_model, X_ROW: tl.constexpr, N_INPUTS: tl.constexpr, WEIGHT_AT: tl.constexpr,
    TILES: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0) % TILES
    model = (tl.program_id(0) // TILES).to(tl.int64)
    row = tile // ACROSS * ROWS + tl.arange(0, ROWS)
    column = tile % ACROSS * COLUMNS + tl.arange(0, COLUMNS)
    place = model * row_of_model + WEIGHT_AT + row[:, None] * N_INPUTS + column[None, :]
    ok = (tl.load(good + model) != 0) & (row < N_OUTPUTS)[:, None] & (column < N_INPUTS)[None, :]
    # what changes is asked for first where it leaves room for other programs: it arrives while the product is made
    ahead: tl.constexpr = gradient.dtype.element_ty == tl.bfloat16
    if ahead:
        m = tl.load(first + place, mask=ok, other=0.0)
        if second is not None:
            v = tl.load(second + place, mask=ok, other=0.0)
        old = tl.load(parameters + place, mask=ok, other=0.0)
    slope = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, N_BATCH, INNER):
        k = begin + tl.arange(0, INNER)
        left = tl.load(
            gradient + model * gradient_model + row[:, None] + k[None, :] * GRADIENT_ROW,
            mask=(row < N_OUTPUTS)[:, None] & (k < N_BATCH)[None, :], other=0.0,
        )  # fmt: skip
        right = tl.load(
            x + model * x_model + k[:, None] * X_ROW + column[None, :],
            mask=(k < N_BATCH)[:, None] & (column < N_INPUTS)[None, :], other=0.0,
        )  # fmt: skip
        slope = multiplied(left, right, slope, PRODUCT)
    if not ahead:
        m = tl.load(first + place, mask=ok, other=0.0)
        if second is not None:
            v = tl.load(second + place, mask=ok, other=0.0)
        old = tl.load(parameters + place, mask=ok, other=0.0)
    if second is not None:
        m = beta1 * m + rest1 * slope
        v = beta2 * v + rest2 * slope * slope
        moved = old - tl.load(rates + model) * m / (tl.sqrt(v) / tl.load(root) + epsilon)
    else:
        m += slope * slope
        moved = old - tl.load(rates + model) * slope / (tl.sqrt(m) + epsilon)
    tl.store(first + place, m, mask=ok)
    if second is not None:
        tl.store(second + place, v, mask=ok)
    tl.store(parameters + place, moved, mask=ok)
    if rounded is not None:
        tl.store(rounded + place, moved.to(rounded.dtype.element_ty), mask=ok)


@triton.jit
def _update_bias(
    gradient, parameters, first, second, rounded, rates, root, good, row_of_model,
    beta1, beta2, rest1, rest2, epsilon, gradient_model, GRADIENT_ROW: tl.constexpr, N_OUTPUTS: tl.constexpr,
    N_BATCH: tl.constexpr, BIAS_AT: tl.constexpr, TILES: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // TILES).to(tl.int64)
    column = tl.program_id(0) % TILES * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, N_BATCH, ROWS):
        k = begin + tl.arange(0, ROWS)
        inside = (k < N_BATCH)[:, None] & (column < N_OUTPUTS)[None, :]
        places = gradient + model * gradient_model + k[:, None] * GRADIENT_ROW + column[None, :]
        total += tl.load(places, mask=inside, other=0.0).to(tl.float32)
    ok = (tl.load(good + model) != 0) & (column < N_OUTPUTS)
    place, slope, rate = model * row_of_model + BIAS_AT + column, tl.sum(total, axis=0), tl.load(rates + model)
    if second is not None:
        adam_at(
            parameters, first, second, rounded, place, slope, ok, rate, tl.load(root), beta1, beta2, rest1, rest2,
            epsilon,
        )  # fmt: skip
    else:
        adagrad_at(parameters, first, rounded, place, slope, ok, rate, epsilon)
