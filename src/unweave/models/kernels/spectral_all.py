"""Spectral normalisation of all layers of a network at once: three launches forward for three of every layer.

Weights of all layers lie in the rows of one tensor, and so do their singular vectors. What is made lies layer after
layer, of every layer all models. The sums are those of :mod:`unweave.models.kernels.spectral`.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from unweave.models.kernels.spectral import BLOCK, COLUMNS, LEAST, ROWS, Weights, normalise, normalise_backward
from unweave.shapes import Float, Int, Tensor

Sizes = tuple[tuple[int, int, int, int], ...]
"""Of every layer: where its weights and its u begin, outputs, inputs."""


class Found(NamedTuple):
    """W / σ, σ, and the next u and v of every layer."""

    weights: list[Weights]
    sigmas: list[Float[Tensor, " model"]]
    us: list[Float[Tensor, "model output"]]
    vs: list[Float[Tensor, "model input"]]


class NormalisedAll(torch.autograd.Function):
    """W / σ(W) of every layer, then the next u and the next v of every layer, which have no gradient."""

    @staticmethod
    def forward(ctx: Any, n: int, *given: Tensor) -> tuple[Tensor, ...]:
        weights, us = given[:n], given[n:]
        found = normalise_all(weights, us)
        ctx.kept = found
        ctx.mark_non_differentiable(*found.us, *found.vs)
        ctx.set_materialize_grads(False)  # or zeros would be made for them
        return *found.weights, *found.us, *found.vs

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        by_weights = [
            None if slope is None else normalise_backward(slope.contiguous(), *layer)
            for slope, *layer in zip(slopes, *ctx.kept)
        ]
        return None, *by_weights, *(None for _ in by_weights)


def share_rows(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are columns of the same rows."""
    first = tensors[0]
    return all(
        one.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        and (len(one) == 1 or one.stride(0) == first.stride(0))
        and one[0].is_contiguous()
        and one.dtype == torch.float32
        for one in tensors
    )


def normalise_all(weights: Sequence[Weights], us: Sequence[Float[Tensor, "model output"]]) -> Found:
    """All layers at once where they share rows, and else one after the other."""
    if not (share_rows(weights) and share_rows(us)):
        made = [_alone(weight, u) for weight, u in zip(weights, us)]
        return Found(*(list(part) for part in zip(*made)))
    n_models, device, first = len(weights[0]), weights[0].device, weights[0]
    sizes = tuple((w.storage_offset(), u.storage_offset(), w.shape[1], w[0, 0].numel()) for w, u in zip(weights, us))
    n_outputs, n_inputs = sum(size[2] for size in sizes), sum(size[3] for size in sizes)
    n_values = sum(size[2] * size[3] for size in sizes)
    empty = torch.empty(n_models * (2 * n_outputs + 2 * n_inputs + n_values) + n_models * len(sizes), device=device)
    cuts = [n_models * n for n in (n_outputs, n_outputs, n_inputs, n_inputs, n_values, len(sizes))]
    along, next_u, across, next_v, found, sigma = empty.split(cuts)
    rows, row = _whole(first), first.stride(0)
    columns, lines, blocks = tables(sizes, str(device))
    _across_all[(n_models * len(columns),)](
        rows, _whole(us[0]), across, columns, row, us[0].stride(0), n_models, len(columns), ROWS, COLUMNS, num_warps=4
    )
    _along_all[(n_models * len(lines),)](
        rows, across, next_v, along, lines, row, n_models, len(lines), LEAST, ROWS, 128, num_warps=4
    )
    most = triton.next_power_of_2(max(size[2] for size in sizes))
    _divide_all[(n_models * len(blocks),)](
        rows, along, found, next_u, sigma, blocks, row, n_models, len(blocks), LEAST, most, BLOCK, num_warps=4
    )
    outputs, inputs = [n_models * size[2] for size in sizes], [n_models * size[3] for size in sizes]
    values = [n_models * size[2] * size[3] for size in sizes]
    return Found(
        [one.view(weight.shape) for one, weight in zip(found.split(values), weights)],
        list(sigma.view(len(sizes), n_models)),
        [one.view(n_models, -1) for one in next_u.split(outputs)],
        [one.view(n_models, -1) for one in next_v.split(inputs)],
    )


def _alone(weight: Weights, u: Tensor) -> tuple[Tensor, ...]:
    return normalise(weight if weight[0].is_contiguous() else weight.contiguous(), u)


