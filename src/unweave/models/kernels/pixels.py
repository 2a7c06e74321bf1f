"""How examples are stored and read by the kernels, in Triton."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass

import triton
import triton.language as tl

BITS, BYTES, FLOATS, MASKS, PADDED = range(5)
"""How examples lie in memory. MASKS: for every place of the first kernel, the 16 bits under it as one number. PADDED:
numbers with a margin of one pixel and four channels, so that a row under the kernel is one run of memory."""
IMAGES_AT_ONCE = 8
"""Images whose share of a weight gradient one program sums; the shares are then added in a fixed order."""


@dataclass(frozen=True)
class Frame:
    """How examples are stored, and where they lie in the even-sized frame that the network works in."""

    packing: int
    channels: int
    height: int
    width: int
    top: int
    left: int


def pitch(channels: int) -> int:
    """Channels that a pixel takes in the kernels' own images: one, or four, the last ones 0."""
    return 1 if channels == 1 else 4


@triton.jit
def stored_pixels(examples, image, channel, line, column, ok, PACKING, C, HEIGHT, WIDTH):
    """Pixels as numbers; places outside the frame give 0."""
    if PACKING == 0:
        place = line * WIDTH + column
        byte = tl.load(examples + image * (HEIGHT * WIDTH // 8) + place // 8, mask=ok, other=0).to(tl.int32)
        value = ((byte >> (7 - place % 8)) & 1).to(tl.float32)
    else:
        place = ((image * C + channel) * HEIGHT + line) * WIDTH + column
        value = tl.load(examples + place, mask=ok, other=0).to(tl.float32)
        if PACKING == 1:
            value = value / 255.0
    return value
