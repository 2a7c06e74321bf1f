"""Sums over parts in a fixed order, in Triton: a library's reduction divides its work by the number of models."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.shapes import Float, Tensor


def add_up(parts: Float[Tensor, "model part column"], out: Float[Tensor, "model column"], run: int = 1) -> None:
    """The sum over parts, always in the same order: every ``run`` neighbours first, one after the other."""
    n_models, n_parts, n_columns = parts.shape
    tiles = triton.cdiv(n_columns, 64)
    _add_up[(n_models * tiles,)](
        parts, out, parts.stride(0), parts.stride(1), out.stride(0), n_columns, tiles, n_parts, run, 16, 64,
        num_warps=4,
    )  # fmt: skip


@triton.jit
def _add_up(
    parts, out, model_stride, part_stride, out_stride, n_columns, tiles,
    N_PARTS: tl.constexpr, RUN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, N_PARTS // RUN, ROWS):
        own = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for turn in tl.static_range(RUN):
            part = (begin + tl.arange(0, ROWS)) * RUN + turn
            place = model * model_stride + part[:, None] * part_stride + column[None, :]
            ok = (part < N_PARTS)[:, None] & (column < n_columns)[None, :]
            own += tl.load(parts + place, mask=ok, other=0.0).to(tl.float32)
        total += own
    tl.store(out + model * out_stride + column, tl.sum(total, axis=0), mask=column < n_columns)
