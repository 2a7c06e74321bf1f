"""Rectifiers in Triton, plain and leaky, and what they let pass on the way back."""

# ruff: noqa: N803, SIM108
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl


@triton.jit
def rectified(x, LEAK: tl.constexpr):
    """x where it is positive, LEAK · x elsewhere."""
    if LEAK == 0:
        found = tl.maximum(x, 0.0)
    else:
        found = tl.where(x > 0, x, LEAK * x)
    return found


@triton.jit
def passed(slope, active, LEAK: tl.constexpr):
    """The slope before a rectifier, from that behind it and what came out of it."""
    if LEAK == 0:
        found = tl.where(active > 0, slope, 0.0)
    else:
        found = tl.where(active > 0, slope, LEAK * slope)
    return found
