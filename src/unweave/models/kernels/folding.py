"""What small pixels say to the big ones under their kernels, added up where kernels overlap, in Triton."""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.shapes import Float, Tensor

BLOCK = 1024


def folded(
    pieces: Float[Tensor, "model batch height width row column channel"],
) -> Float[Tensor, "model batch height2 width2 channel"]:
    """Images twice as high and wide: of a 4×4 kernel four pieces meet in every pixel, of a 2×2 kernel one."""
    n_models, batch, height, width, kernel, _, channels = pieces.shape
    big = pieces.new_empty(n_models, batch, 2 * height, 2 * width, channels)
    _fold[(triton.cdiv(big.numel(), BLOCK),)](
        pieces, big, big.numel(), height, width, channels, kernel, BLOCK, num_warps=4
    )
    return big


@triton.jit
def _fold(pieces, big, size, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    channel, x, y = place % C, place // C % (2 * W), place // (C * 2 * W) % (2 * H)
    image = place // (C * 4 * H * W)
    PAD: tl.constexpr = (K - 2) // 2
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    # big row r lies under kernel row r + pad − 2 line, for the lines that reach it
    for down in tl.static_range(K // 2):
        line = (y + PAD) // 2 - down
        row = y + PAD - 2 * line
        for across in tl.static_range(K // 2):
            column = (x + PAD) // 2 - across
            ok = inside & (line >= 0) & (line < H) & (column >= 0) & (column < W)
            there = ((image * H + line) * W + column) * (K * K) + row * K + (x + PAD - 2 * column)
            total += tl.load(pieces + there * C + channel, mask=ok, other=0.0)
    tl.store(big + place, total, mask=inside)