def _whole(tensor: Tensor) -> Float[Tensor, " value"]:
    """All that a tensor's memory holds."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // 4,), (1,), 0)


@cache
def tables(sizes: Sizes, device: str) -> tuple[Int[Tensor, "tile 9"], Int[Tensor, "tile 9"], Int[Tensor, "tile 9"]]:
    """For every program of a model, of each kernel: its layer and its part of it."""
    counts: list[Callable[[int, int], int]] = [
        lambda _, inputs: triton.cdiv(inputs, COLUMNS),
        lambda outputs, _: triton.cdiv(outputs, ROWS),
        lambda outputs, inputs: triton.cdiv(outputs * inputs, BLOCK),
    ]
    made = []
    for count in counts:
        lines, output_at, input_at, value_at = [], 0, 0, 0
        for number, (weight_at, u_at, outputs, inputs) in enumerate(sizes):
            layer = [weight_at, u_at, outputs, inputs, output_at, input_at, value_at, number]
            lines += [[*layer, tile] for tile in range(count(outputs, inputs))]
            output_at, input_at, value_at = output_at + outputs, input_at + inputs, value_at + outputs * inputs
        made.append(torch.tensor(lines, dtype=torch.int64, device=device))
    return made[0], made[1], made[2]


@triton.jit
def _across_all(
    rows, us, across, table, row_stride, u_stride, n_models, tiles, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Wᵀ u, some columns."""
    model, line = (tl.program_id(0) // tiles).to(tl.int64), table + tl.program_id(0) % tiles * 9
    weight, u = rows + model * row_stride + tl.load(line), us + model * u_stride + tl.load(line + 1)
    n_outputs, n_inputs = tl.load(line + 2), tl.load(line + 3)
    column = tl.load(line + 8) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, n_outputs, ROWS):
        row = begin + tl.arange(0, ROWS)
        ok = (row < n_outputs)[:, None] & (column < n_inputs)[None, :]
        part = tl.load(weight + row[:, None] * n_inputs + column[None, :], mask=ok, other=0.0)
        total += part * tl.load(u + row, mask=row < n_outputs, other=0.0)[:, None]
    target = across + n_models * tl.load(line + 5) + model * n_inputs
    tl.store(target + column, tl.sum(total, axis=0), mask=column < n_inputs)


@triton.jit
def _along_all(
    rows, across, next_v, along, table, row_stride, n_models, tiles, least, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """W v, some rows, with v = Wᵀu / ‖Wᵀu‖; the first program of a layer keeps v."""
    model, line = (tl.program_id(0) // tiles).to(tl.int64), table + tl.program_id(0) % tiles * 9
    weight, n_outputs, n_inputs = rows + model * row_stride + tl.load(line), tl.load(line + 2), tl.load(line + 3)
    tile, seen_at = tl.load(line + 8), n_models * tl.load(line + 5) + model * n_inputs
    row = tile * ROWS + tl.arange(0, ROWS)
    squares = tl.zeros((COLUMNS,), dtype=tl.float32)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, n_inputs, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        ok = (row < n_outputs)[:, None] & (column < n_inputs)[None, :]
        part = tl.load(weight + row[:, None] * n_inputs + column[None, :], mask=ok, other=0.0)
        seen = tl.load(across + seen_at + column, mask=column < n_inputs, other=0.0)
        squares += seen * seen
        total += part * seen[None, :]
    shrink = tl.rsqrt(tl.maximum(tl.sum(squares), least))
    target = along + n_models * tl.load(line + 4) + model * n_outputs
    tl.store(target + row, tl.sum(total, axis=1) * shrink, mask=row < n_outputs)
    if tile == 0:
        for begin in range(0, n_inputs, COLUMNS):
            column = begin + tl.arange(0, COLUMNS)
            seen = tl.load(across + seen_at + column, mask=column < n_inputs, other=0.0)
            tl.store(next_v + seen_at + column, seen * shrink, mask=column < n_inputs)


@triton.jit
def _divide_all(
    rows, along, found, next_u, sigma, table, row_stride, n_models, tiles, least,
    OUTPUTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """W / σ, some of its values; the first program of a layer keeps u and σ."""
    model, line = (tl.program_id(0) // tiles).to(tl.int64), table + tl.program_id(0) % tiles * 9
    weight, n_outputs = rows + model * row_stride + tl.load(line), tl.load(line + 2)
    size, tile = n_outputs * tl.load(line + 3), tl.load(line + 8)
    row, seen_at = tl.arange(0, OUTPUTS), n_models * tl.load(line + 4) + model * n_outputs
    seen = tl.load(along + seen_at + row, mask=row < n_outputs, other=0.0)
    square = tl.sum(seen * seen)
    shrink = tl.rsqrt(tl.maximum(square, least))
    # σ = uᵀ W v = ⟨Wv / ‖Wv‖, Wv⟩
    largest = square * shrink
    place = tile * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(weight + place, mask=place < size, other=0.0)
    tl.store(found + n_models * tl.load(line + 6) + model * size + place, part / largest, mask=place < size)
    if tile == 0:
        tl.store(next_u + seen_at + row, seen * shrink, mask=row < n_outputs)
        tl.store(sigma + tl.load(line + 7) * n_models + model, largest)
