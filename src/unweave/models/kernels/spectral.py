"""Spectral normalisation of the weights of many models: one power iteration each, in Triton.

With W [output, input]: v ← Wᵀu / ‖Wᵀu‖, u ← Wv / ‖Wv‖, σ = uᵀWv, and the layer multiplies by W / σ. By PyTorch's
operations that is some forty launches for one layer, forward and back; here it is five.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from typing import Any

import torch
import triton
import triton.language as tl

from unweave.shapes import Float, Shaped, Tensor

COLUMNS, ROWS, BLOCK = 64, 16, 4096
"""What one program takes. Fixed, whatever the number of models: their bits depend on it."""
LEAST = 1e-12
"""Of a squared norm, so that zeros stay zeros."""

Weights = Shaped[Tensor, "model output ..."]


class Normalised(torch.autograd.Function):
    """W / σ(W) of every model, and the next u and v, which have no gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Weights, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        given = weight if weight[0].is_contiguous() else weight.contiguous()
        found, sigma, u, v = normalise(given, u)
        ctx.save_for_backward(found, sigma, u, v)
        ctx.mark_non_differentiable(u, v)
        ctx.set_materialize_grads(False)  # or zeros would be made for them
        return found, u, v

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Any) -> tuple[Tensor, None, None]:
        return normalise_backward(slope.contiguous(), *ctx.saved_tensors), None, None


def normalise(
    weight: Weights, u: Float[Tensor, "model output"]
) -> tuple[Weights, Float[Tensor, " model"], Float[Tensor, "model output"], Float[Tensor, "model input"]]:
    """W / σ, σ, and the next u and v. Of a model, the weights lie side by side."""
    n_models, n_outputs = weight.shape[:2]
    n_inputs = weight[0, 0].numel()
    across, along = (weight.new_empty(n_models, n) for n in (n_inputs, n_outputs))
    next_u, next_v, sigma = torch.empty_like(along), torch.empty_like(across), weight.new_empty(n_models)
    found = torch.empty(weight.shape, device=weight.device)
    u = u if u.stride(1) == 1 else u.contiguous()
    tiles = triton.cdiv(n_inputs, COLUMNS)
    _across[(n_models * tiles,)](
        weight, u, across, weight.stride(0), u.stride(0), n_outputs, n_inputs, tiles, ROWS, COLUMNS, num_warps=4
    )
    tiles = triton.cdiv(n_outputs, ROWS)
    _along[(n_models * tiles,)](
        weight, across, next_v, along, weight.stride(0), n_outputs, n_inputs, tiles, LEAST, ROWS, 128, num_warps=4
    )
    tiles = triton.cdiv(n_outputs * n_inputs, BLOCK)
    _divide[(n_models * tiles,)](
        weight, along, found, next_u, sigma, weight.stride(0), n_outputs, n_outputs * n_inputs, tiles, LEAST,
        triton.next_power_of_2(n_outputs), BLOCK, num_warps=4,
    )  # fmt: skip
    return found, sigma, next_u, next_v


def normalise_backward(
    slope: Weights, found: Weights, sigma: Float[Tensor, " model"], u: Float[Tensor, "model output"],
    v: Float[Tensor, "model input"],
) -> Weights:  # fmt: skip
    """The slope by W from that by Ŵ = W / σ: (slope − ⟨slope, Ŵ⟩ u vᵀ) / σ."""
    n_models, n_outputs = u.shape
    size = n_outputs * v.shape[1]
    tiles = triton.cdiv(size, BLOCK)
    parts, by_weight = slope.new_empty(n_models, tiles), torch.empty_like(slope)
    _meet[(n_models * tiles,)](slope, found, parts, size, tiles, BLOCK, num_warps=4)
    _turn_back[(n_models * tiles,)](
        slope, parts, sigma, u, v, by_weight, n_outputs, v.shape[1], size, tiles, triton.next_power_of_2(tiles), BLOCK,
        num_warps=4,
    )  # fmt: skip
    return by_weight


