"""Adam and AdaGrad for a stack of models in one pass over parameters, gradients and state, in Triton."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.shapes import Bool, Float, Shaped, Tensor

BLOCK = 2048


def adam_stack(
    parameters: Float[Tensor, "model size"], gradients: Float[Tensor, "model size"],
    first: Float[Tensor, "model size"], second: Float[Tensor, "model size"], rounded: Tensor | None,
    rates: Float[Tensor, " model"], bias: Float[Tensor, ""], root: Float[Tensor, ""], good: Bool[Tensor, " model"],
    beta1: float, beta2: float, epsilon: float,
) -> None:  # fmt: skip
    """One update in place: ``rates`` are α, ``bias`` is 1 − β₁ᵗ, ``root`` √(1 − β₂ᵗ); models that are not good stay.

    ``rounded``, if there is one, is a copy of the parameters in another precision. All of them may be the same columns
    of longer rows.
    """
    n_models, size = parameters.shape
    tiles, stride = triton.cdiv(size, BLOCK), parameters.stride(0)
    others = (gradients, first, second, rounded)
    assert n_models == 1 or all(one is None or one.stride() == (stride, 1) for one in others)
    _adam[(n_models * tiles,)](
        parameters, gradients, first, second, rounded, rates.contiguous(), bias, root, good, size, stride, tiles,
        beta1, beta2, 1.0 - beta1, 1.0 - beta2, epsilon, BLOCK, num_warps=8,
    )  # fmt: skip


def adagrad_stack(
    parameters: Float[Tensor, "model size"], gradients: Float[Tensor, "model size"],
    squares: Float[Tensor, "model size"], rounded: Tensor | None, rates: Float[Tensor, " model"],
    good: Bool[Tensor, " model"], epsilon: float,
) -> None:  # fmt: skip
    """One update in place; models that are not good stay. ``rounded`` as for Adam."""
    n_models, size = parameters.shape
    tiles = triton.cdiv(size, BLOCK)
    _adagrad[(n_models * tiles,)](
        parameters, gradients, squares, rounded, rates.contiguous(), good, size, tiles, epsilon, BLOCK, num_warps=8
    )


def corrections(
    count: Shaped[Tensor, "*step"], beta1: float, beta2: float
) -> tuple[Float[Tensor, "*step"], Float[Tensor, "*step"]]:
    """1 − β₁ᵗ and √(1 − β₂ᵗ) of one update or of several, computed in float64."""
    exact = count.to(torch.float64)
    return (1.0 - beta1**exact).to(torch.float32), (1.0 - beta2**exact).sqrt().to(torch.float32)


@triton.jit
def _adam(
    parameters, gradients, first, second, rounded, rates, bias, root, good, size, stride, tiles,
    beta1, beta2, rest1, rest2, epsilon, BLOCK: tl.constexpr,
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = (column < size) & (tl.load(good + model) != 0)
    place = model * stride + column
    slope = tl.load(gradients + place, mask=inside, other=0.0)
    adam_at(
        parameters, first, second, rounded, place, slope, inside, tl.div_rn(tl.load(rates + model), tl.load(bias)),
        tl.load(root), beta1, beta2, rest1, rest2, epsilon,
    )  # fmt: skip


@triton.jit
def _adagrad(parameters, gradients, squares, rounded, rates, good, size, tiles, epsilon, BLOCK: tl.constexpr):
    model = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = (column < size) & (tl.load(good + model) != 0)
    place = model * size + column
    slope = tl.load(gradients + place, mask=inside, other=0.0)
    adagrad_at(parameters, squares, rounded, place, slope, inside, tl.load(rates + model), epsilon)


@triton.jit
def adam_at(
    parameters, first, second, rounded, place, slope, inside, rate, root, beta1, beta2, rest1, rest2, epsilon
):  # fmt: skip
    """Adam's update of the values at some places, in place, from their slopes."""
    m = beta1 * tl.load(first + place, mask=inside, other=0.0) + rest1 * slope
    v = beta2 * tl.load(second + place, mask=inside, other=0.0) + rest2 * slope * slope
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    # θ ← θ − α / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
    moved = tl.load(parameters + place, mask=inside, other=0.0) - rate * m / (tl.sqrt(v) / root + epsilon)
    tl.store(parameters + place, moved, mask=inside)
    if rounded is not None:
        tl.store(rounded + place, moved.to(rounded.dtype.element_ty), mask=inside)


@triton.jit
def adagrad_at(parameters, squares, rounded, place, slope, inside, rate, epsilon):
    """The same by AdaGrad."""
    # s ← s + g²,  θ ← θ − α g / (√s + ε)
    total = tl.load(squares + place, mask=inside, other=0.0) + slope * slope
    moved = tl.load(parameters + place, mask=inside, other=0.0) - rate * slope / (tl.sqrt(total) + epsilon)
    tl.store(squares + place, total, mask=inside)
    tl.store(parameters + place, moved, mask=inside)
    if rounded is not None:
        tl.store(rounded + place, moved.to(rounded.dtype.element_ty), mask=inside)
