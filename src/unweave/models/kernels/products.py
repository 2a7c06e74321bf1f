"""Products of fp32 matrices on tensor cores, which know only shorter numbers, as sums of products of their pieces.

- ``tf32x3``: the compiler's, of two tf32 pieces of either side. It watches for numbers that are not finite.
- ``three``: the same products in the same order without watching: the same bits of finite numbers, and NaN where the
  other might give an infinite number. For small models, not timed on a card yet.
- ``six``: of three bf16 pieces whose sum is the number to its last bit, six of their nine products. What is left out is
  below 2⁻²² of a product, less than what ``three`` leaves out. Of an infinite number it makes NaN. For dense layers.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl


@triton.jit
def multiplied(left, right, total, PRODUCT: tl.constexpr):
    """total + left @ right."""
    if PRODUCT == "three" and left.dtype == tl.float32:
        near, other_near = _near(left), _near(right)
        # a b = (a₁ + a₂)(b₁ + b₂) without a₂ b₂, the smallest first; added to the total as fp32, not by a tensor core
        part = tl.dot(left - near, other_near, input_precision="tf32")
        part = tl.dot(near, right - other_near, part, input_precision="tf32")
        part = tl.dot(near, other_near, part, input_precision="tf32")
        total += part
    elif PRODUCT == "six" and left.dtype == tl.float32:
        first, second, third = _pieces(left)
        other_first, other_second, other_third = _pieces(right)
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
def _near(x):
    """The nearest tf32 number: eleven binary digits."""
    return ((x.to(tl.uint32, bitcast=True) + 0x1000) & 0xFFFFE000).to(tl.float32, bitcast=True)


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