@triton.jit
def _across(
    weight, u, across, weight_stride, u_stride, n_outputs: tl.constexpr, n_inputs: tl.constexpr, tiles,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Wᵀ u, some columns."""
    model = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, n_outputs, ROWS):
        row = begin + tl.arange(0, ROWS)
        ok = (row < n_outputs)[:, None] & (column < n_inputs)[None, :]
        part = tl.load(weight + model * weight_stride + row[:, None] * n_inputs + column[None, :], mask=ok, other=0.0)
        total += part * tl.load(u + model * u_stride + row, mask=row < n_outputs, other=0.0)[:, None]
    tl.store(across + model * n_inputs + column, tl.sum(total, axis=0), mask=column < n_inputs)


@triton.jit
def _along(
    weight, across, next_v, along, weight_stride, n_outputs: tl.constexpr, n_inputs: tl.constexpr, tiles, least,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """W v, some rows, with v = Wᵀu / ‖Wᵀu‖; the first program of a model keeps v."""
    model = (tl.program_id(0) // tiles).to(tl.int64)
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    squares = tl.zeros((COLUMNS,), dtype=tl.float32)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, n_inputs, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        ok = (row < n_outputs)[:, None] & (column < n_inputs)[None, :]
        part = tl.load(weight + model * weight_stride + row[:, None] * n_inputs + column[None, :], mask=ok, other=0.0)
        seen = tl.load(across + model * n_inputs + column, mask=column < n_inputs, other=0.0)
        squares += seen * seen
        total += part * seen[None, :]
    shrink = tl.rsqrt(tl.maximum(tl.sum(squares), least))
    tl.store(along + model * n_outputs + row, tl.sum(total, axis=1) * shrink, mask=row < n_outputs)
    if tl.program_id(0) % tiles == 0:
        for begin in range(0, n_inputs, COLUMNS):
            column = begin + tl.arange(0, COLUMNS)
            seen = tl.load(across + model * n_inputs + column, mask=column < n_inputs, other=0.0)
            tl.store(next_v + model * n_inputs + column, seen * shrink, mask=column < n_inputs)


@triton.jit
def _divide(
    weight, along, found, next_u, sigma, weight_stride, n_outputs, size, tiles, least,
    OUTPUTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """W / σ, some of its values; the first program of a model keeps u and σ."""
    model = (tl.program_id(0) // tiles).to(tl.int64)
    row = tl.arange(0, OUTPUTS)
    seen = tl.load(along + model * n_outputs + row, mask=row < n_outputs, other=0.0)
    square = tl.sum(seen * seen)
    shrink = tl.rsqrt(tl.maximum(square, least))
    # σ = uᵀ W v = ⟨Wv / ‖Wv‖, Wv⟩
    largest = square * shrink
    place = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(weight + model * weight_stride + place, mask=place < size, other=0.0)
    tl.store(found + model * size + place, part / largest, mask=place < size)
    if tl.program_id(0) % tiles == 0:
        tl.store(next_u + model * n_outputs + row, seen * shrink, mask=row < n_outputs)
        tl.store(sigma + model, largest)


@triton.jit
def _meet(slope, found, parts, size, tiles, BLOCK: tl.constexpr):
    """A part of ⟨slope, Ŵ⟩."""
    model = (tl.program_id(0) // tiles).to(tl.int64)
    place = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    one = tl.load(slope + model * size + place, mask=place < size, other=0.0)
    other = tl.load(found + model * size + place, mask=place < size, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(one * other))


@triton.jit
def _turn_back(
    slope, parts, sigma, u, v, by_weight, n_outputs, n_inputs, size, tiles, TILES: tl.constexpr, BLOCK: tl.constexpr
):
    """(slope − ⟨slope, Ŵ⟩ u vᵀ) / σ, some of its values."""
    model = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.arange(0, TILES)
    shared = tl.sum(tl.load(parts + model * tiles + tile, mask=tile < tiles, other=0.0))
    place = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    one = tl.load(slope + model * size + place, mask=inside, other=0.0)
    outwards = tl.load(u + model * n_outputs + place // n_inputs, mask=inside, other=0.0)
    inwards = tl.load(v + model * n_inputs + place % n_inputs, mask=inside, other=0.0)
    turned = (one - shared * outwards * inwards) / tl.load(sigma + model)
    tl.store(by_weight + model * size + place, turned, mask=inside)
