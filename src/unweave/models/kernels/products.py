"""Products of fp32 matrices on tensor cores, which know only shorter numbers."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

PIECES = "pieces"
"""A product by three bf16 pieces of either side, whose sum is the number to its last bit: six of their nine products.

What is left out is below 2⁻²² of the product; a product of ``tf32x3`` leaves out more.
"""


@triton.jit
def multiplied(left, right, total, PRODUCT: tl.constexpr):
    """total + left @ right."""
    if PRODUCT == "pieces" and left.dtype == tl.float32:
        first, second, third = _pieces(left)
        other_first, other_second, other_third = _pieces(right)
        # a b = (a₁ + a₂ + a₃)(b₁ + b₂ + b₃), the smallest first; by itself, since tensor cores cut off what they add
        part = tl.dot(third, other_first)
        part = tl.dot(second, other_second, part)
        part = tl.dot(first, other_third, part)
        part = tl.dot(second, other_first, part)
        part = tl.dot(first, other_second, part)
        part = tl.dot(first, other_first, part)
        total += part
    else:
        total = tl.dot(left, right, total, input_precision=PRODUCT)
    return total


@triton.jit
def _pieces(x):
    """Three bf16 numbers whose sum is x: its first eight binary digits, the next eight, and the rest."""
    first = _cut(x)
    second = _cut(x - first)
    return _short(first), _short(second), _short(x - first - second)


@triton.jit
def _cut(x):
    """The number with only the digits that bf16 has."""
    return (x.to(tl.uint32, bitcast=True) & 0xFFFF0000).to(tl.float32, bitcast=True)


@triton.jit
def _short(x):
    """The upper half of a number's bits: all of them that are not 0."""
    return (x.to(tl.uint32, bitcast=True) >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
