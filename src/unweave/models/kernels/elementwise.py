"""What the kernels of dense networks do to single values, in Triton: tanh, and likelihoods with their slopes."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.models.likelihoods import Bernoulli, Gaussian, Likelihood, SquaredError

SQUARED_ERROR, SQUASHED_ERROR, GAUSSIAN, BERNOULLI = range(4)
"""The likelihoods that kernels know: of the first two the second squashes its outputs by a sigmoid."""


def kind_of(likelihood: Likelihood) -> int | None:
    """The number of a likelihood; None where the kernels do not know it."""
    if type(likelihood) is SquaredError and likelihood.squash != "tanh":
        return SQUARED_ERROR if likelihood.squash == "identity" else SQUASHED_ERROR
    if type(likelihood) is Gaussian and likelihood.squash == "identity":
        return GAUSSIAN
    return BERNOULLI if type(likelihood) is Bernoulli and likelihood == Bernoulli() else None


def variance_of(likelihood: Likelihood) -> float:
    """The variance of a Gaussian likelihood; of others nothing that matters."""
    return likelihood.variance if isinstance(likelihood, Gaussian) else 1.0


@triton.jit
def loss_and_slope(x, output, variance, LIKELIHOOD: tl.constexpr):
    """−log p(x|z) of every value, and its slope by the output."""
    tail = tl.exp(-tl.abs(output))
    if LIKELIHOOD == 3:
        # −x log p − (1 − x) log(1 − p) = max(l, 0) − l x + log(1 + e^−|l|),  slope p − x
        loss = tl.maximum(output, 0.0) - output * x + tl.log(1.0 + tail)
        slope = tl.where(output >= 0, 1.0, tail) / (1.0 + tail) - x
    elif LIKELIHOOD == 2:
        # (x − x̂)² / 2v + ½ log 2πv
        away = output - x
        loss = away * away / (2.0 * variance) + 0.5 * tl.log(6.283185307179586 * variance)
        slope = away / variance
    elif LIKELIHOOD == 1:
        shown = tl.where(output >= 0, 1.0, tail) / (1.0 + tail)
        away = shown - x
        loss = away * away
        slope = 2.0 * away * shown * (1.0 - shown)
    else:
        away = output - x
        loss = away * away
        slope = 2.0 * away
    return loss, slope


@triton.jit
def tanh(x):
    """tanh x = (1 − e^−2|x|) / (1 + e^−2|x|) with the sign of x; near 0 its series, where that would cancel."""
    size = tl.abs(x)
    tail = tl.exp(-2.0 * size)
    far = (1.0 - tail) / (1.0 + tail)
    square = x * x
    near = x * (1.0 - square * (0.33333333333 - square * (0.13333333333 - square * 0.05396825397)))
    return tl.where(size < 0.1, near, tl.where(x < 0, -far, far))
